"""CARE's questions: as released, in older spellings, in English, and refused where they can't be used."""

from __future__ import annotations

import json

import pytest

from culture_tasks.benchmarks.care.benchmark import CATEGORIES, RELEASED_NAMES, TABLES, category_of
from culture_tasks.benchmarks.care.benchmark import load as load_table
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

ROW = {
    "question": "ما اسم هذا الطبق؟",
    "answer": "كبسة",
    "culture_type": "Cultural entities",
    "associated_culture": "Native (Arab)",
    "geographic_scope": "Continent-wide",
}
ENGLISH = {"question_en": "What is this dish called?", "answer_en": "Kabsa"}
OTHER = ROW | {"question": "س"}


@pytest.fixture
def folder(tmp_path):
    """Returns what writes rows as the Arabic test file and gives the data folder."""

    def put(*rows, name="Arabic-test.json"):
        (tmp_path / "care").mkdir(exist_ok=True)
        (tmp_path / "care" / name).write_text(json.dumps(list(rows)), encoding="utf-8")
        return tmp_path

    return put


def load(language, folder, *, english=False):
    return load_table(TABLES[language], language, Settings(data=folder), english=english).rows


def refused(folder, **options):
    with pytest.raises(DataError) as caught:
        load("ar", folder, **options)
    return str(caught.value)


def test_a_category_is_known_by_its_own_and_its_released_name_and_by_variants_of_the_spelling():
    variants = {"social-norm": "norms", "C. sense": "commonsense", " opinions ": "opinion", "entity": "entities"}
    for category in CATEGORIES:
        released = RELEASED_NAMES[category]
        variants |= dict.fromkeys((category, released, released.upper().replace(" ", "_")), category)
    assert {text: category_of(text) for text in variants} == variants


def test_another_category_is_none():
    for text in ("", "cultural", "social", "Nationwide", "文化", "norms and commonsense", "Literacie"):
        assert category_of(text) is None


def test_a_document_holds_what_the_row_says_and_the_cross_lingual_one_its_english(folder):
    data = folder(ROW | ENGLISH)
    (doc,), (english,) = load("ar", data), load("ar", data, english=True)
    assert doc == {
        "id": "ar-0",
        "language": "ar",
        "prompt_language": "ar",
        "question": "ما اسم هذا الطبق؟",
        "answer": "كبسة",
        "category": "entities",
        "culture": "Native (Arab)",
        "scope": "continent_wide",
        "data": doc["data"],
    }
    translated = {"prompt_language": "en", "question": "What is this dish called?", "answer": "Kabsa"}
    assert english == {**doc, **translated, "data": english["data"]}


@pytest.mark.parametrize(("field", "value"), [("question_en", None), ("answer_en", "  ")])
def test_a_missing_translation_is_refused_in_the_cross_lingual_variant_only(folder, field, value):
    data = folder(ROW | ENGLISH, OTHER | ENGLISH | {field: value})
    assert len(load("ar", data)) == 2
    assert f"row 2, field '{field}': found nothing. The care_en_… tasks need English" in refused(data, english=True)


@pytest.mark.parametrize("name", ["Arabic_test.json", "arabic-TEST.JSON"])
def test_the_other_names_of_columns_and_files_are_known(folder, name):
    renamed = {**ROW, "english_question": "Q", "english_answer": "A", "source": "native", "cul_type": "literacy"}
    del renamed["culture_type"]
    (doc,) = load("ar", folder(renamed, name=name), english=True)
    assert (doc["category"], doc["question"], doc["answer"]) == ("literacy", "Q", "A")


def test_spellings_of_the_scope(folder):
    spellings = {
        "Continent-wide": "continent_wide",
        "World-wide": "worldwide",
        "Sub-national-wide": "sub_nationwide",
        "sub_nationwide": "sub_nationwide",
        "NATIONWIDE": "nationwide",
    }
    rows = [{**ROW, "question": written, "geographic_scope": written} for written in spellings]
    assert {doc["question"]: doc["scope"] for doc in load("ar", folder(*rows))} == spellings


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": ""}, "row 2, field 'answer': found ''. Expected a text that isn't empty"),
        ({"culture_type": "Literature"}, "row 2, field 'culture_type': found 'Literature'. Did you mean 'Literacy'?"),
        ({"geographic_scope": "Nationwid"}, "found 'Nationwid'. Did you mean 'nationwide'? Expected one of"),
        ({"associated_culture": " "}, "row 2, field 'associated_culture'"),
        ({"question": f" {ROW['question']} ", "culture_type": "Opinion"}, "with the answer of"),
    ],
)
def test_a_row_that_can_not_be_used_is_named(folder, change, said):
    data = folder(ROW, OTHER | change)
    assert said in refused(data)
    assert str(data / "care" / "Arabic-test.json") in refused(data)


def test_ids_of_the_data_are_kept_and_occur_once(folder):
    assert [doc["id"] for doc in load("ar", folder({**ROW, "id": "x"}, {**OTHER, "id": 3}))] == ["ar-x", "ar-3"]
    assert "row 2, field 'id': '7' is also the id of" in refused(folder({**ROW, "id": 7}, {**OTHER, "id": "7"}))


def test_a_question_may_come_twice_with_other_answers(folder):
    assert len(load("ar", folder(ROW, ROW | {"answer": "another"}))) == 2
