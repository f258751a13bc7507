"""Designed draws of a task's documents in both harnesses, and what their results and the report say of them."""

import json
import math
from pathlib import Path

import pytest
from support.reports import report_of, tables_of
from support.sharded import content, run_shards
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.benchmarks.registry import title_of
from culture_tasks.costs.prices import read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.harness.loading import load_for_evaluation, loaded_task
from culture_tasks.harness.subsets import Subset
from culture_tasks.metrics.subsets import subset_interval
from culture_tasks.results.merging import merge
from culture_tasks.settings import Settings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"

pytestmark = pytest.mark.filterwarnings("ignore")


def documents(monkeypatch, task, subset):
    monkeypatch.setenv("CULTURE_SUBSET", subset)
    return list(load_for_evaluation(task))


def write(harness, folder, tasks, model="toy", **options):
    if harness == "lm_eval":
        return write_lm_eval(
            folder, tasks, lambda prompt, _: "Yes" if "a" in prompt[-200:-190] else "No", model=model, **options
        )
    return write_lmms_eval(folder, tasks, model=model, **options)


def lines(path, pattern="*.jsonl"):
    return [json.loads(line) for file in path.parent.glob(pattern) for line in file.read_text("utf-8").splitlines()]


def test_a_draw_is_nested_has_the_order_of_the_task_and_says_the_chance_of_its_documents(monkeypatch):
    whole = [row["id"] for row in documents(monkeypatch, "care_zh", "")]
    assert loaded_task("care_zh").subset is None
    small, large = (documents(monkeypatch, "care_zh", number) for number in ("3", "6"))
    assert {row["id"] for row in small} <= {row["id"] for row in large}
    assert [row["id"] for row in large] == [one for one in whole if one in {row["id"] for row in large}]
    assert {row["probability"] for row in large} == {0.6}
    assert loaded_task("care_zh").subset.items == 10
    assert [row["id"] for row in documents(monkeypatch, "care_zh", "6:1")] != [row["id"] for row in large]
    assert [row["id"] for row in documents(monkeypatch, "care_zh", "10")] == whole
    assert loaded_task("care_zh").subset is None


def test_questions_of_several_rows_are_drawn_whole(monkeypatch):
    rows = documents(monkeypatch, "culturalbench_hard", "8")
    assert len(rows) == 8
    assert len({row["question_id"] for row in rows}) == 2
    assert loaded_task("culturalbench_hard").subset.items == 4


def test_what_is_no_number_of_documents_is_refused(monkeypatch):
    for text in ("0", "-4", "4:", "4:x", "1/3", "40 %"):
        with pytest.raises(SettingsError, match=r"CULTURE_SUBSET=.*such as 400 or 400:7"):
            documents(monkeypatch, "care_zh", text)


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_results_say_what_was_drawn_and_the_report_compares_it_with_the_whole(harness, monkeypatch, tmp_path):
    task = "normad_rule"
    write(harness, tmp_path / "whole", [task], model="whole")
    monkeypatch.setenv("CULTURE_SUBSET", "4")
    path = write(harness, tmp_path / "part", [task], model="part")
    read = content(path)
    subset = Subset.read(read["configs"][task]["metadata"])
    assert (str(subset), read["n-samples"][task]["effective"]) == ("4 of 6", 4)
    assert "(4 of 6)" in read["results"][task]["alias"]
    records = [line["acc"] for line in lines(path)]
    assert {record["probability"] for record in records} == {4 / 6}

    monkeypatch.delenv("CULTURE_SUBSET")
    report = report_of(tmp_path)
    cells = {report.entrants[key].label: cell for key, cell in report.units[task].cells.items()}
    assert (cells["part"].flags, cells["part"].note) == (("own_data", "subset"), f"{title_of(task)}: 4 of 6 documents")
    assert cells["part"].comparable
    scores = [record["score"] for record in records]
    found = subset_interval(scores, None, subset.frame, shares=True)
    assert (cells["part"].value, cells["part"].low, cells["part"].high) == pytest.approx(
        [100 * number for number in (found.value, found.low, found.high)]
    )
    [test] = report.comparisons
    assert (test.n, test.difference) == (4, 0.0)


