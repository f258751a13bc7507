"""Shards as separate processes with a model of random weights: one is killed and started again, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from support.sharded import comparable, environment, samples

from culture_tasks.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.filterwarnings("ignore")]


def started(model, folder, shard, data):
    arguments = ["--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu"]
    arguments += ["--tasks", "care_greedy,cedar_text", "--gen_kwargs", "max_gen_toks=8"]
    arguments += ["--log_samples", "--output_path", str(folder)]
    variables = {"CULTURE_TASKS_DATA": str(data), "CULTURE_JUDGE": "lexical", "CULTURE_SHARD": shard}
    return subprocess.Popen(
        [sys.executable, "-m", "support.run_lm_eval", "run", *arguments],
        env=environment(**variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    _, said = process.communicate()
    assert process.returncode == 0, said[-3000:]


def killed_while_it_answers(process):
    for line in process.stderr:
        if "Running generate_from_text requests" in line:
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_two_processes_one_of_them_killed_give_the_report_of_one_run(tmp_path, tiny_lm, fixture_data):
    first, second = (started(tiny_lm, tmp_path / "shards" / part[0], part, fixture_data) for part in ("1/2", "2/2"))
    killed_while_it_answers(second)
    finished(first)
    assert main(["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "merged")]) == 1
    again = started(tiny_lm, tmp_path / "shards" / "2", "2/2", fixture_data)
    whole = started(tiny_lm, tmp_path / "whole", "", fixture_data)
    finished(again)
    finished(whole)
    assert main(["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "merged")]) == 0

    [whole], [merged] = ([*(tmp_path / name).rglob("results_*.json")] for name in ("whole", "merged"))
    assert comparable(whole) == comparable(merged)
    assert samples(whole) == samples(merged)
    reports = {}
    for name in ("whole", "merged"):
        out = tmp_path / f"report-{name}"
        assert main(["report", str(tmp_path / name), "-o", str(out), "--formats", "csv,markdown"]) == 0
        reports[name] = {path.name: path.read_text("utf-8") for path in out.rglob("*.csv")}
        del reports[name]["runs.csv"], reports[name]["costs.csv"]  # which name the date, and the time of all processes
    assert reports["whole"] == reports["merged"]
    assert len(reports["whole"]) > 3
