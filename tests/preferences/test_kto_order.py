"""KTO's rows are trained on in the order of the file, and their neighbours are paired."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.preferences.dataset_folder import rows_of
from culture_tasks.preferences.pair_rule import PreferencePair
from culture_tasks.preferences.rated_questions import RatedAnswer, RatedQuestion


def pairs(count, each=1):
    questions = [RatedQuestion(f"Q{n}", f"id{n}", ("A",), "en") for n in range(count)]
    return [
        PreferencePair(question, RatedAnswer(f"good {n}", 9.0, ""), RatedAnswer(f"bad {n}", 1.0, ""))
        for question in questions
        for n in range(each)
    ]


def kto(some, seed=0):
    return list(rows_of("kto", some, plain=True, seed=seed))


@given(st.integers(3, 60), st.integers(0, 5))
def test_neighbours_are_of_different_questions_and_labels_alternate(count, seed):
    rows = kto(pairs(count), seed)
    assert all(one["question_id"] != other["question_id"] for one, other in itertools.pairwise(rows))
    assert [row["label"] for row in rows] == [True, False] * count


@pytest.mark.parametrize("on_a_device", [4, 8])
def test_no_response_is_held_against_its_own_prompt(on_a_device):
    """TRL rotates the responses of the rows that are on a device at once: each meets the next row's prompt."""
    rows = kto(pairs(64))
    for start in range(0, len(rows), on_a_device):
        batch = rows[start : start + on_a_device]
        assert all(row["prompt"] != batch[n - 1]["prompt"] for n, row in enumerate(batch))


def test_the_order_is_drawn_by_the_seed_and_not_that_of_the_source():
    some = pairs(20)
    order = [row["prompt"] for row in kto(some)]
    assert order == [row["prompt"] for row in kto(some)]
    assert order != [row["prompt"] for row in kto(some, seed=1)]
    assert [row["prompt"] for row in kto(some) if row["label"]] != [pair.question.text for pair in some]


def test_a_response_that_is_better_in_one_pair_and_worse_in_another_has_no_label():
    question = RatedQuestion("Q", "id", ("A",), "en")
    low, middle, high = (RatedAnswer(f"response {n}", float(n), "") for n in range(3))
    some = [
        PreferencePair(question, high, low),
        PreferencePair(question, high, middle),
        PreferencePair(question, middle, low),
    ]
    assert [(row["completion"], row["label"]) for row in kto(some)] == [("response 2", True), ("response 0", False)]
