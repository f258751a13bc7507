"""Exports of the report, and the examples of the page on them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pandas as pd
import pytest
from jsonschema import Draft7Validator
from support.sample_files import write_run, write_vqa

from culture_tasks import frames
from culture_tasks.cli.main import main
from culture_tasks.report.building import Options, build
from culture_tasks.report.every_eval_ever import write_eval_logs

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = Draft7Validator(json.loads((ROOT / "tests/fixtures/every_eval_ever/eval.schema.json").read_text("utf-8")))
WEAK = [1.0, 0.0] * 20

pytestmark = pytest.mark.filterwarnings("ignore")


def logs_in(folder):
    return {path: json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))}


# Every Eval Ever


def test_no_number_interval_judge_or_hash_is_lost(results, tmp_path):
    report = build([str(results)], Options())
    write_eval_logs(report, tmp_path, "Uni")
    found = {}
    for log in logs_in(tmp_path).values():
        SCHEMA.validate(log)
        for one in log["evaluation_results"]:
            details = one["metric_config"]["additional_details"]
            where = tuple(map(tuple, json.loads(details.get("groups", "[]"))))
            found[log["model_info"]["id"], details["task"], details["statistic"], where] = one
    numbers = {(report.entrants[one.row].model, one.unit, one.statistic, one.where): one for one in report.numbers}
    numbers = {key: number for key, number in numbers.items() if number.value is not None}
    assert found.keys() == numbers.keys()
    judged = hashed = 0
    for key, number in numbers.items():
        one = found[key]
        metric, score, uncertainty = one["metric_config"], one["score_details"], one["score_details"]["uncertainty"]
        interval = uncertainty.get("confidence_interval", {"lower": None, "upper": None})
        coverage = json.loads(score["details"].get("coverage", "null"))
        logged = (score["score"], uncertainty["num_samples"], coverage, interval["lower"], interval["upper"])
        assert logged == (number.value, number.n, number.coverage, number.low, number.high)
        assert float(metric["min_score"]) <= number.value <= float(metric["max_score"])
        settings = {report.runs[run].task: report.runs[run].settings for run in number.runs}
        prompts = {task: each.asked.sha for task, each in settings.items() if each.asked is not None}
        generation = one["generation_config"]["additional_details"]
        assert json.loads(generation.get("prompts_sha256", "{}")) == prompts
        judges = {judge.model: judge.prompts for each in settings.values() for judge in each.judges}
        hashes = {
            judge["model_info"]["id"]: json.loads(judge["additional_details"]["prompt_sha256"])
            for judge in metric.get("llm_scoring", {"judges": []})["judges"]
        }
        if number.statistic == "score":
            assert hashes == {name: {rubric: sha for rubric, _, sha in own} for name, own in judges.items()}
        judged, hashed = judged + bool(hashes), hashed + bool(prompts)
    assert min(judged, hashed) >= 4


def test_tasks_of_the_harnesses_are_written_too_and_the_same_runs_overwrite_their_files(tmp_path):
    values = {"mmlu": {"acc,none": 0.6, "acc_stderr,none": 0.01}, "wikitext": {"word_perplexity,none": 12.5}}
    write_run(tmp_path / "runs", "org/m", {}, results=values)
    for names, count in (((), 1), ((), 1), (("org/m=org/other",), 2)):
        write_eval_logs(build([str(tmp_path / "runs")], Options(names=names)), tmp_path / "eee", "Uni")
        assert len(logs_in(tmp_path / "eee")) == count
    for log in logs_in(tmp_path / "eee").values():
        SCHEMA.validate(log)
        assert [one["score_details"]["score"] for one in log["evaluation_results"][:2]] == [0.6, 12.5]
        assert log["evaluation_results"][1]["metric_config"]["max_score"] == "Infinity"


def test_names_of_models_lead_nowhere_and_files_hold_no_key(tmp_path):
    hostile = ("../../out", "a/../../b", "..", "x\ny\x00/z \ud800: {}", "- [a](b)\n- dataset: c")
    for number, model in enumerate(hostile):
        arguments = [f"{name}=sk-secret" for name in ("api_key", "hf_token", "access_token", "password", "headers")]
        arguments += ["model=m", "base_url=https://me:pw@host.test/v1?key=sk-secret", "max_tokens=77"]
        as_text, as_dict = ",".join(arguments), dict(argument.split("=", 1) for argument in arguments)
        config = {"model": "x", "model_args": as_dict if number % 2 else as_text}
        write_vqa(tmp_path / "runs" / str(number), model, WEAK, config=config)
    out = tmp_path / "report"
    assert main(["report", str(tmp_path / "runs"), "-o", str(out), "--formats", "json", "--export", "eee"]) == 0
    assert "max_tokens=77" in (out / "report.json").read_text("utf-8")
    assert "sk-secret" not in (out / "report.json").read_text("utf-8")
    files = [path for path in (tmp_path / "report" / "exports").rglob("*") if path.is_file()]
    assert len(files) == len(hostile)
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "report"}
    for path in files:
        text = path.read_text("utf-8")
        assert not re.search(r"sk-secret|host\.test", text)
        SCHEMA.validate(json.loads(text))


# Examples of the page


def example(word: str) -> str:
    """The page's code that has a word."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "exports.md").read_text("utf-8"), re.DOTALL)
    return next(block for block in blocks if word in block)


@pytest.fixture
def here(tmp_path, monkeypatch):
    write_vqa(tmp_path / "results" / "weak", "org/weak", WEAK)
    write_vqa(tmp_path / "results" / "strong", "org/strong", [1.0, 1.0] * 19 + [None, 0.0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_parquet_file_has_all_scores(here):
    exec(example("to_parquet"), {})
    pd.testing.assert_frame_equal(pd.read_parquet("results.parquet"), frames.scores("results"))


@pytest.mark.slow
def test_wandb_gets_all_scores_and_sends_nothing(here):
    environment = os.environ | {"WANDB_MODE": "offline", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", example("wandb")], env=environment, check=True, capture_output=True)
    [path] = here.rglob("*.table.json")
    table, scores = json.loads(path.read_text("utf-8")), frames.scores("results")
    assert table["columns"] == list(scores.columns)
    at = table["columns"].index("value")
    assert [row[at] for row in table["data"]] == scores.value.tolist()


def test_mlflow_gets_all_scores_of_each_model(here, monkeypatch):
    """Its calls are recorded here; with MLflow itself, which is no dependency, the example was run by hand."""
    tables, numbers = [], {}
    fake = types.SimpleNamespace(
        start_run=lambda run_name: pytest.MonkeyPatch.context(),
        log_metrics=numbers.update,
        log_table=lambda table, name: tables.append(table),
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    exec(example("mlflow"), {})
    pd.testing.assert_frame_equal(pd.concat(tables).sort_index(), frames.scores("results"))
    assert numbers == {"culturalvqa/lave": 0.5}  # of the last model
