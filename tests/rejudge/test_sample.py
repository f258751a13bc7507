"""``culture-tasks rejudge --sample``: one judge on everything, another on a draw, and the score of the two together."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from support.checked_runs import write_ratings
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


def test_a_score_that_needs_no_judge_stays_that_of_all_responses(tmp_path, monkeypatch, written):
    written("lm_eval", "lexical", ("crosscult_diagnostic",))

    def overlaps(report):
        cells = {(one.row, one.where): one for one in report.groups if one.statistic == "rouge_l"}
        return [
            (where, cell.value, cell.low, cell.n, cell.flags) for (row, where), cell in cells.items() if row == "e1"
        ]

    before = overlaps(report_of(tmp_path))
    stern(monkeypatch)
    assert main(["rejudge", str(tmp_path), "--judge", "openai:stern", "--sample", "3"]) == 0
    report = report_of(tmp_path)
    [cell] = [cell for cell in report.units["crosscult_diagnostic"].cells.values() if "subset" in cell.flags]
    assert "unlike_its_file" not in cell.flags
    assert overlaps(report)
    assert set(overlaps(report)) <= set(before)  # without groups that the sample has none of


def test_people_rate_a_part_of_the_sample(tmp_path, monkeypatch, written, capsys):
    written("lm_eval", "lexical", ("care",))
    stern(monkeypatch)
    assert main(["rejudge", str(tmp_path), "--judge", "openai:stern", "--sample", "8"]) == 0
    sheet = tmp_path / "sheet"
    assert main(["spotcheck", "draw", str(tmp_path), "-n", "15", "-o", str(sheet)]) == 0
    rows = json.loads((sheet / "spotcheck.json").read_text())["rows"]
    ratings = write_ratings(sheet, tmp_path / "amina.csv", **{row["row"]: 2 + at % 7 for at, row in enumerate(rows)})
    capsys.readouterr()
    assert main(["spotcheck", "score", str(sheet), str(ratings), "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    [line] = [line for line in said.partition("Agreement")[0].splitlines() if "scripted" in line and " all " in line]
    assert re.search(r" 15 +24 ", line)
    assert "are of the 8 of 10 responses that scripted graded" in " ".join(said.split())


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


def test_what_can_not_be_sampled_is_one_message(tmp_path, written, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_SUBSET", "5")
    written("lmms_eval", "none", ("care_ja",))
    assert main(["rejudge", str(tmp_path), "--judge", "lexical", "--sample", "3"]) == 1
    assert "care_ja is of a subset of its documents already" in capsys.readouterr().err
    assert main(["rejudge", str(tmp_path), "--judge", "lexical", "--sample", "3", "--failed-only"]) == 1
    assert "Leave out --failed-only" in capsys.readouterr().err


def test_a_sample_costs_its_part(tmp_path, written, capsys):
    written("lm_eval", "none", ("care_zh",))
    arguments = ["cost", "--results", str(tmp_path), "--judge", "openai:gpt-4o", "--json"]
    assert main([*arguments, "--sample", "4"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"][0]["verdicts"] == 4
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["tasks"][0]["verdicts"] == 10
    assert main(["cost", "--tasks", "care_zh", "--judge", "openai:gpt-4o", "--sample", "4"]) == 1
    assert "with --results" in capsys.readouterr().err
