"""Runs with ``--predict_only``: nobody grades, and the answers are recorded to be graded later."""

from __future__ import annotations

import json
import math

import pytest
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main
from culture_tasks.errors import JudgeNotConfiguredError, JudgeUnreachableError

pytestmark = pytest.mark.filterwarnings("ignore")

TASKS = ["care_zh", "cedar_text_en"]


def lm_eval(folder, **options):
    return write_lm_eval(folder, TASKS, lambda prompt, _: "answer", **options)


def lmms_eval(folder, **options):
    return write_lmms_eval(folder, TASKS, **options)


@pytest.mark.parametrize(
    ("run", "judge", "count", "responses", "are"),
    [(lm_eval, None, 1, "1 response", "is"), (lmms_eval, "openai:gpt-4o", 2, "2 responses", "are")],
)
def test_a_prediction_needs_no_judge_and_can_be_graded_later(
    run, judge, count, responses, are, monkeypatch, tmp_path, caplog, capsys
):
    monkeypatch.delenv("CULTURE_JUDGE")
    if judge:
        monkeypatch.setenv("CULTURE_JUDGE", judge)  # without a key: asking it would be an error
    results = run(tmp_path, limit=count, predict_only=True)
    row = json.loads(results.read_text(encoding="utf-8"))["results"]["care_zh"]
    assert math.isnan(row["care_rating,none"])
    assert (row["care_rating_coverage,none"], row["care_rating_unscored,none"]) == (0, count)
    assert [text for text in caplog.messages if "graded" in text or "NaN" in text] == [
        f"{responses} {are} recorded and not graded: `culture-tasks rejudge RESULTS --judge openai:gpt-4o`, or another "
        "judge, grades them."
    ]
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "report"), "--formats", "markdown"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{responses} {are} recorded and not graded: culture-tasks rejudge ") for line in said)
    assert not any("No judge graded" in line for line in said)
    assert f"({responses} not graded)" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")

    assert main(["rejudge", str(tmp_path), "--judge", "lexical"]) == 0
    first, last = sorted(results.parent.glob("*results*.json"))
    assert first == results
    row = json.loads(last.read_text(encoding="utf-8"))["results"]["care_zh"]
    assert row["care_rating_coverage,none"] == 1

    with pytest.raises((JudgeNotConfiguredError, JudgeUnreachableError)):
        run(tmp_path, limit=count)  # grades
