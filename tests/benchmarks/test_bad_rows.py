"""Rows that can't be used are named by file, row and field: the bundled data with another first row."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

CARE, VQA, CEDAR, CASES = (
    "care/Arabic-test.json",
    "culturalvqa/test.jsonl",
    "cedar/text/english_nq.json",
    "crosscult/cases.jsonl",
)
KOREA, TOPICS, PROMPTS = (
    f"blend/{name}"
    for name in (
        "annotations/South_Korea_data.json",
        "questions/South_Korea_questions.csv",
        "prompts/South_Korea_prompts.csv",
    )
)
CHOICES, DISHES = "blend/mc_questions_file.csv", "worldcuisines/small_task1.jsonl"
NOBODY = {"idk": 0, "no-answer": 0, "not-applicable": 0}
VOTES = {"answers": ["a"], "en_answers": ["b"], "count": 1}

ROWS = [
    # task, file, changes of its first row, message
    ("care_ar", CARE, {"answer": ""}, "row 1, field 'answer': found ''. Expected a text that isn't empty"),
    ("care_ar", CARE, {"culture_type": "Literature"}, "'culture_type': found 'Literature'. Did you mean 'Literacy'?"),
    ("care_ar", CARE, {"geographic_scope": "Nationwid"}, "found 'Nationwid'. Did you mean 'Nationwide'? Expected one"),
    ("care_ar", CARE, {"associated_culture": " "}, "row 1, field 'associated_culture'"),
    ("care_en_ar", CARE, {"answer_en": " "}, "row 1, field 'answer_en': found nothing. The care_en_… tasks show it"),
    ("culturalvqa_blind", VQA, {"answers": ["x"]}, "unknown column 'answers'"),
    *(
        ("culturalvqa_blind", VQA, {"all_answers": value}, "row 1, field 'all_answers")
        for value in ("[naan, roti]", "[1, 2]", "['a', ['b']]", "['a'] + ['b']", "['a'", 7)
    ),
    ("culturalvqa_blind", VQA, {"all_answers": []}, "row 1, field 'all_answers': found nothing, here and in 0 more"),
    ("culturalvqa_country", VQA, {"country": ""}, "'country': found nothing. culturalvqa_country shows it"),
    ("culturalvqa_lens", VQA, {"entities": []}, "'entities': found nothing. culturalvqa_lens shows it"),
    ("culturalvqa_fewshot", VQA, {"image": "gone.png"}, "row 1, field 'image': no file 'gone.png'"),
    ("cedar_text_en", CEDAR, {"english_ver_answer": "angst"}, "'english_ver_answer': cedar: 'angst' is no gold label"),
    ("cedar_text_en", CEDAR, {"answer": "hapiness", "english_ver_answer": ""}, "Did you mean 'happiness'?"),
    ("cedar_text_en", CEDAR, {"minority": "boredom"}, "row 1, field 'minority': cedar: 'boredom' is no gold label"),
    ("cedar_text_en", CEDAR, {"narrative": None}, "row 1, field 'narrative': found None"),
    ("crosscult_diagnostic", CASES, {"answer_arab_ar": " "}, "row 1, field 'answer_arab_ar'"),
    ("crosscult_diagnostic", CASES, {"topic": "Food"}, "'topic': found 'Food'. Expected one of Social Values"),
    ("crosscult_diagnostic", CASES, {"topic": "religious"}, "row 2, fields 'topic' and 'split': found 'social'"),
    ("crosscult_diagnostic", CASES, {"split": "validation"}, "row 1, field 'split': found 'validation'"),
    ("blend", KOREA, {"annotations": [VOTES | {"count": 0}]}, "row 1, field 'annotations.0.count': found 0"),
    ("blend", KOREA, {"idks": ["idk"]}, "field 'idks': found ['idk']"),
    ("blend", KOREA, {"idks": NOBODY | {"idk": "many"}}, "field 'idks.idk': found 'many'"),
    ("blend", KOREA, {"ID": "Q9"}, "row 1, field 'ID': found 'Q9', which is not among the questions that"),
    ("blend", TOPICS, {"Topic": "Foods"}, "field 'topic': found 'Foods'. Did you mean 'Food'?"),
    ("blend", PROMPTS, {"Translation": "{ㅋ}"}, "field 'Translation' of 'inst-4': found '{ㅋ}'. Expected a text"),
    ("blend", PROMPTS, {"id": "inst-1"}, "field 'Translation' of 'inst-4': found ''"),
    ("blend_mcq", CHOICES, {"answer_idx": "Z"}, "field 'answer_idx': found 'Z'. Expected one of A, B"),
    ("blend_mcq", CHOICES, {"choices": "coffee, tea"}, "field 'choices': found 'coffee, tea'"),
    ("worldcuisines_dish", DISHES, {"lang": "xx"}, "row 1, field 'lang': found 'xx'"),
    ("worldcuisines_dish", DISHES, {"multi_choice_answer": 9}, "found 9. Expected the number of an option"),
    ("worldcuisines_dish", DISHES, {"image": "../../secret.png"}, "field 'image'"),
    ("normad_rule", "normad/normad.csv", {"Gold Label": "maybe"}, "row 1, field 'label': found 'maybe'"),
    ("normad_rule", "normad/normad.csv", {"Rule-of-Thumb": ""}, "'Rule-of-Thumb': found nothing. normad_rule shows"),
    ("cvqa", "cvqa/test.jsonl", {"Label": 4}, "row 1, field 'label': found 4"),
    ("cvqa", "cvqa/test.jsonl", {"Options": ["a", "b"]}, "row 1, field 'options'"),
    ("cvqa", "cvqa/test.jsonl", {"Options": "a, b"}, "field 'options': found 'a, b'. Expected a list of texts"),
    ("cvqa", "cvqa/test.jsonl", {"Subset": "Tamil"}, "row 1, field 'subset': found 'Tamil'"),
    ("culturalbench_easy", "culturalbench/easy.jsonl", {"answer": "E"}, "row 1, field 'answer': found 'E'"),
]  # fmt: skip


def rows_in(path):
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".csv":
        return list(csv.DictReader(text.splitlines(keepends=True)))
    rows = json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))
    return [{"ID": key, **row} for key, row in rows.items()] if isinstance(rows, dict) else rows


def with_first_row(folder, data, file, changes):
    """Copies a benchmark's bundled data, with other values in the first row of a file; returns the file."""
    name = Path(file).parts[0]
    shutil.copytree(data / name, folder / name)
    path = folder / file
    first, *rows = rows_in(path)
    path.unlink()
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in (first | changes, *rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize(("task", "file", "changes", "message"), ROWS)
def test_a_bad_row_is_named(tmp_path, fixture_data, task, file, changes, message):
    path = with_first_row(tmp_path, fixture_data, file, changes)
    with pytest.raises(DataError) as error:
        task_named(task).data.load(Settings(data=tmp_path))
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("task", "file", "changes", "field", "value"),
    [
        ("normad_none", "normad/normad.csv", {"Rule-of-Thumb": "", "Value": ""}, "rule", ""),
        ("cvqa", "cvqa/test.jsonl", {"Options": "['a', 'b', 'c', 'd']"}, "options", ["a", "b", "c", "d"]),
        ("culturalbench_hard", "culturalbench/hard.jsonl", {"answer": "FALSE"}, "answer", "False"),
        ("care_ar", CARE, {"culture_type": "NORMS", "geographic_scope": "sub-nationalwide"}, "scope", "sub_nationwide"),
        ("care_ar", CARE, {"question_en": ""}, "prompt_language", "ar"),
        ("crosscult_diagnostic", CASES, {"topic": "social", "split": "single"}, "topic", "social"),
        ("culturalvqa_country", VQA, {"country": "Peru"}, "country", ""),
        ("culturalvqa_blind", VQA, {"country": "Türkiye", "facet": "Drink"}, "country", "turkey"),
        ("culturalvqa_blind", VQA, {"facet": "Drink"}, "facet", "drinks"),
        ("blend", TOPICS, {"Topic": "work life"}, "topic", "food"),
    ],
)  # fmt: skip
def test_what_only_looks_odd_is_read(tmp_path, fixture_data, task, file, changes, field, value):
    with_first_row(tmp_path, fixture_data, file, changes)
    assert task_named(task).data.load(Settings(data=tmp_path)).rows[0][field] == value
