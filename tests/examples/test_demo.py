"""The demonstration runs as it stands, and doesn't believe an exit status."""

import subprocess
import sys
from pathlib import Path

import demo
import pytest

LOG = """\
internvl_hf (pretrained=x), gen_kwargs: ()

|Tasks|Metric|Value|
|-----|------|----:|
|care |rating|    1|

Throughput Summary

|      Metric      | Value |
|------------------|------:|
|total_gen_tokens  |    134|
"""
RESULTS = {"x_results.json": '{"results": {"care_ar": {}}}'}
SAMPLES = {"x_samples_care_ar.jsonl": "{}\n"}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Carries out a run of a harness that prints a log, writes these files and ends with 0."""

    def carry_out(log, files):
        def start(command, log_file):
            folder = demo.ROOT / command[-1]
            folder.mkdir(parents=True)
            for name, text in files.items():
                (folder / name).write_text(text)
            log_file.write_text(log)
            return 0

        monkeypatch.setattr(demo, "_start", start)
        demo.carry_out(demo.Run("A trial", "trial", ("lmms-eval", "--tasks", "care"), ("care_ar",)), tmp_path)

    return carry_out


def test_a_good_run_prints_its_command_and_the_tables_of_tasks(run, capsys):
    run(LOG, RESULTS | SAMPLES)
    printed = capsys.readouterr().out
    assert "$ CULTURE_JUDGE=lexical CULTURE_TASKS_DATA=examples/data lmms-eval --tasks care --output_path" in printed
    assert "|care |rating|    1|" in printed
    assert "total_gen_tokens" not in printed


@pytest.mark.parametrize(
    ("log", "files", "problem"),
    [
        (LOG, {}, "no result file"),
        (LOG, {"x_results.json": '{"results": {"care_zh": {}}}'} | SAMPLES, "no results of care_ar"),
        (LOG, RESULTS | {"x_samples_care_ar.jsonl": ""}, "no samples of care_ar"),
        ("Traceback: boom", RESULTS | SAMPLES, "no result table"),
    ],
)
def test_a_crash_that_ends_with_0_is_found_out(run, capsys, log, files, problem):
    with pytest.raises(demo.DemoError, match=f"A trial: {problem}"):
        run(log, files)
    assert log.splitlines()[-1] in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_runs_both_harnesses_whatever_the_user_s_settings_are(tmp_path, capfd, monkeypatch):
    start = subprocess.Popen

    def without_tasks_of_lm_eval(command, **options):  # which it takes long to index
        if command[0].name == "culture-tasks":
            command = [sys.executable, "-m", "support.run_lm_eval", *command[2:]]
        return start(command, **options)

    monkeypatch.setattr(subprocess, "Popen", without_tasks_of_lm_eval)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("CULTURE_JUDGE", "openai:gpt-4o")
    assert demo.main(["--output", str(tmp_path)]) == 0
    printed, errors = capfd.readouterr()
    assert sum(line.startswith("|") and "Tasks" in line for line in printed.splitlines()) == 3
    assert "Both harnesses ran" in printed
    assert errors == ""
