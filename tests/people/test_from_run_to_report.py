"""The whole way with a harness: record, judge twice, draw, rate, score, report."""

from __future__ import annotations

import json

import pytest
from support.checked_runs import write_ratings
from support.scripted_judge import ScriptedJudge
from support.written_runs import write_lm_eval

from culture_tasks.cli.main import main
from culture_tasks.judges.rubric.verdicts import Verdict

pytestmark = pytest.mark.filterwarnings("ignore")


def by_length(bias):
    """A judge that goes by the length of the question, and is off by so much."""
    return lambda item: Verdict("scored", float(max(1, min(10, 2 + len(item.question) % 7 + bias))))


@pytest.mark.slow
def test_two_judges_and_people(tmp_path, monkeypatch, fixture_data, capsys):
    monkeypatch.setenv("CULTURE_JUDGE", "none")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    runs, sheet = tmp_path / "runs", tmp_path / "sheet"
    write_lm_eval(runs, ("care",), lambda prompt, _: f"<think>hm</think>{prompt[::-1]}")
    assert main(["spotcheck", "draw", str(runs), "-n", "24", "-o", str(sheet)]) == 0  # before anything is judged
    judges = {"openai:mild": ScriptedJudge(by_length(2), "mild"), "openai:stern": ScriptedJudge(by_length(-1), "stern")}
    monkeypatch.setattr(
        "culture_tasks.harness.session.shared_judge", lambda settings, model: judges[settings.judge or ""]
    )
    assert main(["rejudge", str(runs), "--judge", "openai:mild", "--judge", "openai:stern"]) == 0
    ratings = write_ratings(sheet, tmp_path / "amina.csv")
    assert main(["spotcheck", "score", str(sheet), str(ratings), "--results", str(runs)]) == 0
    capsys.readouterr()
    report = ["report", str(runs), "-o", str(tmp_path / "out"), "--formats", "json,html", "--spotcheck", str(sheet)]
    assert main(report) == 0
    content = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    tables = {table["key"]: table for table in content["tables"]}
    checked = [row for row in tables["spotcheck"]["rows"] if row["labels"][3] == "all"]
    assert sorted(row["labels"][1] for row in checked) == ["a panel of stern and mild", "mild", "stern"]
    assert all(row["cells"][1]["low"] is not None for row in checked)
    [panel] = [row for row in tables["judges"]["rows"] if row["labels"][2] == "all"]
    labels = [column["label"] for column in tables["judges"]["columns"]]
    of_judges = dict(zip(labels, panel["cells"], strict=True))
    assert of_judges["mild"]["value"] > of_judges["Majority or mean"]["value"] > of_judges["stern"]["value"]
