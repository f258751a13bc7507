"""The demonstration runs as it stands, and doesn't believe an exit status."""

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

| Groups |Metric|Value|
|--------|------|----:|
|care    |rating|    1|
"""


def pretend(log, results=(), samples=()):
    """Stands in for a harness that prints a log, writes these files and ends with 0."""

    def start(command, log_file):
        folder = demo.ROOT / command[-1]
        folder.mkdir(parents=True)
        for name, text in (*results, *samples):
            (folder / name).write_text(text)
        log_file.write_text(log)
        return 0

    return start


@pytest.fixture
def run():
    return demo.Run("A trial", "trial", ("lmms-eval", "--tasks", "care"), ("care_ar",))


def test_tables_are_those_of_tasks_and_groups_and_the_user_s_settings_do_not_reach_the_demonstration():
    found = list(demo.tables(LOG))
    assert [table.splitlines()[0] for table in found] == ["|Tasks|Metric|Value|", "| Groups |Metric|Value|"]
    assert found[0].endswith("|care |rating|    1|")
    environment = demo._environment({"PATH": "/bin", "CULTURE_JUDGE": "openai:gpt-4o", "CULTURE_JUDGE_CACHE": "off"})
    assert (environment["PATH"], environment["CULTURE_JUDGE"]) == ("/bin", "lexical")
    assert "CULTURE_JUDGE_CACHE" not in environment


RESULTS = ("x_results.json", '{"results": {"care_ar": {}}}')
SAMPLES = ("x_samples_care_ar.jsonl", "{}\n")


@pytest.mark.parametrize(
    ("log", "results", "samples", "problem"),
    [
        (LOG, [], [], "no result file"),
        (LOG, [("x_results.json", '{"results": {"care_zh": {}}}')], [SAMPLES], "no results of care_ar"),
        (LOG, [RESULTS], [], "no samples of care_ar"),
        (LOG, [RESULTS], [(SAMPLES[0], "")], "no samples of care_ar"),
        ("Traceback: boom", [RESULTS], [SAMPLES], "no result table"),
    ],
)
def test_a_crash_that_ends_with_0_is_found_out(monkeypatch, tmp_path, capsys, run, log, results, samples, problem):
    monkeypatch.setattr(demo, "_start", pretend(log, results, samples))
    with pytest.raises(demo.DemoError, match=f"A trial: {problem}"):
        demo.carry_out(run, tmp_path)
    assert log.splitlines()[-1] in capsys.readouterr().err


def test_a_good_run_prints_its_command_and_tables(monkeypatch, tmp_path, capsys, run):
    monkeypatch.setattr(demo, "_start", pretend(LOG, [RESULTS], [SAMPLES]))
    demo.carry_out(run, tmp_path)
    printed = capsys.readouterr().out
    assert "$ CULTURE_JUDGE=lexical CULTURE_TASKS_DATA=examples/data lmms-eval --tasks care --output_path" in printed
    assert "|care |rating|    1|" in printed


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_runs_both_harnesses(tmp_path, capfd):
    assert demo.main(["--output", str(tmp_path)]) == 0
    printed, errors = capfd.readouterr()
    assert sum(line.startswith("|") and "Tasks" in line for line in printed.splitlines()) == 3
    assert "Both harnesses ran" in printed
    assert errors == ""
