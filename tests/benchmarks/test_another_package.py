"""A benchmark of another package runs through both harnesses, rejudge and report, with no edit of this one."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "fixtures" / "another_package"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package where Python finds it, with the task files that it would ship."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, folder, dirs_exist_ok=True)
    write = (
        "from culture_tasks.benchmarks.registry import benchmarks;"
        "from culture_tasks.harness.task_files import write_task_files;"
        "benchmark = benchmarks()['proverbs']; write_task_files(benchmark, benchmark.task_files)"
    )
    python(folder, "-c", write)
    return folder


def python(site, *arguments, cwd=None):
    environment = os.environ | {"PYTHONPATH": str(site), "CULTURE_JUDGE": "lexical", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=280, check=False, cwd=cwd
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def runs(installed, tmp_path_factory):
    """Folders with the results of both harnesses."""
    output = tmp_path_factory.mktemp("runs")
    options = ["--model", "dummy", "--tasks", "proverbs", "--log_samples", "--output_path"]
    python(installed, "-m", "lmms_eval", *options, str(output / "lmms_eval"), "--model_args", "response=run deep")
    python(installed, "-m", "culture_tasks.cli.main", "lm-eval", "run", *options, str(output / "lm_eval"))
    return output


def result_file(folder):
    [path] = (path for path in folder.rglob("*.json") if "results" in path.name)
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_both_harnesses_run_it(runs, harness):
    results = result_file(runs / harness)["results"]
    for name, count in (("proverbs_north", 2), ("proverbs_south", 3)):
        assert results[name]["ending_lexical_coverage,none" if False else "ending_coverage,none"] == 1.0
        assert 0.0 <= results[name]["ending_lexical,none"] <= 1.0
        assert results[name]["words,none"] > 0
        assert count
    assert "ending_lexical,none" in results["proverbs"]


def test_it_stands_in_the_task_table(installed):
    listed = json.loads(python(installed, "-m", "culture_tasks.cli.main", "tasks", "--json"))
    assert {"proverbs", "proverbs_north", "proverbs_south"} <= {each["name"] for each in listed}


def test_its_data_are_checked(installed):
    assert "proverbs   5   paper: 5" in python(installed, "-m", "culture_tasks.cli.main", "data", "check", "proverbs")


def test_rejudge_and_report_know_it_by_its_records(installed, runs, tmp_path):
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    said = python(installed, "-m", "culture_tasks.cli.main", "rejudge", str(folder), "--judge", "lexical")
    assert said.count("proverbs_south") == 2
    python(installed, "-m", "culture_tasks.cli.main", "report", str(folder), "-o", str(tmp_path / "out"))
    with (tmp_path / "out" / "csv" / "scores.csv").open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    assert any("proverbs" in name for name in header)
    assert rows
