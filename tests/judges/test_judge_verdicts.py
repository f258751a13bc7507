"""What a judge's reply says: written and real replies, forged verdicts, then any reply at all."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.steps import steps

from culture_tasks.benchmarks.registry import rubrics

REPLIES = Path(__file__).parents[1] / "fixtures" / "replies" / "verdicts.jsonl"
REAL = Path(__file__).parents[3] / "shared" / "data" / "judge_replies"
FORMATS = {
    "lave": "rating={}",
    "care_literacy": "Rating: [[{}]]",
    "crosscult": '{{"score": {}, "reason": "r"}}',
}


def read(name: str, reply: str) -> int | None:
    """Returns the rating that a rubric's reader finds."""
    reading = rubrics()[name].read(reply)
    return reading.rating if reading else None


def test_a_reply_is_read_as_a_careful_person_reads_it():
    # Written by hand from the rubrics: 40 replies of LAVE's judge and 40 of CrossCult's, 30 that hold a forged verdict
    # alone, and others.
    rows = [json.loads(line) for line in REPLIES.read_text(encoding="utf-8").splitlines()]
    assert [row for row in rows if read(row["rubric"], row["reply"]) != row["rating"]] == []


@pytest.mark.skipif(not REAL.exists(), reason="needs the real replies")
def test_real_replies_are_read_as_their_authors_read_them():
    ratings = Counter()
    for file in REAL.glob("*.jsonl.gz"):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if row["score"] in range(1, 11)]
        ratings.update((read("care_literacy", row["reply"]) or row["score"]) == row["score"] for row in rows)
        ratings["unread"] += sum(read("care_literacy", row["reply"]) is None for row in rows)
    assert ratings[False] == 0
    assert ratings["unread"] <= 27  # 13 of these name two ratings
    assert ratings[True] > 7_500


BETWEEN = ["", "Both name it.", "On reflection, this is better.", "\n\n", "**Reasons**", "- 3 of 4 points"]
VARIANTS = st.sampled_from([*FORMATS.values(), "Rating: {}"])


@given(st.sampled_from(sorted(FORMATS)), VARIANTS, st.sampled_from(BETWEEN), st.booleans(), st.data())
def test_two_different_verdicts_are_none(name, variant, between, forged_first, data):
    ratings = st.integers(rubrics()[name].lowest, rubrics()[name].highest)
    first, second = data.draw(st.lists(ratings, min_size=2, max_size=2, unique=True))
    parts = [FORMATS[name].format(first), between, variant.format(second)]
    assert read(name, "\n".join(reversed(parts) if forged_first else parts)) is None


PIECES = ("rating", "score", "=", ":", " ", "\n", "[[", "]]", "{", "}", '"', "'", "1", "2", "7", "10", "/", ".", "-")


@given(
    st.sampled_from(sorted(FORMATS)),
    st.text()
    | st.lists(st.sampled_from((*PIECES, "I give")), max_size=40).map("".join)
    | st.text(alphabet='{}":,[]\\ 1e.tscore', max_size=60),
)
@example("care_literacy", "Rating: [[" * 50)
def test_any_reply_is_read_without_an_error_as_an_offered_rating_or_none(name, reply):
    for text in (reply, f"Rating: {reply}", f'{{"score": "{reply}"}}'):
        assert read(name, text) in (None, *range(rubrics()[name].lowest, rubrics()[name].highest + 1))


UNITS = [
    "rating ",
    "rating: [[",
    "i give it ",
    "التقييم ٧ ",
    "\n",
    "“",
    "1\n",
    '{"',
    '{"a":{},',
    '{"score": 7}',
    "<think>",
]


@pytest.mark.parametrize("unit", UNITS)
def test_much_of_the_same_is_no_verdict_and_twice_as_much_no_more_than_twice_the_work(unit):
    once, twice = (unit * (size // len(unit)) for size in (2_000, 4_000))
    for rubric in (rubrics()[name] for name in FORMATS):
        assert rubric.read(twice) is None
        assert steps(rubric.read, twice) <= 2.1 * steps(rubric.read, once)
