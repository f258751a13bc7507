"""NormAd in real runs of both harnesses and in the report, with numbers that are worked out by hand."""

from __future__ import annotations

import csv

import pytest
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main

pytestmark = pytest.mark.slow


def say(doc):
    """Is right about the first country, in lower case about the second, neutral about the third; refuses the others."""
    said = {"china": "Yes.", "japan": "no", "india": "3) Neither"}
    return said.get(doc["country"], "I can't say.")


@pytest.fixture(scope="module")
def report(tmp_path_factory, fixture_data):
    from support.scripted_models import ScriptedChat, ScriptedLM

    output = tmp_path_factory.mktemp("normad")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        write_lm_eval(output / "a", ["normad"], None, "lm", ScriptedLM(say), bootstrap_iters=0)
        write_lmms_eval(output / "b", ["normad_rule"], "chat", lmms=ScriptedChat(say), bootstrap_iters=0)
        arguments = [str(output / "a"), str(output / "b"), "-o", str(output / "report"), "--formats", "csv"]
        assert main(["report", *arguments]) == 0
    return output / "report" / "csv"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("normad_score", {"Given the norm (rule of thumb)": 50}),
        ("normad_acc_yes_no", {"Given the norm (rule of thumb)": 50}),
        # "no" in lower case and both refusals are neutral to it, which one of the refused stories is.
        ("normad_acc_authors", {"Given the norm (rule of thumb)": 50}),
        ("normad_unparsed", {"Given the norm (rule of thumb)": 50}),
        ("normad_rule_said", {"Yes": 100 / 6, "No": 100 / 6, "Neither": 100 / 6}),
        ("normad_rule_by_bin", {"Confucian": 100, "Latin America": 0, "All": 50}),
        ("normad_rule_by_topic", {"Visiting": 50, "Gifts": 0}),
    ],
)
def test_both_harnesses_give_what_was_worked_out_by_hand(report, table, expected):
    with (report / f"{table}.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    for row in rows:
        assert {name: float(row[name]) for name in expected} == pytest.approx(expected, abs=0.05)
