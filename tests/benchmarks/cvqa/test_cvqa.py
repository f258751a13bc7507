"""CVQA: its documents in both languages, single replies, and the mean over pairs."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.choices import UNPARSED
from culture_tasks.benchmarks.cvqa.benchmark import MACRO, macro
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.settings import Settings


def test_the_questions_in_both_languages_with_their_images(fixture_data):
    local, english = (task_named(task).data.load(Settings(data=fixture_data)) for task in ("cvqa", "cvqa_en"))
    assert (local.rows[0]["options"][0], english.rows[0]["options"][0]) == ("Putih", "White")
    assert [doc["image_id"] for doc in local.rows] == ["101", "101", "102", "201"]
    assert (local.rows[3]["language"], local.rows[3]["country"], local.rows[3]["answer"]) == ("Japanese", "Japan", "D")
    assert len(local.images) == 4


def test_a_reply_is_right_wrong_or_unread(fixture_data):
    doc = task_named("cvqa_en").data.load(Settings(data=fixture_data)).rows[0]  # the answer is White, A
    answered = task_named("cvqa_en").score(doc, ["White", "B", "It is a temple", "B or C"])
    assert (answered.score, answered.labels) == (1 / 4, ("A", "B", None, None))
    assert answered.values == {MACRO.name: ["Indonesian (Indonesia)", 1 / 4], UNPARSED.name: 2 / 4}
    assert (answered.cluster, answered.facts) == ("101", {"license": doc["license"]})


def test_in_the_mean_over_pairs_each_weighs_the_same():
    assert macro([("a", 1), ("a", 1), ("a", 0), ("b", 0)]) == pytest.approx(1 / 3)  # (2/3 + 0) / 2
