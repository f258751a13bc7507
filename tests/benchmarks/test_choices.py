"""The reader of chosen options: a reply that chooses one is read, and everything else is not."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.cedar.reading.reader import read_reply
from culture_tasks.benchmarks.choice_reader import read_choice
from culture_tasks.benchmarks.likelihood import most_likely

REPLIES = Path(__file__).parents[1] / "fixtures" / "replies"
OPTIONS = {
    "drinks": {"A": "tea", "B": "soy milk", "C": "coffee", "D": "noodle soup"},
    "dishes": {"1": "Nasi Goreng", "2": "Rendang", "3": "Sate", "4": "Gado-gado", "5": "Bakso"},
    "answers": {"1": "Yes", "2": "No", "3": "Neither"},
    "truth": {"True": "", "False": ""},
}


def lines(name):
    return [json.loads(line) for line in (REPLIES / name).read_text("utf-8").splitlines()]


CASES = [(chosen, OPTIONS.get(str(options)) or options, reply) for chosen, options, reply in lines("choices.jsonl")]


def test_a_choice_is_read_and_what_chooses_nothing_or_two_things_is_not():
    assert [case for case in CASES if read_choice(case[2], case[1]) != case[0]] == []
    assert sum(chosen is None for chosen, *_ in CASES) > 60


def test_replies_of_a_small_model_are_read_as_their_table_says():
    """Replies of SmolLM2-135M-Instruct; ``label`` is what a person reads, ``read`` what the reader does where it errs.

    Of 135 million parameters, a reply may choose twice, or count along ("just 1 answer with a single answer id").
    """
    rows = lines("smollm2.jsonl")
    read = [read_choice(row["reply"], row["options"]) if "options" in row else read_reply(row["reply"]) for row in rows]
    expected = [row.get("read", row["label"]) for row in rows]
    assert [pair for pair in zip(rows, read, expected, strict=True) if pair[1] != pair[2]] == []
    assert len([row for row in rows if row.get("read") is not None]) <= 0.07 * len(rows)


SOME = st.lists(st.sampled_from([reply for *_, reply in CASES])).map("\n".join)


@given(st.text() | st.text("ABCDEab12 .:,()'\"{}\\\n") | SOME)
def test_whatever_is_read_was_offered(reply):
    for options in OPTIONS.values():
        assert read_choice(reply, options) in {None, *options}


@given(
    st.sampled_from(["{}", "({})", "**{}**", "{}.", "Answer: {}", "The answer is {}.", '{{"answer_choice":"{}"}}']),
    st.sampled_from(["ABCDEFGHIJ", "12345"]),
    st.integers(1, 10),
    st.data(),
)
def test_a_label_is_read_if_and_only_if_it_is_offered(template, labels, count, data):
    label = data.draw(st.sampled_from(labels))
    offered = labels[:count]
    assert read_choice(template.format(label), dict.fromkeys(offered, "")) == (label if label in offered else None)


def test_hostile_replies_are_read_in_a_moment():
    for part in ("{", "}", '{"answer_choice":', "\\W ", "A.", "<think>", "answer ", "answer is ", "A "):
        assert read_choice(part * 10_000, OPTIONS["drinks"]) is None


def test_a_tie_or_a_missing_number_chooses_nothing():
    assert most_likely(["A", "B", "C"], [-3.0, -1.0, -2.0]) == "B"
    for likelihoods in ([-1.0, -1.0, -2.0], [float("nan"), -1.0, -2.0], [-1.0, float("nan"), -2.0]):
        assert most_likely(["A", "B", "C"], likelihoods) == ""
