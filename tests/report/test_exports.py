"""Exports of the report, the rows of others, and the examples of the page on both."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from jsonschema import Draft7Validator
from support.sample_files import JUDGE, rewrite, vqa_samples, write_run, write_vqa

from culture_tasks import frames
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.benchmarks.reporting import At
from culture_tasks.cli.main import main
from culture_tasks.errors import DataError
from culture_tasks.harness.scoring import OWN_DATA
from culture_tasks.report.building import Options, build
from culture_tasks.report.exports.every_eval_ever import Evaluator, write_eval_logs
from culture_tasks.results.eval_logs import read_eval_logs

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = {
    name: Draft7Validator(json.loads((ROOT / f"tests/fixtures/every_eval_ever/{name}.schema.json").read_text("utf-8")))
    for name in ("eval", "instance_level_eval")
}
WEAK, STRONG = [1.0, 0.0] * 20, [1.0, 1.0] * 19 + [None, 0.0]
LAX = Options(min_coverage=0.0)
EXPORT_ALL = ("--export", "eee", "--export-samples")

pytestmark = pytest.mark.filterwarnings("ignore")


def logs_in(folder):
    return {path: json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))}


@pytest.fixture
def runs(tmp_path):
    write_vqa(tmp_path / "runs" / "weak", "org/weak", WEAK)
    write_vqa(tmp_path / "runs" / "strong", "org/strong", STRONG)
    return tmp_path / "runs"


@pytest.fixture
def logs(runs, tmp_path):
    """The folder of the logs of both models."""
    write_eval_logs(build([str(runs)], LAX), tmp_path / "eee", Evaluator("Uni"))
    return tmp_path / "eee"


# Every Eval Ever


def test_real_runs_are_written_by_the_schema_and_the_rules_of_the_datastore(results, tmp_path):
    report = build([str(results)], Options())
    write_eval_logs(report, tmp_path, Evaluator("Uni", "third_party", "https://uni.test/runs"), samples=True)
    logs = logs_in(tmp_path)
    assert {log["model_info"]["id"] for log in logs.values()} == report.models
    metrics = Counter(one["metric_config"]["metric_id"] for log in logs.values() for one in log["evaluation_results"])
    assert {"care.care_rating", "culturalvqa.lave", "cedar.acc", "crosscult.rouge_l"} <= metrics.keys()
    for path, log in logs.items():
        SCHEMAS["eval"].validate(log)
        beside = log["detailed_evaluation_results"]
        samples = path.with_name(f"{path.stem}_samples.jsonl")
        assert beside["file_path"] == samples.relative_to(tmp_path).as_posix()
        assert beside["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
        lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
        runs = [run for run in report.runs.values() if run.model == log["model_info"]["id"]]
        assert beside["total_rows"] == len(lines) == sum(run.scored for run in runs)
        without = beside["additional_details"]["samples_without_score"]
        assert int(without) == sum(run.items - run.scored for run in runs)
        ids = {one["evaluation_result_id"] for one in log["evaluation_results"]}
        assert len(ids) == len(log["evaluation_results"])
        for line in lines:
            SCHEMAS["instance_level_eval"].validate(line)
            assert line["evaluation_id"] == log["evaluation_id"]
            assert line["evaluation_result_id"] in ids
        for one in log["evaluation_results"]:
            metric = one["metric_config"]
            assert float(metric["min_score"]) <= one["score_details"]["score"] <= float(metric["max_score"])


def test_no_number_interval_judge_or_hash_is_lost_on_the_way_out_and_back(results, tmp_path):
    report = build([str(results)], Options())
    write_eval_logs(report, tmp_path, Evaluator("Uni"))
    found = {}
    for log in read_eval_logs([str(tmp_path)]).values():
        for one in log.scores:
            details = one.metric.additional_details
            where = tuple(map(tuple, json.loads(details.get("groups", "[]"))))
            key = (log.model, At(details["task"], details["statistic"], where))
            assert key not in found
            found[key] = one
    whole = judged = hashed = 0
    for key, unit in report.units.items():
        for entrant, cell in unit.cells.items():
            if cell.value is None:
                continue
            whole += 1
            one = found[report.entrants[entrant].model, At(key)]
            assert (one.score, one.n, one.coverage) == (cell.value, cell.n, cell.coverage)
            ends = [end for end in one.interval if not math.isnan(end)]
            assert ends == [end for end in (cell.low, cell.high) if end is not None]
            settings = [report.runs[run].settings for run in cell.runs]
            judges = {
                judge.model: {name: sha for name, _, sha in judge.prompts} for each in settings for judge in each.judges
            }
            assert {name: json.loads(prompts) for name, prompts in one.judges.items()} == judges
            asked = {report.runs[run].task: report.runs[run].settings.asked for run in cell.runs}
            hashes = {task: prompts.sha for task, prompts in asked.items() if prompts is not None}
            assert (json.loads(one.prompts) if one.prompts else {}) == hashes
            judged, hashed = judged + bool(judges), hashed + bool(hashes)
    # The scores of groups and further statistics are there too.
    assert min(whole, judged, hashed) >= 4
    assert len(found) == whole + sum(value.cell.value is not None for value in (*report.further, *report.groups))


def test_the_same_runs_overwrite_their_files(runs, logs):
    before = sorted(logs.rglob("*.json"))
    write_eval_logs(build([str(runs)], LAX), logs, Evaluator("Uni"))
    assert (len(before), sorted(logs.rglob("*.json"))) == (2, before)
    write_eval_logs(build([str(runs)], Options(names=("org/weak=org/other",))), logs, Evaluator("Uni"))
    assert len(list(logs.rglob("*.json"))) == 3


def test_a_judges_prompt_is_in_the_log_where_this_version_has_it(tmp_path):
    known = JUDGE | {"prompt_sha256": rubric_named("lave").prompt_sha256()}
    for name, judge in {"known": known, "unknown": JUDGE}.items():
        samples = vqa_samples(WEAK)
        for sample in samples:
            sample["lave"]["judge"] = judge
        write_run(tmp_path / "runs" / name, name, {"culturalvqa": samples})
    write_eval_logs(build([str(tmp_path / "runs")], LAX), tmp_path / "out", Evaluator())
    prompts = {
        log["model_info"]["id"]: log["evaluation_results"][0]["metric_config"]["llm_scoring"]["input_prompt"]
        for log in logs_in(tmp_path / "out").values()
    }
    assert "{question}" in prompts["known"]
    assert "{response}" in prompts["known"]
    assert prompts["unknown"].endswith(f"SHA-256 {'a' * 64}")


def test_names_of_models_lead_nowhere_and_files_hold_no_key(tmp_path):
    hostile = ("../../out", "a/../../b", "..", "x\ny\x00/z \ud800: {}", "- [a](b)\n- dataset: c")
    for number, model in enumerate(hostile):
        config = {
            "model": "x",
            "model_args": "model=m,api_key=sk-secret,base_url=https://me:pw@host.test/v1?key=sk-secret",
        }
        write_vqa(tmp_path / "runs" / str(number), model, WEAK, config=config)
    out = tmp_path / "report"
    assert main(["report", str(tmp_path / "runs"), "-o", str(out), "--formats", "json", *EXPORT_ALL]) == 0
    files = [path for path in (tmp_path / "report" / "exports").rglob("*") if path.is_file()]
    assert len(files) == 2 * len(hostile)
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "report"}
    for path in files:
        text = path.read_text("utf-8")
        assert "sk-secret" not in text
        assert "host.test" not in text
        if path.suffix == ".json":
            SCHEMAS["eval"].validate(json.loads(text))


# Results of others


def outside_cells(runs, *paths):
    """The report's first table: the cells of others by their rows' labels."""
    report = build([str(runs)], Options(outside=tuple(map(str, paths)), min_coverage=0.0))
    [table] = [table for table in report.tables if table.key == "summary"]
    assert all(row.cells[0].flags for row in table.rows if row.entrant is None)
    return {row.labels[0]: row.cells[0] for row in table.rows if row.entrant is None}, report


def test_rows_of_others_are_marked_and_change_nothing_else(runs, logs):
    cells, report = outside_cells(runs, logs)
    own = build([str(runs)], LAX)
    unit = own.units["culturalvqa"]
    for entrant, cell in unit.cells.items():
        beside = cells[f"{own.entrants[entrant].model}, reported by Uni"]
        assert (beside.value, beside.low, beside.high, beside.n) == (cell.value, cell.low, cell.high, cell.n)
        assert (beside.flags, beside.rank, beside.best) == (("reported",), None, False)
    same = ("entrants", "units", "groups", "further", "comparisons", "means", "fairness", "countries", "findings")
    assert [name for name in same if getattr(report, name) != getattr(own, name)] == []
    assert len([note for note in report.notes if note.startswith("Reported by Uni, not measured here")]) == 2
    [table] = [table for table in report.tables if table.key == "culturalvqa_by_country"]
    below = [row for row in table.rows if row.entrant is None]
    assert [row.labels for row in below] == [
        (f"org/{name}", "reported by Uni (judge-1)") for name in ("strong", "weak")
    ]
    assert len([cell for cell in below[0].cells if cell is not None]) == 5  # four countries, and all


def test_tasks_of_the_harnesses_travel_too(tmp_path):
    values = {"mmlu": {"acc,none": 0.6, "acc_stderr,none": 0.01}, "wikitext": {"word_perplexity,none": 12.5}}
    write_run(tmp_path / "runs", "org/m", {}, results=values)
    write_eval_logs(build([str(tmp_path / "runs")], LAX), tmp_path / "eee", Evaluator("Uni"))
    [log] = logs_in(tmp_path / "eee").values()
    SCHEMAS["eval"].validate(log)
    assert log["evaluation_results"][1]["metric_config"]["max_score"] == "Infinity"
    report = build([str(tmp_path / "runs")], Options(outside=(str(tmp_path / "eee"),)))
    [table] = [table for table in report.tables if table.key == "summary"]
    own, others = ([cell and (cell.value, cell.low, cell.high) for cell in row.cells] for row in table.rows)
    assert own[:2] == others[:2]
    assert [value for value, *_ in others[:2]] == [0.6, 12.5]


METRIC = {"metric_name": "lave", "lower_is_better": False, "score_type": "continuous", "min_score": 0, "max_score": 1}


def foreign(metric, score=0.25, name="CulturalVQA"):
    """A log of another tool, with entries without a value as these write them."""
    return {
        "schema_version": "0.2.2",
        "evaluation_id": "x",
        "source_metadata": {"source_organization_name": "Lab", "source_organization_url": None},
        "eval_library": {"name": "lm_eval", "version": "0.4.9"},
        "model_info": {"name": "m", "id": "lab/m", "additional_details": None},
        "evaluation_results": [
            {
                "evaluation_name": name,
                "metric_config": metric,
                "score_details": {"score": score, "details": None, "uncertainty": None},
                "generation_config": None,
            }
        ],
    }


def theirs(folder, log):
    """Writes a log of another tool, and returns its path."""
    path = folder / "theirs.json"
    path.write_text(log if isinstance(log, str) else json.dumps(log), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("metric", "score", "value"),
    [
        (METRIC, 0.25, 0.25),
        (METRIC | {"metric_name": None, "evaluation_description": "lave"}, 0.25, 0.25),
        (METRIC | {"metric_name": "LAVE"}, 0.25, 0.25),
        (METRIC | {"metric_id": "culturalvqa.lave", "metric_name": "LAVE"}, 0.25, 0.25),
        (METRIC | {"max_score": 100}, 25, 0.25),
        (METRIC | {"min_score": None, "max_score": None, "metric_unit": "proportion"}, 0.25, 0.25),
        (METRIC | {"min_score": None, "max_score": None, "metric_unit": "percent"}, 25, 0.25),
        (METRIC | {"min_score": None, "max_score": None}, 0.25, None),  # a scale that nobody knows
        (METRIC | {"max_score": "Infinity"}, 0.25, None),
        (METRIC | {"min_score": -1.7e308, "max_score": 1.7e308}, 0.25, None),  # wider than a number can say
        (METRIC, 25, None),  # beyond its scale
        (METRIC | {"lower_is_better": True}, 0.25, None),
        (METRIC | {"metric_name": "exact_match"}, 0.25, None),
        (METRIC | {"additional_details": {"task": "culturalvqa", "groups": "[1]"}}, 0.25, None),
        (METRIC | {"additional_details": {"task": "culturalvqa", "groups": "[" * 99999}}, 0.25, None),
        (METRIC | {"additional_details": {"task": "culturalvqa", "statistic": "none"}}, 0.25, None),
    ],
)
def test_scores_of_other_tools_match_by_task_metric_and_scale(runs, metric, score, value, tmp_path):
    path = theirs(tmp_path, foreign(metric, score))
    cells, report = outside_cells(runs, path)
    assert [cell.value for cell in cells.values()] == [pytest.approx(value)] * (value is not None)
    unused = [problem.detail for problem in report.problems if problem.path == str(path)]
    assert unused == ["it has no score of a task, metric and scale of this report"] * (value is None)


@pytest.mark.parametrize(
    ("uncertainty", "low", "high"),
    [
        ({"confidence_interval": {"lower": 10, "upper": 40, "confidence_level": 0.95}, "num_samples": 9}, 0.1, 0.4),
        ({"standard_error": {"value": 10}}, 0.25 - 0.196, 0.25 + 0.196),  # 1.96 standard errors to either side
        ({"standard_error": {"value": 20}}, 0.0, 0.25 + 0.392),  # cut where the scale ends
        ({"confidence_interval": {"lower": 10, "upper": 40, "confidence_level": 0.9}}, None, None),
        ({"confidence_interval": {"lower": 10, "upper": 40}}, None, None),
        ({"confidence_interval": {"lower": 40, "upper": 10, "confidence_level": 0.95}}, None, None),
        ({"confidence_interval": {"lower": 500, "upper": 900, "confidence_level": 0.95}}, None, None),
        ({"standard_error": {"value": 1e308}}, None, None),
    ],
)
def test_intervals_of_others_are_shown_where_they_are_of_95_percent(runs, uncertainty, low, high, tmp_path):
    log = foreign(METRIC | {"max_score": 100}, 25)
    log["evaluation_results"][0]["score_details"]["uncertainty"] = uncertainty
    [cell] = outside_cells(runs, theirs(tmp_path, log))[0].values()
    assert (cell.value, cell.n) == (0.25, uncertainty.get("num_samples", 0))
    assert (cell.low, cell.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.parametrize(("coverage", "shown"), [(0.5, 0.5), ("0.5", 0.5), ([1], None), ("nan", None), (10**400, None)])
def test_coverage_is_what_a_log_says_or_unknown(tmp_path, coverage, shown):
    log = foreign(METRIC)
    log["evaluation_results"][0]["score_details"]["details"] = {"coverage": coverage}
    [read] = read_eval_logs([str(theirs(tmp_path, log))]).values()
    assert read.scores[0].coverage == shown


def test_text_overlap_of_others_and_own_data_are_told_apart(runs, tmp_path):
    path = theirs(tmp_path, foreign(METRIC | {"metric_name": "lave_lexical"}))
    cells, _ = outside_cells(runs, path)
    assert [cell.flags for cell in cells.values()] == [("lexical_judge", "reported")]
    for result in runs.rglob("*_results.json"):
        rewrite(result, configs={"culturalvqa": {"metadata": {OWN_DATA: {"test": "3 questions more"}}}})
    assert outside_cells(runs, path)[0] == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "theirs.json: not JSON"),
        ("[]", r"theirs.json: no log of Every Eval Ever. Expected an object with schema_version .* found \[\]"),
        (foreign(METRIC, "high"), "theirs.json, field 'evaluation_results.0.score_details.score': found 'high'"),
        (foreign(METRIC, math.nan), "evaluation_results.0.score_details.score"),
        (foreign(METRIC, True), "evaluation_results.0.score_details.score': found True"),
        (foreign(METRIC, 10**400), "evaluation_results.0.score_details.score': found 1000"),
        (foreign({}), "field 'evaluation_results.0.metric_config.lower_is_better': found nothing"),
    ],
)
def test_a_file_that_is_no_log_is_an_error_that_names_it(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_eval_logs([str(theirs(tmp_path, content))])


def test_a_folder_without_a_log_is_an_error_and_other_files_of_one_are_passed_over(tmp_path):
    with pytest.raises(DataError, match=r"other\.json: can't be read \(No such file"):
        read_eval_logs([str(tmp_path / "other.json")])
    (tmp_path / "other.json").write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="no log of Every Eval Ever that isn't named already"):
        read_eval_logs([str(tmp_path)])
    shutil.copy(theirs(tmp_path, foreign(METRIC)), tmp_path / "copy.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.json")  # reading it would never end
    assert list(read_eval_logs([str(tmp_path)])) == [str(tmp_path / "copy.json")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--export-samples"], "--export-samples needs --export eee"),
        (["--source-url", "javascript:x"], "--source-url javascript:x. Expected an address"),
        (["--outside", "nowhere.json"], "nowhere.json: can't be read (No such file or directory)"),
    ],
)
def test_the_command_explains_what_it_can_not_do(runs, capsys, options, message):
    assert main(["report", str(runs), "-o", str(runs / "out"), *options]) == 1
    assert message in capsys.readouterr().err


# Examples of the page


def example(word: str) -> str:
    """The page's code that has a word."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "exports.md").read_text("utf-8"), re.DOTALL)
    return next(block for block in blocks if word in block)


@pytest.fixture
def here(runs, tmp_path, monkeypatch):
    runs.rename(tmp_path / "results")
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
