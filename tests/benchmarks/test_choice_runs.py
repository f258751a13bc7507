"""Benchmarks of choices in one run of each harness and in the report, with numbers that are worked out by hand."""

from __future__ import annotations

import csv

import pytest
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main

pytestmark = pytest.mark.slow

TASKS = [
    *("culturalbench_easy", "culturalbench_hard", "cvqa_en", "normad_none", "normad_rule"),
    *("worldcuisines", "worldcuisines_open_dish"),
]
# Of three Indonesian questions of CVQA two are right and one has no choice; the Japanese one is wrong.
CVQA = {"101_0": "A", "101_1": "B. Noodles", "102_0": "I can't see.", "201_0": "A"}
# Right about the first country of NormAd, in lower case about the second, neutral about the third.
NORMAD = {"china": "Yes.", "japan": "no", "india": "3) Neither"}


def say(doc):
    if "story" in doc:
        return NORMAD.get(doc["country"], "I can't say.")
    return CVQA[doc["id"]] if "license" in doc else of_a_dish(doc)


def of_a_dish(doc):
    """Knows the first dish, by its option's number in English, by its text in Indonesian, and in no other language."""
    if "references" in doc:
        return {"en": f"It is {doc['answer']}.", "id_formal": doc["english"]}.get(doc["language"], "?")
    if doc["dish"] != "1" or doc["language"] == "ja_formal":
        return "I can't tell."
    text = dict(line.split(". ", 1) for line in doc["prompt"].splitlines() if line[:1].isdecimal())[doc["answer"]]
    return doc["answer"] if doc["language"] == "en" else text


def always_false(doc):
    """Says "False" to each statement of CulturalBench, and "A" to each question with options."""
    return say(doc) if "question_id" not in doc else "A" if "options" in doc else "False"


def knows_china(doc):
    """Judges all options about China right, and those about Japan but one; has no view of the others."""
    if "question_id" not in doc:
        return say(doc)
    if doc["country"] not in ("China", "Japan"):
        return "I am not sure."
    return "True" if "Ring" in doc.get("option", "") else doc["answer"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory, fixture_data):
    """The tables of the report on the runs of both harnesses, and the model of lm-eval."""
    from support.scripted_models import ScriptedChat, ScriptedLM

    output, lm = tmp_path_factory.mktemp("choices"), ScriptedLM(always_false)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        write_lm_eval(output / "runs" / "a", TASKS, None, "false", lm, bootstrap_iters=0)
        write_lmms_eval(output / "runs" / "b", TASKS, "china", lmms=ScriptedChat(knows_china), bootstrap_iters=0)
        assert main(["report", str(output / "runs"), "-o", str(output / "report"), "--formats", "csv"]) == 0
    return output / "report" / "csv", lm


BOTH = [
    ("cvqa", {"cvqa_en: Questions": 50, "cvqa_en: Pairs": 100 / 3, "cvqa_en: Unparsed": 25}),
    ("normad_score", {"Given the norm (rule of thumb)": 50}),
    ("normad_acc_yes_no", {"Given the norm (rule of thumb)": 50}),
    # "no" in lower case and both refusals are neutral to it, which one of the refused stories is.
    ("normad_acc_authors", {"Given the norm (rule of thumb)": 50}),
    ("normad_unparsed", {"Given the norm (rule of thumb)": 50}),
    ("normad_rule_said", {"Yes": 100 / 6, "No": 100 / 6, "Neither": 100 / 6}),
    ("normad_rule_by_bin", {"Confucian": 100, "Latin America": 0, "All": 50}),
    ("normad_rule_by_topic", {"Visiting": 50, "Gifts": 0}),
    # Two of the six questions of each type; the authors' reader doesn't find the one that is answered by text.
    ("worldcuisines_score_by_question", {"Average": 100 / 3, "Regional Cuisine": 100 / 3}),
    ("worldcuisines_acc_authors_by_question", {"Average": 100 / 6}),
    ("worldcuisines_unparsed_by_question", {"Average": 200 / 3}),
    ("worldcuisines_by_language", {"English": 50, "Indonesian (formal)": 50, "Japanese (formal)": 0}),
    ("worldcuisines_open_dish_score_by_question", {"Average": 200 / 3}),
    ("worldcuisines_open_dish_contains_dual_by_question", {"Average": 200 / 3}),
    # The English name is part of the Indonesian one for the second dish alone, "Tesk" in both languages.
    ("worldcuisines_open_dish_contains_single_by_question", {"Average": 50}),
]
# Two of five questions of CulturalBench have the right option A. Of four questions in Hard, the second model has one
# with all its rows right, and another with three of four.
EASY, HARD = ("Questions", "Unparsed"), ("Questions", "Options", "Called true", "Unparsed")
NAMES = [*(f"culturalbench_easy: {name}" for name in EASY), *(f"culturalbench_hard: {name}" for name in HARD)]
EACH = {"false": (40, 0, 0, 75, 0, 0), "china": (40, 60, 25, 100 * 7 / 16, 100 * 3 / 16, 50)}
CASES = [(table, model, expected) for table, expected in BOTH for model in EACH]
CASES += [("culturalbench", model, dict(zip(NAMES, values, strict=True))) for model, values in EACH.items()]
CASES.append(("culturalbench_hard_by_country", "china", {"China": 100, "Japan": 0, "India": 0}))


@pytest.mark.parametrize(("table", "model", "expected"), CASES)
def test_both_harnesses_give_what_was_worked_out_by_hand(shown, table, model, expected):
    with (shown[0] / f"{table}.csv").open(encoding="utf-8-sig", newline="") as file:
        [row] = [row for row in csv.DictReader(file) if row["Model"] == model]
    assert {name: float(row[name]) for name in expected} == pytest.approx(expected, abs=0.05)


def test_the_model_is_shown_the_image_and_the_prompt_of_the_data(shown):
    pictured = [arguments for arguments in shown[1].seen if len(arguments) > 2]
    assert {len(list(arguments[2]["visual"])) for arguments in pictured} == {1}
    assert {arguments[1]["max_gen_toks"] for arguments in pictured} == {16, 50}
    prompts = [arguments[0] for arguments in pictured]
    assert all("<image>" in prompt for prompt in prompts)
    assert any(prompt.endswith("\n\nPrint only the answer with a single answer id (1,2,3,4,5).") for prompt in prompts)
