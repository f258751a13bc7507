"""Designed draws of a task's documents in both harnesses, and what their results and the report say of them."""

import json
import shutil

import pytest
from support.in_process import run_lmms_eval, variant
from support.lmms_models import ChatEcho
from support.reports import report_of
from support.scripted_models import run_scripted
from support.written_runs import content, samples_of, write_lm_eval, write_lmms_eval

from culture_tasks.benchmarks.registry import title_of
from culture_tasks.errors import SettingsError
from culture_tasks.harness.loading import load_for_evaluation, loaded_task
from culture_tasks.harness.subsets import Subset
from culture_tasks.metrics.subsets import subset_interval

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


def test_questions_of_several_rows_are_drawn_whole_and_other_texts_are_refused(monkeypatch):
    rows = documents(monkeypatch, "culturalbench_hard", "8")
    assert (len(rows), len({row["question_id"] for row in rows})) == (8, 2)
    assert loaded_task("culturalbench_hard").subset.items == 4
    for text in ("0", "-4", "4:", "4:x", "1/3", "40 %"):
        with pytest.raises(SettingsError, match=r"CULTURE_SUBSET=.*such as 400 or 400:7"):
            documents(monkeypatch, "care_zh", text)


def test_results_say_what_was_drawn_and_the_report_compares_it_with_the_whole(harness, monkeypatch, tmp_path):
    task = "normad_rule"
    write(harness, tmp_path / "whole", [task], model="whole")
    monkeypatch.setenv("CULTURE_SUBSET", "4")
    path = write(harness, tmp_path / "part", [task], model="part")
    read = content(path)
    subset = Subset.read(read["configs"][task]["metadata"])
    assert (str(subset), read["n-samples"][task]["effective"]) == ("4 of 6", 4)
    assert "(4 of 6)" in read["results"][task]["alias"]
    records = [sample["record"] for sample in samples_of(path, task)]
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


def test_a_variant_that_chooses_documents_has_no_subset_and_requests_are_not_kept_by_its_name(
    harness, tmp_path, monkeypatch
):
    monkeypatch.setenv("CULTURE_SUBSET", "5")
    (tmp_path / "choose.py").write_text("def some(data):\n    return data.select(range(2))\n", encoding="utf-8")
    tasks = variant(tmp_path, harness, "care_zh")
    file = tmp_path / "variant.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "process_docs: !function choose.some\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"^variant: its process_docs leaves 2 of the 5 documents of the subset"):
        run_scripted(harness, str, tasks, include=tmp_path)
    with pytest.raises(SettingsError, match=r"^culturalbench_easy: --cache_requests keeps .* Leave the option out"):
        run_scripted(harness, str, ["culturalbench_easy"], cache_requests=True)


def test_lmms_eval_s_response_cache_tells_subsets_apart(tmp_path, monkeypatch, fixture_data):
    """Documents of two subsets have the same numbers, and pictures are no part of a key of the cache."""
    shutil.copytree(fixture_data / "culturalvqa", tmp_path / "culturalvqa")
    file = tmp_path / "culturalvqa" / "test.jsonl"
    rows = [json.loads(line) | {"question": "What is this?"} for line in file.read_text("utf-8").splitlines()]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    model = ChatEcho()
    for subset, seen in (("11", 11), ("11", 11), ("11:1", 22)):
        monkeypatch.setenv("CULTURE_SUBSET", subset)
        run_lmms_eval(model, ["culturalvqa"], use_cache=str(tmp_path / "cache"))
        assert len(model.seen) == seen
