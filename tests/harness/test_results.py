"""What the results of both harnesses say of our tasks: metrics, standard errors, rows of groups."""

from __future__ import annotations

import json
import math
from statistics import mean, stdev
from types import SimpleNamespace

import pytest
from support.cedar_data import said, write_folder
from support.crosscult_cases import rows as crosscult_rows
from support.crosscult_cases import write_folder as write_crosscult
from support.in_process import variant
from support.scripted_judge import ScriptedJudge, install
from support.scripted_models import run_scripted

from culture_tasks.errors import CultureTasksError
from culture_tasks.harness import results as harness_results
from culture_tasks.harness.extending import extend
from culture_tasks.harness.records import Records
from culture_tasks.judges.rubric.verdicts import Verdict

pytestmark = pytest.mark.filterwarnings("ignore")

HARNESSES = ("lm_eval", "lmms_eval")


def run(harness, tasks, *, answer=lambda doc: "x", **options):
    """Runs tasks with a model that always says the same, or what a script for CEDAR says."""
    return run_scripted(harness, answer, tasks, **options)[1]


def _withheld(folder, monkeypatch, fixture_data):
    home = folder / "culturalvqa"
    home.mkdir(parents=True)
    lines = (fixture_data / "culturalvqa" / "test.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    rows = [{name: json.loads(line)[name] for name in ("u_id", "question")} for line in lines]
    (home / "test.json").write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(folder))
    monkeypatch.setenv("CULTURE_TASKS_SUBMISSIONS", str(folder / "submissions"))


def results_of(kind, harness, folder, monkeypatch, fixture_data):
    """Runs one kind of task whose metrics differ from run to run."""
    if kind == "repeats" and harness == "lm_eval":
        return run(harness, variant(folder, "lm_eval", "care_zh", repeats=3), include=folder)
    if kind == "repeats":
        return run(harness, ["care_zh"], repeats=3)
    if kind == "withheld":
        _withheld(folder, monkeypatch, fixture_data)
        return run(harness, ["culturalvqa_blind"])
    if kind == "cedar":
        monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(folder)))
        return run(harness, ["cedar_text", "cedar_text_zh"], answer=said)
    if kind == "crosscult":
        write_crosscult(folder, crosscult_rows())
        monkeypatch.setenv("CULTURE_TASKS_DATA", str(folder))
        return run(harness, ["crosscult_diagnostic"])
    monkeypatch.setenv("CULTURE_JUDGE", kind)
    return run(harness, ["care_zh", "culturalvqa_blind"], limit=3)


KINDS = ("lexical", "none", "repeats", "withheld", "cedar", "crosscult")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("harness", HARNESSES)
def test_a_sample_has_one_record_and_the_results_have_all_numbers(harness, kind, tmp_path, monkeypatch, fixture_data):
    results = results_of(kind, harness, tmp_path, monkeypatch, fixture_data)
    for task, samples in results["samples"].items():
        assert [metric["metric"] for metric in results["configs"][task]["metric_list"]] == ["record"]
        keys = results["results"][task].keys() - _stability(results, task)
        names = {key.removesuffix(",none") for key in keys if key.endswith(",none") and "_stderr" not in key}
        assert names
        assert "record" not in names
        assert {f"{name}_stderr,none" for name in names} == {key for key in keys if "_stderr" in key}
        assert ("care_rating_lexical_run_sd" in names) is (kind == "repeats")  # a spread is over repeats alone
        assert len(_rows(names)) <= 12
        assert set(results["higher_is_better"][task]) == set(names)
        assert all(isinstance(sample["record"], dict) for sample in samples)
    # the harness's own logger of samples reads every listed metric from every sample
    module = __import__(f"{harness}.loggers.wandb_logger", fromlist=["WandbLogger"])
    logger = module.WandbLogger.__new__(module.WandbLogger)
    recorded = {}
    logger.run, logger.step = SimpleNamespace(log=lambda values, step=None: recorded.update(values)), None
    logger.post_init(results)
    logger.task_configs = results["configs"]
    monkeypatch.setattr(logger, "_log_samples_as_artifact", lambda *_: None, raising=False)
    logger.log_eval_samples(results["samples"])
    assert recorded


def _rows(names):
    """The names that have a row: parts of the data and emotions are in the columns."""
    overall = {name for name in names if not any(name.startswith(f"{base}_") for base in names)}
    beside = {f"{base}_{rest}" for base in overall for rest in ("coverage", "unscored", "run_sd", "avg", "var")}
    return {name for name in overall | (beside & set(names)) if not name.startswith(("gepp_", "lsepp_"))}


def _stability(results, task):
    """lmms-eval's own numbers over repeats."""
    endings = ("_expected_accuracy", "_consensus_accuracy", "_internal_variance", "_consistency_rate")
    return {key for key in results["results"][task] if key.partition(",")[0].endswith(endings)}


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_standard_error_stands_beside_its_value(harness, monkeypatch):
    ratings = iter([2.0, 4.0, 9.0])
    install(monkeypatch, ScriptedJudge(lambda item: Verdict("scored", next(ratings)), threads=1))
    row = run(harness, ["care_zh"], limit=3)["results"]["care_zh"]
    assert row["care_rating_stderr,none"] == pytest.approx(math.sqrt(13) / math.sqrt(3))  # sqrt((9 + 1 + 16) / 2)
    assert (row["care_rating,none"], row["care_rating_coverage_stderr,none"]) == (5.0, 0.0)
    assert (row["care_rating_unscored,none"], row["care_rating_unscored_stderr,none"]) == (0, "N/A")
    assert not [key for key in row if "opinion" in key]  # no item of that category


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


def test_the_mean_of_roles_weighs_them_the_same(tmp_path, monkeypatch):
    write_crosscult(tmp_path, crosscult_rows())
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    monkeypatch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0")
    endings = [Verdict("scored", 3.0), Verdict("failed", error="503"), Verdict("scored", 9.0)]
    install(monkeypatch, ScriptedJudge(lambda item: endings[len(item.question) % 3]))
    results = run("lmms_eval", ["crosscult_single"])
    tasks = [results["results"][task] for task in results["samples"]]
    row = results["results"]["crosscult_single"]
    for name in ("rouge_l", "judge_score"):
        assert row[f"{name},none"] == pytest.approx(mean(task[f"{name},none"] for task in tasks), nan_ok=True)
    assert row["judge_score_unscored,none"] == sum(task["judge_score_unscored,none"] for task in tasks)


def test_a_run_of_others_alone_needs_no_settings_of_ours(monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE_CONCURRENCY", "many")
    configs, better = {"mme": {"metric_list": []}}, {"mme": {}}
    harness_results.write_results({"mme": None}, rows={}, configs=configs, better=better)
    assert configs == {"mme": {"metric_list": []}}


def test_an_aggregation_is_logged_without_an_address_and_a_harness_without_a_function_is_named():
    assert str(Records()) == "culture_tasks: records"
    with pytest.raises(CultureTasksError, match=r"found no _process_results in .*version of the harness"):
        extend(math, "_process_results", lambda original: original)
