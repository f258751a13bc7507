import json

import pytest
from support.crosscult_cases import rows, write_folder

from culture_tasks.benchmarks.crosscult.checking import CASES_PER_SCENARIO, RAW_CASES, SCENARIOS, TASK_CASES, check
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.cli.main import main


def lines(report):
    return {line.name: line.found for line in report.counts}


def test_the_counts_of_table_1_belong_together():
    assert sum(SCENARIOS.values()) * CASES_PER_SCENARIO == RAW_CASES
    assert TASK_CASES["single-insert train"] == 2 * 29 * CASES_PER_SCENARIO
    assert TASK_CASES["single-insert test"] == 2 * 10 * CASES_PER_SCENARIO
    assert TASK_CASES["sequential-insert test"] == 10 * CASES_PER_SCENARIO


def test_good_data_are_counted_and_compared(tmp_path):
    report = check(write_folder(tmp_path, rows()))
    assert report.usable
    found = lines(report)
    assert found["raw cases"] == "12"
    assert found["scenarios of Religious Values"] == "2"
    assert found["cases of a scenario"] == "2"
    assert found["task cases, single-insert test"] == "8"
    assert "paper: 9800   DIFFERS" in report.text()


def test_all_problems_are_found_at_once(tmp_path):
    content = rows()
    content[1]["answer_china_zh"] = ""
    content[7]["question_ar"] = None
    folder = write_folder(tmp_path, content)
    (folder / "crosscult" / "0_0.png").write_bytes(b"no image")
    (folder / "crosscult" / "5_1.png").unlink()
    report = check(folder)
    assert [problem.split("row ")[1].split(",")[0] for problem in report.problems] == ["2", "8", "1", "12"]
    assert lines(report)["raw cases"] == "10"


def test_what_else_stops_a_task_is_a_problem(tmp_path):
    content = [row | {"id": "same"} for row in rows()]
    report = check(write_folder(tmp_path, content))
    assert len(report.problems) == 1
    assert "'same' is also the id of" in report.problems[0]


def test_too_few_scenarios_can_still_be_looked_at(tmp_path):
    report = check(write_folder(tmp_path, rows(scenarios=2)))
    assert report.usable
    assert lines(report)["split and pairing"].startswith("not possible")


def test_a_long_list_of_problems_is_cut(tmp_path):
    content = [row | {"answer_us_en": ""} for row in rows(scenarios=12, cases=3)]
    text = check(write_folder(tmp_path, content)).text()
    assert text.endswith("… and 16 more problems")
    assert text.count("problem:") == 20


def test_the_command_checks_and_its_status_tells(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(tmp_path, rows())))
    assert main(["data", "check", "crosscult"]) == 0
    assert "raw cases" in capsys.readouterr().out
    (tmp_path / "crosscult" / "0_0.png").unlink()
    assert main(["data", "check", "crosscult"]) == 1
    assert "problem:" in capsys.readouterr().out


def test_the_command_says_that_there_are_no_data(tmp_path, capsys):
    (tmp_path / "crosscult").mkdir()
    assert main(["data", "check", "crosscult", "--data", str(tmp_path)]) == 1
    assert "holds no cases.json" in capsys.readouterr().err


def test_the_command_draws(tmp_path, capsys):
    folder = write_folder(tmp_path, rows())
    out = folder / "crosscult_draw.json"
    options = ["--seed", "9", "--cross-language", "english", "--locality-pool", "all", "--split-by", "scenario"]
    assert main(["data", "draw", "crosscult", "--data", str(folder), "--out", str(out), *options]) == 0
    assert "16 single-insert cases, 4 chains" in capsys.readouterr().out
    assert json.loads(out.read_text())["options"] == {
        "seed": 9,
        "split_by": "scenario",
        "cross_language": "english",
        "locality_pool": "all",
    }


def test_the_bundled_cases_are_usable(fixture_data):
    report = check(fixture_data)
    assert report.usable
    assert lines(report)["scenarios"] == "9"


@pytest.mark.parametrize("benchmark", benchmarks())
def test_every_check_takes_the_bundled_data(benchmark, fixture_data):
    assert benchmarks()[benchmark].check(fixture_data).counts
