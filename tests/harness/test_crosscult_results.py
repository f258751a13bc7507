"""CrossCult's records: answers, base answers, facts, and what its judge is asked."""

import pytest
from support.crosscult_cases import rows, write_folder

from culture_tasks.benchmarks.crosscult.scoring import Insertions, score
from culture_tasks.benchmarks.interface import responses_of
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.records import scorer_of

SINGLE = "crosscult_single_reliability"
LOCALITY = "crosscult_single_cross_scenario_locality"


@pytest.fixture
def doc(tmp_path, monkeypatch):
    """The first document of a task."""
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(tmp_path, rows())))
    return lambda task: load_for_evaluation(task)[0]


def record_of(task, doc, *runs):
    return scorer_of(task)(doc, Insertions().apply([list(runs)], docs=None))


@pytest.mark.parametrize(
    ("runs", "answers"),
    [
        (["a", "b"], [("a", "a"), ("b", "b")]),
        ([["a", "b"], ["c", "d"]], [("a", "b"), ("c", "d")]),
        ([["a", "b", '{"activated": 0}'], ["c", "d", "{}"]], [("a", "b"), ("c", "d")]),
        ([None], [("", "")]),
    ],
)
def test_every_response_becomes_an_answer_and_a_base_answer(doc, runs, answers):
    filtered = Insertions().apply([runs], docs=None)[0]
    for passed_on in ([filtered], [text.strip() for text in filtered]):  # by lm-eval, by lmms-eval
        answered = score(doc(LOCALITY), responses_of(passed_on))
        assert answered.responses == [text for text, _ in answers]
        assert answered.references == (answers[0][1],)
    with pytest.raises(ValueError, match="a list of 4; expected"):
        Insertions().apply([[["a", "b", "{}", "d"]]], docs=None)


@pytest.mark.parametrize(
    ("answer", "base", "rouge"),
    [
        ("whatever it says", "whatever it says", 100.0),  # an ordinary model, which has one answer
        (["a b c d", "a b x y"], "a b x y", 50.0),  # L = 2 of 4 and 4 tokens
        ("", "", 100.0),
    ],
)
def test_in_locality_an_answer_is_compared_with_that_before_the_insertion(doc, answer, base, rouge):
    record = record_of(LOCALITY, doc(LOCALITY), answer)
    assert record["values"] == {"rouge_l": pytest.approx(rouge)}
    if answer:
        assert record["references"] == [base]
        assert record["runs"][0]["response"] == (answer if isinstance(answer, str) else answer[0])


def test_a_record_holds_all_that_other_tables_and_a_regrading_need(doc):
    single = doc(SINGLE)
    record = record_of(SINGLE, single, "x")
    assert (record["item"], record["cluster"]) == (single["id"], single["scenario"])
    assert record["data"] == {name: single[name] for name in ("data", "draw")}
    groups = {name: single[name] for name in ("role", "topic", "partition", "language")}
    assert record["groups"].items() >= {**groups, "after": "1"}.items()
    facts = {name: single[name] for name in ("case_id", "setting", "scenario", "order", "step")}
    assert record["facts"].items() >= facts.items()
    assert (record["values"], record["question"]) == ({"rouge_l": 0.0}, single["question"])
    assert (record["judge_language"], record["judge"]["rubric"]) == ("Chinese", "crosscult")
