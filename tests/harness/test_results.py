"""What the results of both harnesses say of our tasks: metrics, standard errors, rows of groups."""

from __future__ import annotations

import math
from statistics import mean, stdev
from types import SimpleNamespace

import pytest
from support.scripted_judge import ScriptedJudge, install
from support.scripted_models import run_scripted

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import CultureTasksError
from culture_tasks.harness import results as harness_results
from culture_tasks.harness.extending import extend
from culture_tasks.harness.hooks import Hook
from culture_tasks.harness.records import Records
from culture_tasks.judges.rubric.verdicts import Verdict

pytestmark = pytest.mark.filterwarnings("ignore")

HARNESSES = ("lm_eval", "lmms_eval")


def run(harness, tasks, *, answer=lambda doc: "x", **options):
    """Runs tasks with a model that always says the same, or what a script for CEDAR says."""
    return run_scripted(harness, answer, tasks, **options)[1]


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_group_of_care_is_over_all_scored_questions(harness, monkeypatch):
    """Verdicts fail in Japanese alone, and rate by the length of the question."""

    def script(item):
        failed = any("\u3040" <= letter <= "\u30ff" for letter in item.question) and len(item.question) % 2
        return Verdict("failed", error="503") if failed else Verdict("scored", 1.0 + len(item.question) % 10)

    monkeypatch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0.5")
    install(monkeypatch, ScriptedJudge(script))
    results = run(harness, ["care"])
    records = [sample["record"] for task in ("care_ar", "care_ja", "care_zh") for sample in results["samples"][task]]
    scored = [record["score"] for record in records if "score" in record]
    row = results["results"]["care"]
    of_tasks = [results["results"][f"care_{language}"]["care_rating,none"] for language in ("ar", "ja", "zh")]
    assert 0 < len(records) - len(scored) < 10
    assert row["care_rating,none"] == pytest.approx(mean(scored))
    assert row["care_rating,none"] != pytest.approx(mean(of_tasks))
    assert row["care_rating_stderr,none"] == pytest.approx(stdev(scored) / math.sqrt(len(scored)))
    assert row["care_rating_coverage,none"] == pytest.approx(len(scored) / len(records))
    assert row["care_rating_unscored,none"] == len(records) - len(scored)
    if harness == "lmms_eval":
        nationwide = [
            record["score"] for record in records if record["groups"]["scope"] == "nationwide" and "score" in record
        ]
        assert row["care_rating_nationwide,none"] == pytest.approx(mean(nationwide))
    assert not [key for key in row if "worldwide" in key]  # no question of that scope
    assert results["groups"]["care"]["care_rating,none"] == row["care_rating,none"]


def test_a_run_of_others_alone_needs_no_settings_of_ours(monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE_CONCURRENCY", "many")
    configs, better = {"mme": {"metric_list": []}}, {"mme": {}}
    harness_results.write_results({"mme": None}, rows={}, configs=configs, better=better)
    assert configs == {"mme": {"metric_list": []}}


def test_a_task_without_any_record_has_no_numbers_of_ours():
    own = SimpleNamespace(config=SimpleNamespace(process_results=Hook(task_named("care_zh"), print)))
    assert harness_results.evaluated_task(own, {("acc", "none"): [1.0]}) is None


def test_an_aggregation_is_logged_without_an_address_and_a_harness_without_a_function_is_named():
    assert str(Records()) == "culture_tasks: records"
    with pytest.raises(CultureTasksError, match=r"found no _process_results in .*version of the harness"):
        extend(math, "_process_results", lambda original: original)