def test_the_interval_of_a_score_of_questions_isnt_that_of_their_rows(monkeypatch, tmp_path):
    monkeypatch.setenv("CULTURE_SUBSET", "12")
    write_lm_eval(tmp_path, ["culturalbench_hard"], lambda prompt, _: "True" if len(prompt) % 2 else "False")
    report = report_of(tmp_path)
    [whole] = report.units["culturalbench_hard"].cells.values()
    [row] = tables_of(report)["culturalbench"].rows
    options = row.cells[1]
    assert (whole.n, options.n) == (3, 12)
    assert options.high - options.low > 20  # of rows that share questions, with no correction for those not drawn


@pytest.mark.parametrize("subset", ["4", "5"], ids=["subsets of all tasks", "one task has no more"])
def test_a_group_weighs_its_tasks_by_all_of_their_documents(subset, monkeypatch, tmp_path):
    data = tmp_path / "data" / "care"
    data.mkdir(parents=True)
    for name, rows in (("Arabic", 5), ("Chinese", 10), ("Japanese", 10)):
        given = json.loads((EXAMPLES / "care" / f"{name}-test.json").read_text("utf-8"))
        (data / f"{name}-test.json").write_text(json.dumps(given[:rows]), "utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(data.parent))
    monkeypatch.setenv("CULTURE_SUBSET", subset)
    path = write_lm_eval(tmp_path / "runs", ["care"], lambda prompt, _: prompt[-30:])
    rows = content(path)["results"]
    key = "care_rating_lexical,none"
    weights = {"care_ar": 5, "care_ja": 10, "care_zh": 10}
    mean = sum(weight * rows[task][key] for task, weight in weights.items()) / 25
    assert rows["care"][key] == pytest.approx(mean)
    assert rows["care"]["alias"] == "care (own data) (subsets)"
    [cell] = report_of(tmp_path / "runs").units["care"].cells.values()
    assert cell.value == pytest.approx(mean)
    reaches = []
    for task, weight in weights.items():
        if drawn := Subset.read(content(path)["configs"][task]["metadata"]):  # a task that was run whole adds nothing
            scores = [line["care_rating_lexical"]["score"] for line in lines(path, f"samples_{task}_*")]
            found = subset_interval(scores, None, drawn.frame)
            reaches.append(weight / 25 * (found.high - found.value))
    assert len(reaches) == (3 if subset == "4" else 2)
    assert cell.high - cell.value == pytest.approx(math.hypot(*reaches))


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_a_limit_that_takes_parallel_documents_whole_says_so(harness, caplog, tmp_path):
    write(harness, tmp_path, ["cedar_text", "normad_rule"], limit=5)
    assert "cedar_text: --limit takes the first 5 documents, which are in 1 clusters" in caplog.text
    assert "CULTURE_SUBSET=5 draws as many" in caplog.text
    assert caplog.text.count("--limit takes") == 1  # normad_rule has five clusters


def test_shards_of_a_subset_merge_to_the_run_of_the_subset(monkeypatch, tmp_path):
    monkeypatch.setenv("CULTURE_SUBSET", "6")
    whole = content(write_lm_eval(tmp_path / "whole", ["care"], lambda prompt, run: f"{prompt[-30:]} {run}"))
    parts = run_shards("lm_eval", tmp_path / "shards", ["care"], 2)
    merged = merge(parts, tmp_path / "merged", Settings(judge="lexical"), read_prices(None))
    renewed = content(merged.run.result_file)
    assert renewed["results"] == whole["results"]
    assert renewed["configs"]["care_zh"]["metadata"]["subset"] == whole["configs"]["care_zh"]["metadata"]["subset"]
