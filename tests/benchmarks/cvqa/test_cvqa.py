"""CVQA: its prompts byte by byte, its data, single replies, and its means."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.choices import UNPARSED
from culture_tasks.benchmarks.cvqa.benchmark import BENCHMARK, MACRO, load, macro, score
from culture_tasks.benchmarks.interface import Picture
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.settings import Settings

DOC = {
    "id": "7_1",
    "image_id": "7",
    "language": "Tamil",
    "country": "India",
    "category": "Sports",
    "question": "Who?",
    "options": ["one", "two", "three", "four"],
    "answer": "C",
    "license": "CC0 1.0",
    "data": "0",
}


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (
            "cvqa",
            "Question: Who? \n\n Options: A. one\nB. two\nC. three\nD. four \n\n Answer with the option's letter from "
            "the given choices directly.",
        ),
        (
            "cvqa_vlmevalkit",
            "Question: Who?\nOptions:\nA. one\nB. two\nC. three\nD. four\nSelect the best answer to the above "
            "multiple-choice question based on the image. Respond with only the letter of the correct option (A, B, C, "
            "or D).\nThe best answer is: ",
        ),
    ],
)
def test_the_prompts(task, text):
    assert task_named(task).prompt(DOC).parts == (Picture(), text)


def test_a_reply_is_right_wrong_or_unread():
    answered = score("pangea.v1", DOC, ["three", "A", "It is a temple", "B or C"])
    assert (answered.score, answered.labels) == (1 / 4, ("C", "A", None, None))
    assert answered.values == {MACRO.name: ["Tamil (India)", 1 / 4], UNPARSED.name: 2 / 4}
    assert (answered.cluster, answered.facts) == ("7", {"license": "CC0 1.0"})


def test_in_the_mean_over_pairs_each_weighs_the_same():
    assert macro([("a", 1), ("a", 1), ("a", 0), ("b", 0)]) == pytest.approx(1 / 3)


def test_the_questions_in_both_languages_with_their_images(fixture_data):
    settings = Settings(data=fixture_data)
    local, english = load(settings, english=False), load(settings, english=True)
    assert (local.rows[0]["options"][0], english.rows[0]["options"][0]) == ("Putih", "White")
    assert [doc["image_id"] for doc in local.rows] == ["101", "101", "102", "201"]
    assert (local.rows[3]["language"], local.rows[3]["country"], local.rows[3]["answer"]) == ("Japanese", "Japan", "D")
    assert len(local.images) == 4
    counts = {count.name: count.found for count in BENCHMARK.check(Settings(data=fixture_data)).counts}
    assert counts["pairs of language and country"] == "2"
