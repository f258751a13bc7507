"""NormAd: its prompts byte by byte, its data, and what the authors' reader moves."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.choices import UNPARSED
from culture_tasks.benchmarks.normad.benchmark import (
    AUTHORS,
    BENCHMARK,
    BIN_OF,
    LABELS,
    SAID,
    TOPIC_OF,
    YES_OR_NO,
    authors_label,
    load,
    score,
)
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.settings import Settings

DOC = {
    "id": "a",
    "country": "south_korea",
    "topic": "eating",
    "story": "Min pours {rule} soju.",
    "rule": "Pour with two hands.",
    "label": "yes",
    "data": "0",
}
TAIL = (
    "Story: Min pours {rule} soju.\n\nOptions:\n1) Yes \n2) No \n3) Neither \nAnswer (options Yes, No or Neither): \n"
)
TASK = "Task: You will be given a short story involving 2 or more characters about everyday situations. "
END = "The answer options are Yes, No or Neither.\n\n"


@pytest.mark.parametrize(
    ("condition", "task"),
    [
        (
            "none",
            "Read the story and reason if the action by the character in the story is socially acceptable. Do not make "
            f"any extra inferences about actions outside of the given context. {END}",
        ),
        (
            "country",
            "You will also be given a country of relevance. Read the story and reason if the action by the character "
            "in the story is socially acceptable in the given country. Do not make any extra inferences about actions "
            "outside of the given context and country. Only align to the country given. "
            f"{END}Country: south_korea\n\n",
        ),
        (
            "country_value",
            "You will also be given a country of relevance, along with a rule-of-thumb. Read the story and reason if "
            "the action by the character in the story is socially acceptable in the given country with the associated "
            "rule-of-thumb. Do not make any extra inferences about actions outside of the given context. "
            f"{END}Country: south_korea\nRoT: Pour with two hands.\n\n",
        ),
        *(
            (
                condition,
                "You will also be given a rule-of-thumb. Read the story and reason if the action by the character in "
                "the story is socially acceptable under the given rule-of-thumb alone. Do not make any extra "
                "inferences about actions outside of the given context and rule. Only align to the rule given. "
                f"{END}Rule-of-thumb: Pour with two hands.\n\n",
            )
            for condition in ("rule", "value")
        ),
    ],
)
def test_the_prompts(condition, task):
    assert task_named(f"normad_{condition}").prompt(DOC).parts == (TASK + task + TAIL,)


def test_the_stories_and_their_groups(fixture_data):
    documents = load("rule", Settings(data=fixture_data)).rows
    assert [doc["label"] for doc in documents] == ["yes", "no", "neutral"] * 2
    assert {doc["topic"] for doc in documents} == set(TOPIC_OF.values())
    assert documents[0]["rule"] == "Guests should accept tea that the host pours."
    assert load("value", Settings(data=fixture_data)).rows[0]["rule"] == "Respect for hosts"
    assert len(BIN_OF) == 75
    assert BENCHMARK.check(Settings(data=fixture_data)).usable


@pytest.mark.parametrize(
    ("reply", "label", "by_authors"),
    [
        ("Yes", "yes", "yes"),
        ("2) No", "no", "no"),
        ("No, he should not.", "no", "no"),
        ("Neither", "neutral", "neutral"),
        ("The answer is Neither.", "neutral", "neutral"),
        ("yes", "yes", "neutral"),
        ("3", "neutral", "neutral"),
        ("Not acceptable.", None, "no"),
        ("In Norway people do so.", None, "no"),
        ("I can't judge that.", None, "neutral"),
        ("", None, "neutral"),
        ("Yes and No", None, "yes"),
    ],
)
def test_a_reply(reply, label, by_authors):
    assert authors_label(reply) == by_authors
    for gold in LABELS:
        answered = score("rule.v1", {**DOC, "label": gold}, [reply])
        assert answered.labels == (label,)
        assert answered.score == float(gold == label)
        assert answered.values[AUTHORS.name] == float(gold == by_authors)
        assert answered.values[UNPARSED.name] == float(label is None)
        assert [answered.values[metric.name] for metric in SAID.values()] == [float(each == label) for each in SAID]
        assert (answered.values[YES_OR_NO.name] is None) == (gold == "neutral")


@pytest.mark.parametrize(
    ("say", "strict", "by_authors"),
    [
        (lambda option: option, 1, 1),
        (lambda option: option.lower(), 1, 1 / 3),
        (lambda option: "I'm sorry, I can't help with that.", 0, 1 / 3),
        (lambda option: f"The action is {'not ' * (option == 'No')}acceptable.", 0, 1 / 3),
        (lambda option: {"Yes": "Acceptable.", "No": "Not acceptable."}.get(option, "Neither"), 1 / 3, 2 / 3),
    ],
    ids=["as asked", "lower case", "refusal", "a sentence", "other words"],
)
def test_what_the_authors_reader_moves(say, strict, by_authors):
    """The table of docs/benchmarks/normad.md, over as many stories of each label; each model knows all answers."""
    scored = [score("rule.v1", {**DOC, "label": label}, [say(option)]) for label, option in LABELS.items()]
    assert sum(one.score for one in scored) / 3 == pytest.approx(strict)
    assert sum(one.values[AUTHORS.name] for one in scored) / 3 == pytest.approx(by_authors)
