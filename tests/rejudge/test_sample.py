"""``culture-tasks rejudge --sample``: one judge on everything, another on a draw, and the score of the two together."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.rejudged import content, result_files, samples_of
from support.reports import report_of, rows_of, tables_of
from support.scripted_judge import ScriptedJudge, install

from culture_tasks.cli.main import main
from culture_tasks.judges.rubric.verdicts import Verdict
from culture_tasks.metrics.prediction_powered import corrected_mean

pytestmark = pytest.mark.filterwarnings("ignore")


def stern(monkeypatch):
    """Installs a judge whose ratings depend on the length of the question, and returns what it will have been asked."""
    asked = []

    def rated(item):
        asked.append(item.question)
        return Verdict("scored", float(1 + len(item.question) % 9), rationale="so")

    install(monkeypatch, ScriptedJudge(rated))
    return asked


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_a_sample_gives_the_judges_score_of_all_with_the_help_of_the_other_verdicts(
    harness, tmp_path, monkeypatch, written
):
    written(harness, "lexical", ("care",))
    [whole] = result_files(tmp_path)
    asked = stern(monkeypatch)
    assert main(["rejudge", str(tmp_path), "--judge", "openai:stern", "--sample", "4"]) == 0
    new = result_files(tmp_path)[-1]
    read, samples = content(new), samples_of(new)
    assert len(asked) == 12
    assert (len(samples), read["n-samples"]["care_zh"]) == (4, {"original": 10, "effective": 4})
    assert {sample["record"]["probability"] for sample in samples} == {0.4}
    assert read["configs"]["care_zh"]["metadata"]["subset"]["of_documents"] == 10
    assert read["results"]["care_zh"]["alias"].endswith("(4 of 10)")

    report = report_of(tmp_path)
    [cell] = [cell for cell in report.units["care"].cells.values() if "subset" in cell.flags]
    parts = []
    for task in ("care_ar", "care_ja", "care_zh"):
        overlap = {each["doc_id"]: each["record"]["score"] for each in samples_of(whole, task)}
        given = {each["doc_id"]: each["record"]["score"] for each in samples_of(new, task)}
        ratings = [given.get(place, np.nan) for place in overlap]
        parts.append(corrected_mean(list(overlap.values()), ratings, ends=(1, 10)).overall)
    assert cell.value == pytest.approx(np.mean([part.value for part in parts]))
    reach = np.hypot.reduce([part.value - part.set_low for part in parts]) / 3
    assert cell.low == pytest.approx(max(cell.value - reach, 1.0))
    assert "with the verdicts of text overlap on all" in cell.note


def test_the_next_judge_grades_the_run_and_not_the_sample(tmp_path, monkeypatch, written):
    written("lm_eval", "none", ("care_zh",))
    stern(monkeypatch)
    assert main(["rejudge", str(tmp_path), "--judge", "openai:stern", "--sample", "3"]) == 0
    assert main(["rejudge", str(tmp_path), "--judge", "lexical"]) == 0
    assert len(samples_of(result_files(tmp_path)[-1])) == 10
    assert main(["rejudge", str(tmp_path), "--judge", "lexical", "--sample", "99"]) == 0
    assert "rejudged_sample" not in content(result_files(tmp_path)[-1])["config"]


def test_a_judge_that_changed_behind_its_name_is_seen_and_its_sample_takes_no_place(tmp_path, monkeypatch, written):
    written("lm_eval", "none", ("care_zh",))
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", "off")
    for rating, options in ((4.0, ()), (6.0, ("--sample", "3"))):
        install(monkeypatch, ScriptedJudge(lambda _, rating=rating: Verdict("scored", rating)))
        assert main(["rejudge", str(tmp_path), "--judge", "openai:judge", *options]) == 0
    report = report_of(tmp_path)
    [row] = rows_of(tables_of(report)["judge_again"])
    old, new, difference, identical, alpha, items = row.cells
    assert (old.value, new.value, difference.value, identical.value, items.value) == (4.0, 6.0, 2.0, 0.0, 3)
    # Of the 3 pairs all differ, and of the 15 pairs of the 6 ratings 9: alpha = 1 - 1 / (9 / 15).
    assert alpha.value == pytest.approx(1 - 15 / 9)
    assert difference.note.startswith("no interval")  # all differences are alike
    cells = {report.entrants[key].label: cell.value for key, cell in report.units["care_zh"].cells.items()}
    assert cells == {"toy": 4.0}  # no second row, and no test of the model against itself
    assert "comparisons" not in tables_of(report)


def test_a_run_of_a_subset_is_not_sampled(tmp_path, written, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_SUBSET", "5")
    written("lmms_eval", "none", ("care_ja",))
    assert main(["rejudge", str(tmp_path), "--judge", "lexical", "--sample", "3"]) == 1
    assert "care_ja is of a subset of its documents already" in capsys.readouterr().err


def test_a_sample_costs_its_part(tmp_path, written, capsys):
    written("lm_eval", "none", ("care_zh",))
    arguments = ["cost", "--results", str(tmp_path), "--judge", "openai:gpt-4o", "--json"]
    assert main([*arguments, "--sample", "4"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"][0]["verdicts"] == 4
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["tasks"][0]["verdicts"] == 10
