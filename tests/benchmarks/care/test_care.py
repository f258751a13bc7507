"""CARE's questions as documents, in the culture's language and in English."""

from __future__ import annotations

import json

import pytest

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

ROW = {
    "question": " ما اسم هذا الطبق؟\n",
    "answer": "كبسة",
    "culture_type": "Cultural entities",
    "associated_culture": "Native (Arab)",
    "geographic_scope": "Continent-wide",
}
ENGLISH = {"question_en": "What is this dish called?", "answer_en": "Kabsa"}


def load(folder, *rows, task="care_ar"):
    (folder / "care").mkdir(exist_ok=True)
    (folder / "care" / "Arabic-test.json").write_text(json.dumps(rows), encoding="utf-8")
    return task_named(task).data.load(Settings(data=folder)).rows


def test_a_document_holds_what_the_row_says_and_the_cross_lingual_one_its_english(tmp_path):
    (doc,), (english,) = (load(tmp_path, ROW | ENGLISH, task=task) for task in ("care_ar", "care_en_ar"))
    assert doc == {
        "id": "ar-0",
        "language": "ar",
        "prompt_language": "ar",
        "question": " ما اسم هذا الطبق؟\n",
        "answer": "كبسة",
        "category": "entities",
        "culture": "Native (Arab)",
        "scope": "continent_wide",
        "data": doc["data"],
    }
    translated = {"prompt_language": "en", "question": "What is this dish called?", "answer": "Kabsa"}
    assert english == {**doc, **translated, "data": english["data"]}
    score = task_named("care_ar").score(doc, ["x"])
    assert (score.rubric.name, score.references) == ("care_entities_opinion", ("كبسة",))
    assert score.groups["culture"] == "Native (Arab)"


def test_ids_of_the_data_are_kept_and_occur_once(tmp_path):
    assert [doc["id"] for doc in load(tmp_path, ROW | {"id": "x"}, ROW | {"id": 3})] == ["ar-x", "ar-3"]
    with pytest.raises(DataError, match="row 2, field 'id': '7' is also the id of"):
        load(tmp_path, ROW | {"id": 7}, ROW | {"id": "7"})
