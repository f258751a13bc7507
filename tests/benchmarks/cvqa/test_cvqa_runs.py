"""CVQA in real runs of both harnesses and in the report, with numbers that are worked out by hand."""

from __future__ import annotations

import csv

import pytest
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main

pytestmark = pytest.mark.slow

# Of three Indonesian questions two are right and one has no choice; the Japanese one is wrong.
SAID = {"101_0": "A", "101_1": "B. Noodles", "102_0": "I can't see.", "201_0": "A"}
EXPECTED = {"cvqa_en: Questions": 50, "cvqa_en: Pairs": 100 / 3, "cvqa_en: Unparsed": 25}


def test_both_harnesses_and_the_report_give_what_was_worked_out_by_hand(tmp_path, fixture_data, monkeypatch):
    from support.scripted_models import ScriptedChat, ScriptedLM

    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    model = ScriptedLM(lambda doc: SAID[doc["id"]])
    write_lm_eval(tmp_path / "a", ["cvqa_en"], None, "lm", model, bootstrap_iters=0)
    write_lmms_eval(
        tmp_path / "b", ["cvqa_en"], "chat", lmms=ScriptedChat(lambda doc: SAID[doc["id"]]), bootstrap_iters=0
    )
    arguments = [str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "report"), "--formats", "csv,json"]
    assert main(["report", *arguments]) == 0
    with (tmp_path / "report" / "csv" / "cvqa.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    for row in rows:
        assert {name: float(row[name]) for name in EXPECTED} == pytest.approx(EXPECTED, abs=0.05)
    assert {arguments[1]["max_gen_toks"] for arguments in model.seen} == {16}
    assert {len(list(arguments[2]["visual"])) for arguments in model.seen} == {1}
