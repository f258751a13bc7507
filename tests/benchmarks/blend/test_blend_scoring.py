"""How one question is scored: over runs, without reasoning, and with both matchers."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.blend import scoring
from culture_tasks.benchmarks.blend.documents import load, load_choices
from culture_tasks.benchmarks.blend.regions import REGIONS
from culture_tasks.benchmarks.blend.scoring import choice_metrics, metrics, score, score_choice

KOREA = next(region for region in REGIONS if region.name == "South_Korea")


@pytest.fixture
def doc(fixture_data):
    return load(KOREA, fixture_data)[0]  # coffee 4 votes, milk 1


def test_repeated_runs_are_averaged_and_reasoning_is_no_answer(doc):
    answered = score(doc, ["커피", "우유", "물", "<think>커피</think>물"], official=False)
    assert answered.score == 2 / 4
    assert answered.values == {"sem_w": (1 + 1 / 4) / 4}
    assert answered.labels == ("커피", "우유", "", "")


def test_with_the_paper_s_matcher_both_rules_have_values(doc, monkeypatch):
    monkeypatch.setattr(scoring, "official_match", lambda answer, response, language: answer == "milk")
    answered = score(doc, ["커피"], official=True)
    assert answered.score == 1.0
    assert answered.values == {"sem_w_official": 1 / 4, "sem_b": 1.0, "sem_w": 1.0}
    assert answered.labels == ("milk",)
    main, *others = metrics(official=True)
    assert set(answered.values) == {metric.name for metric in others}
    assert set(main.groups["topic"]) >= {answered.groups["topic"]}


def test_a_choice_is_right_wrong_or_unread(fixture_data):
    doc = load_choices(KOREA, fixture_data)[0]
    wrong = next(letter for letter, _ in doc["choices"] if letter != doc["answer"])
    answered = score_choice(doc, [doc["answer"], wrong, "none of these"])
    assert answered.score == 1 / 3
    assert answered.values == {"unparsed": 1 / 3}
    assert answered.labels == (doc["answer"], wrong, None)
    assert [metric.name for metric in choice_metrics()] == ["acc", "unparsed"]
