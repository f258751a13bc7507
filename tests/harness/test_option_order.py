"""Shuffled options (``CULTURE_TASKS_OPTION_ORDER``) in real runs of both harnesses, and in the report."""

from __future__ import annotations

import json

import pytest
from support.scripted_models import ScriptedChat, ScriptedLM, run_scripted
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.benchmarks.worldcuisines.documents import options_of
from culture_tasks.cli.main import main
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TASKS = ["blend_mcq_algeria", "culturalbench_easy", "cvqa", "cvqa_en", "worldcuisines_dish"]
LETTERS = "ABCD"


def options(doc):
    """Returns the texts of a document's options by label."""
    if "choices" in doc:
        return dict(doc["choices"])
    return dict(zip(LETTERS, doc["options"], strict=True)) if "options" in doc else options_of(doc["prompt"])


def right_text(doc):
    return options(doc)[doc["answer"]]


def documents(task, order):
    return task_named(task).data.load(Settings.from_environment().model_copy(update={"option_order": order})).rows


def test_texts_move_and_the_right_one_stays_right_and_a_question_has_one_order_in_all_its_languages():
    for task in TASKS:
        moved = 0
        for before, after in zip(documents(task, None), documents(task, "shuffled:7"), strict=True):
            assert (before["id"], before["data"]) == (after["id"], after["data"])
            assert right_text(before) == right_text(after)
            assert sorted(options(before).values()) == sorted(options(after).values())
            shown = task_named(task).prompt(after).parts[-1]
            assert all(f"{label}. {text}" in shown for label, text in options(after).items())
            moved += options(before) != options(after)
        assert moved, task
    local, english = documents("cvqa", "shuffled:7"), documents("cvqa_en", "shuffled:7")
    assert [doc["answer"] for doc in local] == [doc["answer"] for doc in english]


def test_what_the_prompt_doesn_t_list_can_t_be_moved(monkeypatch, tmp_path, fixture_data):
    text = (fixture_data / "blend" / "mc_questions_file.csv").read_text("utf-8")
    (tmp_path / "blend").mkdir()
    (tmp_path / "blend" / "mc_questions_file.csv").write_text(text.replace("\nB. coffee", "\n(B) coffee"), "utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    assert documents("blend_mcq_algeria", None)
    with pytest.raises(DataError, match=r"row 2, field 'prompt': found no line 'B. coffee'\. CULTURE_TASKS_OPTION_OR"):
        documents("blend_mcq_algeria", "shuffled:7")


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_prompt_target_reader_and_record_have_one_order(monkeypatch, harness):
    monkeypatch.setenv("CULTURE_TASKS_OPTION_ORDER", "shuffled:7")
    _, results = run_scripted(harness, right_text, TASKS)
    for task in TASKS:
        row = results["results"][task]
        assert (row["acc,none"], row["unparsed,none"]) == (1.0, 0.0), task
        assert results["configs"][task]["metadata"]["option_order"] == "shuffled:7"
        for sample, doc in zip(results["samples"][task], documents(task, "shuffled:7"), strict=True):
            record = sample["acc"]
            assert record["option_order"] == "shuffled:7"
            assert record["runs"][0]["label"] == sample["target"] == doc["answer"]


def test_the_authors_reader_reads_the_shuffled_number_and_a_task_without_options_says_that_nothing_changes(
    monkeypatch, caplog
):
    monkeypatch.setenv("CULTURE_TASKS_OPTION_ORDER", "shuffled")
    without = ("normad_rule", "culturalbench_hard")
    _, results = run_scripted("lm_eval", lambda doc: doc.get("answer", "Yes"), ["worldcuisines_dish", *without])
    assert results["results"]["worldcuisines_dish"]["acc_authors,none"] == 1.0
    for task in without:
        assert f"{task}: its questions have no options to shuffle" in caplog.text
        assert "option_order" not in results["configs"][task]["metadata"]


def test_a_shuffled_run_is_not_ranked_against_another(monkeypatch, tmp_path):
    """One run in the benchmark's order in each harness, and one that is shuffled."""
    task = ["culturalbench_easy"]
    write_lm_eval(tmp_path / "a", task, None, "first", ScriptedLM(lambda doc: "A"), bootstrap_iters=0)
    write_lmms_eval(tmp_path / "b", task, "second", lmms=ScriptedChat(right_text), bootstrap_iters=0)
    monkeypatch.setenv("CULTURE_TASKS_OPTION_ORDER", "shuffled:7")
    write_lmms_eval(tmp_path / "c", task, "third", lmms=ScriptedChat(right_text), bootstrap_iters=0)
    paths = [str(tmp_path / name) for name in "abc"]
    assert main(["report", *paths, "-o", str(tmp_path / "report"), "--formats", "json"]) == 0
    report = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    names = {key: entrant["model"] for key, entrant in report["entrants"].items()}
    compared = [{names[one["first"]], names[one["second"]]} for one in report["comparisons"]]
    assert compared == [{"first", "second"}]
    (summary,) = (table for table in report["tables"] if table["key"] == "summary")
    flags = {row["labels"][0]: row["cells"][0]["flags"] for row in summary["rows"]}
    assert "other_prompt" in flags.pop("third")
    assert not any("other_prompt" in of_cell for of_cell in flags.values())
