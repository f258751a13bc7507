"""CulturalBench in real runs of both harnesses and in the report, with numbers that are worked out by hand."""

from __future__ import annotations

import csv

import pytest
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main

pytestmark = pytest.mark.slow

TASKS = ["culturalbench_easy", "culturalbench_hard"]


def always_false(doc):
    """Says "False" to each statement, and "A" to each question with options."""
    return "A" if "options" in doc else "False"


def knows_china(doc):
    """Judges all options about China right, and those about Japan but one; has no view of the others."""
    if doc["country"] not in ("China", "Japan"):
        return "I am not sure."
    return "True" if "Ring" in doc.get("option", "") else doc["answer"]


@pytest.fixture(scope="module")
def report(tmp_path_factory, fixture_data):
    from support.scripted_models import ScriptedChat, ScriptedLM

    output = tmp_path_factory.mktemp("culturalbench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        write_lm_eval(output / "a", TASKS, None, "false", ScriptedLM(always_false), bootstrap_iters=0)
        write_lmms_eval(output / "b", TASKS, "china", lmms=ScriptedChat(knows_china), bootstrap_iters=0)
        arguments = [str(output / "a"), str(output / "b"), "-o", str(output / "report"), "--formats", "csv"]
        assert main(["report", *arguments]) == 0
    return output / "report" / "csv"


def rows(report, table):
    with (report / f"{table}.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["Model"]: row for row in csv.DictReader(file)}


# Two of five questions have the right option A. Of four questions in Hard, the second model has one with all its rows
# right, and another with three of four.
NAMES = ("Easy: Questions", "Easy: Unparsed", "Hard: Questions", "Hard: Options", "Hard: Called true", "Hard: Unparsed")
EXPECTED = {"false": (40, 0, 0, 75, 0, 0), "china": (40, 60, 25, 100 * 7 / 16, 100 * 3 / 16, 50)}


@pytest.mark.parametrize("model", EXPECTED)
def test_hard_counts_whole_questions_and_easy_choices(report, model):
    row = rows(report, "culturalbench")[model]
    assert [float(row[name]) for name in NAMES] == pytest.approx(EXPECTED[model], abs=0.05)


def test_countries_have_scores_of_whole_questions(report):
    hard = rows(report, "culturalbench_hard_by_country")["china"]
    assert (float(hard["China"]), float(hard["Japan"]), float(hard["India"])) == (100, 0, 0)
