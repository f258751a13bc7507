"""WorldCuisines in real runs of both harnesses and in the report, with numbers that are worked out by hand."""

from __future__ import annotations

import csv

import pytest
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main

pytestmark = pytest.mark.slow

CHOICES = [f"worldcuisines_{name}" for name in ("dish", "dish_context", "dish_adversarial", "origin")]
TASKS = ["worldcuisines", "worldcuisines_open_dish"]


def say(doc):
    """Knows the first dish, by its option's number in English, by its text in Indonesian, and in no other language."""
    if "references" in doc:
        return {"en": f"It is {doc['answer']}.", "id_formal": doc["english"]}.get(doc["language"], "?")
    if doc["dish"] != "1" or doc["language"] == "ja_formal":
        return "I can't tell."
    text = dict(line.split(". ", 1) for line in doc["prompt"].splitlines() if line[:1].isdecimal())[doc["answer"]]
    return doc["answer"] if doc["language"] == "en" else text


@pytest.fixture(scope="module")
def shown(tmp_path_factory, fixture_data):
    """The folder with the results of both harnesses and their report, and the models."""
    from support.scripted_models import ScriptedChat, ScriptedLM

    output = tmp_path_factory.mktemp("worldcuisines")
    chat, lm = ScriptedChat(say), ScriptedLM(say)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        write_lm_eval(output / "runs" / "lm_eval", TASKS, None, "text", lm, bootstrap_iters=0)
        write_lmms_eval(output / "runs" / "lmms_eval", TASKS, "chat", lmms=chat, bootstrap_iters=0)
        assert main(["report", str(output / "runs"), "-o", str(output / "report"), "--formats", "csv"]) == 0
    return output, chat, lm


def rows(shown, table):
    with (shown[0] / "report" / "csv" / f"{table}.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Two of the six questions of each type; the authors' reader doesn't find the one that is answered by text.
        ("worldcuisines_score_by_question", {"Average": 100 / 3, "Regional Cuisine": 100 / 3}),
        ("worldcuisines_acc_authors_by_question", {"Average": 100 / 6}),
        ("worldcuisines_unparsed_by_question", {"Average": 200 / 3}),
        ("worldcuisines_by_language", {"English": 50, "Indonesian (formal)": 50, "Japanese (formal)": 0}),
        ("worldcuisines_open_dish_score_by_question", {"Average": 200 / 3}),
        ("worldcuisines_open_dish_contains_dual_by_question", {"Average": 200 / 3}),
        # The English name is part of the Indonesian one for the second dish alone, "Tesk" in both languages.
        ("worldcuisines_open_dish_contains_single_by_question", {"Average": 50}),
    ],
)
def test_both_harnesses_give_what_was_worked_out_by_hand(shown, table, expected):
    found = rows(shown, table)
    assert len(found) == 2
    for row in found:
        assert {name: float(row[name]) for name in expected} == pytest.approx(expected, abs=0.01)


def test_the_model_is_shown_the_image_and_the_prompt_of_the_data(shown):
    _, _, lm = shown
    prompts = [arguments[0] for arguments in lm.seen]
    assert all("<image>" in prompt for prompt in prompts)
    assert any(prompt.endswith("\n\nPrint only the answer with a single answer id (1,2,3,4,5).") for prompt in prompts)
    assert {len(list(arguments[2]["visual"])) for arguments in lm.seen} == {1}
    assert {arguments[1]["max_gen_toks"] for arguments in lm.seen} == {50}
