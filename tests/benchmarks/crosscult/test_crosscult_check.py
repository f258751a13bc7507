import json

from support.crosscult_cases import rows, write_folder

from culture_tasks.benchmarks.crosscult.documents import CASES_PER_SCENARIO, SCENARIOS, TASK_CASES, check
from culture_tasks.benchmarks.crosscult.raw_cases import RAW_CASES
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
    names = ("raw cases", "scenarios of Religious Values", "cases of a scenario", "task cases, single-insert test")
    assert [found[name] for name in names] == ["12", "2", "2", "8"]
    few = check(write_folder(tmp_path / "few", rows(scenarios=2)))
    assert few.usable
    assert lines(few)["split and pairing"].startswith("not possible")


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
    text = check(write_folder(tmp_path / "many", [row | {"answer_us_en": ""} for row in rows(12, 3)])).text()
    assert text.endswith("… and 16 more problems")
    assert text.count("problem:") == 20
    [problem] = check(write_folder(tmp_path / "ids", [row | {"id": "same"} for row in rows()])).problems
    assert "'same' is also the id of" in problem


def test_the_command_draws(tmp_path, capsys):
    folder = write_folder(tmp_path, rows())
    out = folder / "crosscult_draw.json"
    options = ["--seed", "9", "--cross-language", "english", "--locality-pool", "all", "--split-by", "scenario"]
    assert main(["data", "draw", "crosscult", "--data", str(folder), "--out", str(out), *options]) == 0
    assert "16 single-insert cases, 4 chains" in capsys.readouterr().out
    expected = {"seed": 9, "split_by": "scenario", "cross_language": "english", "locality_pool": "all"}
    assert json.loads(out.read_text())["options"] == expected
