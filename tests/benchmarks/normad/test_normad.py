"""NormAd: its stories with each context, and single replies by both readers."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.choices import UNPARSED
from culture_tasks.benchmarks.normad.benchmark import AUTHORS, LABELS, SAID, TOPIC_OF, YES_OR_NO, authors_label
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.settings import Settings


def test_the_stories_and_their_groups(fixture_data):
    documents = task_named("normad_rule").data.load(Settings(data=fixture_data)).rows
    assert [doc["label"] for doc in documents] == ["yes", "no", "neutral"] * 2
    assert {doc["topic"] for doc in documents} == set(TOPIC_OF.values())
    assert documents[0]["rule"] == "Guests should accept tea that the host pours."
    value = task_named("normad_value").data.load(Settings(data=fixture_data)).rows[0]
    assert value["rule"] == "Respect for hosts"


@pytest.mark.parametrize(
    ("reply", "label", "by_authors"),
    [
        ("Yes", "yes", "yes"),
        ("2) No", "no", "no"),
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
    doc = {"id": "a", "country": "south_korea", "topic": "eating", "story": "Min pours.", "rule": "", "data": "0"}
    assert authors_label(reply) == by_authors
    for gold in LABELS:
        answered = task_named("normad_rule").score({**doc, "label": gold}, [reply])
        assert answered.labels == (label,)
        assert answered.score == float(gold == label)
        assert answered.values[AUTHORS.name] == float(gold == by_authors)
        assert answered.values[UNPARSED.name] == float(label is None)
        assert [answered.values[metric.name] for metric in SAID.values()] == [float(each == label) for each in SAID]
        assert (answered.values[YES_OR_NO.name] is None) == (gold == "neutral")
