"""Benchmarks without a judge in one run of each harness and in the report, with numbers that are worked out by hand."""

from __future__ import annotations

import csv
import json
import shutil
import sys

import pytest
from support.in_process import run_lm_eval
from support.written_runs import samples_of, write_lm_eval, write_lmms_eval

from culture_tasks.benchmarks.blend import official
from culture_tasks.cli.main import main
from culture_tasks.errors import MissingExtraError

pytestmark = pytest.mark.slow

TASKS = [
    *("culturalbench_easy", "culturalbench_hard", "cvqa_en", "normad_none", "normad_rule"),
    *("worldcuisines", "worldcuisines_open_dish"),
    *("blend", "blend_pers", "blend_en", "blend_en_pers", "blend_mcq"),
]
# Of three Indonesian questions of CVQA two are right and one has no choice; the Japanese one is wrong.
CVQA = {"101_0": "A", "101_1": "B. Noodles", "102_0": "I can't see.", "201_0": "A"}
# Right about the first country of NormAd, in lower case about the second, neutral about the third.
NORMAD = {"china": "Yes.", "japan": "no", "india": "3) Neither"}


# BLEnD's South Korea: coffee 4 votes, milk 1; football 3, taekwondo 2; March 5. China: soy milk 3, tea 1.
KOREA = {"Toy-01": "답: 우유입니다.", "Toy-02": "Football.", "Toy-03": "사과"}


def of_a_region(doc):
    """Answers in South Korea, and once in China, but knows one question everywhere where ``blend_en`` asks it."""
    is_first = doc["question_id"] == "Toy-01"
    if "choices" in doc:
        return f"The answer is {doc['answer']}." if is_first else "Any of them."
    if doc["prompt_name"] == "inst_4.en.v1" and doc["region"] not in ("UK", "US"):
        return doc["annotations"][0]["en_answers"][0] if is_first else "?"
    if doc["region"] == "China":
        return "茶" if is_first else "?"
    return KOREA[doc["question_id"]] if doc["region"] == "South Korea" else "?"


def say(doc):
    if "region" in doc:
        return of_a_region(doc)
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
    return say(doc) if "country" not in doc or "question_id" not in doc else "A" if "options" in doc else "False"


def knows_china(doc):
    """Judges all options about China right, and those about Japan but one; has no view of the others."""
    if "country" not in doc or "question_id" not in doc:
        return say(doc)
    if doc["country"] not in ("China", "Japan"):
        return "I am not sure."
    return "True" if "Ring" in doc.get("option", "") else doc["answer"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory, fixture_data):
    """The folder of the runs of both harnesses, and of the report on them."""
    from support.scripted_models import ScriptedChat, ScriptedLM

    output, lm = tmp_path_factory.mktemp("choices"), ScriptedLM(always_false)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        write_lm_eval(output / "runs" / "a", TASKS, None, "false", lm, bootstrap_iters=0)
        write_lmms_eval(output / "runs" / "b", TASKS, "china", lmms=ScriptedChat(knows_china), bootstrap_iters=0)
        assert main(["report", str(output / "runs"), "-o", str(output / "report"), "--formats", "csv"]) == 0
    return output


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
    # In South Korea two of three are hits, whose weights are 1/4 and 3/3; in China one, of weight 1/3.
    ("blend_by_region", {"South Korea": 200 / 3, "China": 100 / 3, "Iran": 0, "All": 100 / 16}),
    ("blend_sem_w_by_region", {"South Korea": 500 / 12, "China": 100 / 9, "All": 100 * (5 / 12 + 1 / 9) / 16}),
    ("blend_pers_by_topic", {"Food": 200 / 16, "Sport": 100 / 16, "Education": 0}),
    ("blend_en_pers_by_region", {"South Korea": 100 / 3}),  # milk in Korean is no English answer
    ("blend_mcq_by_region", {"UK": 50}),
    ("blend_languages", {"South Korea: English": 100 / 3, "South Korea: Native": 200 / 3}),
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
    with (shown / "report" / "csv" / f"{table}.csv").open(encoding="utf-8-sig", newline="") as file:
        [row] = [row for row in csv.DictReader(file) if row["Model"] == model]
    assert {name: float(row[name]) for name in expected} == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("run", ["a", "b"])
def test_blend_s_results_and_samples(shown, run):
    [path] = (path for path in (shown / "runs" / run).rglob("*.json") if "results" in path.name)
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    # Regions that share questions know no more than one: the standard deviation of 1, 0 and 0 over the root of three.
    assert results["blend_en"]["sem_b,none"] == results["blend_en"]["sem_b_stderr,none"] == pytest.approx(1 / 3)
    assert results["blend"]["sem_w_South Korea,none"] == pytest.approx(5 / 12)
    records = [row["record"] for row in sorted(samples_of(path, "blend"), key=lambda row: row["doc_id"])]
    records = [record for record in records if record["groups"]["region"] == "South Korea"]
    assert [record["score"] for record in records] == [1.0, 1.0, 0.0]
    assert [record["runs"][0]["label"] for record in records] == ["우유", "football", ""]
    assert [record["values"]["sem_w"] for record in records] == [0.25, 1.0, 0.0]
    assert records[0]["groups"] == {"region": "South Korea", "topic": "food", "language": "ko"}
    assert records[0]["references"] == ["커피", "coffee", "우유", "milk"]
    assert (records[0]["cluster"], records[0]["prompt"]) == ("Toy-01", "inst_4.south_korea")


def test_the_paper_s_matcher_has_metrics_of_its_own_and_stops_the_run_where_it_is_missing(
    fixture_data, tmp_path, monkeypatch
):
    from support.scripted_models import ScriptedLM

    for path in (fixture_data / "blend").rglob("China_*"):  # which is then all that is asked
        copy = tmp_path / path.relative_to(fixture_data)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingExtraError, match=r"for Chinese needs the package 'jieba'"):
        run_lm_eval(ScriptedLM(lambda doc: pytest.fail("asked")), ["blend_official"])
    monkeypatch.setattr(official, "_LEMMATISERS", dict.fromkeys(("zh", "en"), ("", lambda: str.split)))
    # China: soy milk 3 votes, tea 1; table tennis; September. The default rule takes characters in any order.
    said = {"Toy-01": "浆豆", "Toy-02": "tennis table", "Toy-03": "?"}
    results = run_lm_eval(ScriptedLM(lambda doc: said[doc["question_id"]]), ["blend_official"], bootstrap_iters=0)
    for name, value in {"sem_b_official": 1 / 3, "sem_w_official": 1 / 3, "sem_b": 2 / 3, "sem_w": 2 / 3}.items():
        for group in ("", "_China"):
            assert results["results"]["blend_official"][f"{name}{group},none"] == pytest.approx(value)
    official._thread.submit(vars, official._lemmatisers).result().clear()
    official._lemmas.cache_clear()
