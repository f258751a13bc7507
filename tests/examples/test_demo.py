"""The demonstration runs as it stands, and doesn't believe an exit status."""

import subprocess
import sys
from pathlib import Path

import demo
import pytest
import real_model

LOG = "care: 10 of 10\nTraceback: boom\n"
RESULTS = {"x_results.json": '{"results": {"care_ar": {}}}'}
SAMPLES = {"x_samples_care_ar.jsonl": "{}\n"}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Carries out a run of a harness that writes a log and these files, and ends with a status."""

    def carry_out(files, status=0):
        def start(command, log_file):
            folder = demo.ROOT / command[-1]
            folder.mkdir(parents=True)
            for name, text in files.items():
                (folder / name).write_text(text)
            log_file.write_text(LOG)
            return status

        monkeypatch.setattr(demo, "_start", start)
        demo.carry_out(demo.Run("A trial", "trial", ("lmms-eval", "--tasks", "care"), ("care_ar",)), tmp_path)

    return carry_out


def test_a_good_run_prints_its_command_and_where_its_log_is(run, capsys):
    run(RESULTS | SAMPLES)
    printed, errors = capsys.readouterr()
    assert "$ CULTURE_JUDGE=lexical CULTURE_TASKS_DATA=build/demo_data lmms-eval --tasks care --output_path" in printed
    assert (printed.rstrip().endswith("trial.log"), errors) == (True, "")


@pytest.mark.parametrize(
    ("files", "status", "problem"),
    [
        ({}, 0, "no result file"),
        ({"x_results.json": '{"results": {"care_zh": {}}}'} | SAMPLES, 0, "no results of care_ar"),
        (RESULTS | {"x_samples_care_ar.jsonl": ""}, 0, "no samples of care_ar"),
        (RESULTS | SAMPLES, 1, "the command ended with status 1"),
    ],
)
def test_a_crash_is_found_out_even_if_it_ends_with_0(run, capsys, files, status, problem):
    with pytest.raises(demo.DemoError, match=f"A trial: {problem}"):
        run(files, status)
    assert LOG.splitlines()[-1] in capsys.readouterr().err


def test_a_model_that_is_there_is_taken_and_one_that_cannot_be_installed_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(real_model, "REQUIREMENTS", tmp_path / "missing.txt")
    assert real_model.make(tmp_path) is None
    assert "missing.txt" in (tmp_path / "log").read_text()
    (tmp_path / real_model.NAME).mkdir()
    assert real_model.make(tmp_path) == tmp_path / real_model.NAME


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_without_the_real_model_it_runs_both_harnesses_whatever_the_user_s_settings_are(tmp_path, capfd, monkeypatch):
    start = subprocess.Popen

    def without_tasks_of_lm_eval(command, **options):  # which it takes long to index
        if command[0].name == "culture-tasks" and command[1] == "lm-eval":
            command = [sys.executable, "-m", "support.run_lm_eval", *command[2:]]
        return start(command, **options)

    monkeypatch.setattr(subprocess, "Popen", without_tasks_of_lm_eval)
    monkeypatch.setattr(real_model, "make", lambda: None)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("CULTURE_JUDGE", "openai:gpt-4o")
    assert demo.main(["--output", str(tmp_path)]) == 0
    printed, errors = capfd.readouterr()
    assert "can't be had here" in printed
    assert f"9 runs of 2 models, 24 tables\n{tmp_path / 'report' / 'report.json'}" in printed
    assert printed.index("Missing: no run for 1 of 10 pairs") < printed.index("Both harnesses ran.")
    assert errors == ""
