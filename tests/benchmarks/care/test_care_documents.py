"""CARE's questions: as released, in older spellings, in English, and refused where they can't be used."""

from __future__ import annotations

import json
import logging
from collections import Counter

import datasets
import pytest

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.care.documents import CONFIGS, LANGUAGES, SCOPES, SOURCES, CareDoc, load
from culture_tasks.data import sources
from culture_tasks.errors import DataError

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


def refused(folder, **options):
    with pytest.raises(DataError) as caught:
        load("ar", folder, **options)
    return str(caught.value)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_bundled_items_load_in_the_language_and_in_english(fixture_data, language):
    docs, english = load(language, fixture_data), load(language, fixture_data, english=True)
    assert Counter(doc["category"] for doc in docs) == dict.fromkeys(CATEGORIES, 2)
    assert {doc["scope"] for doc in docs} <= set(SCOPES)
    assert [doc["id"] for doc in docs] == [doc["id"] for doc in english]
    assert len({doc["id"] for doc in docs}) == 10
    assert all(doc["question"].strip() and doc["answer"].strip() and doc["culture"] for doc in docs)
    assert all(doc["question"].isascii() for doc in english)
    assert not any(doc["question"].isascii() for doc in docs)


def test_a_document_holds_what_the_row_says_and_the_cross_lingual_one_its_english(folder):
    data = folder(ROW | ENGLISH)
    (doc,), (english,) = load("ar", data), load("ar", data, english=True)
    assert doc == CareDoc(
        id="ar-0",
        language="ar",
        prompt_language="ar",
        question="ما اسم هذا الطبق؟",
        answer="كبسة",
        category="entities",
        culture="Native (Arab)",
        scope="continent_wide",
        data=doc["data"],
    )
    translated = {"prompt_language": "en", "question": "What is this dish called?", "answer": "Kabsa"}
    assert english == {**doc, **translated, "data": english["data"]}


@pytest.mark.parametrize(("field", "value"), [("question_en", None), ("answer_en", ""), ("answer_en", "  ")])
def test_a_missing_translation_is_refused_in_the_cross_lingual_variant_only(folder, field, value):
    data = folder(ROW | ENGLISH, OTHER | ENGLISH | {field: value})
    assert len(load("ar", data)) == 2
    assert f"row 2, field '{field}': found nothing. The care_en_… tasks need English" in refused(data, english=True)


def test_the_other_names_of_columns_are_known(folder):
    renamed = {**ROW, "english_question": "Q", "english_answer": "A", "source": "native", "cul_type": "literacy"}
    del renamed["culture_type"]
    (doc,) = load("ar", folder(renamed), english=True)
    assert (doc["category"], doc["question"], doc["answer"]) == ("literacy", "Q", "A")


@pytest.mark.parametrize(
    ("written", "scope"),
    [
        ("Continent-wide", "continent_wide"),
        ("World-wide", "worldwide"),
        ("Sub-national-wide", "sub_nationwide"),
        ("sub_nationwide", "sub_nationwide"),
        ("NATIONWIDE", "nationwide"),
    ],
)
def test_spellings_of_the_scope(folder, written, scope):
    assert load("ar", folder({**ROW, "geographic_scope": written}))[0]["scope"] == scope


@pytest.mark.parametrize("name", ["Arabic_test.json", "arabic-TEST.JSON"])
def test_the_file_s_released_names_are_found(folder, name):
    assert len(load("ar", folder(ROW, name=name))) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": ""}, "row 2, field 'answer': found ''. Expected a text that isn't empty"),
        ({"question": 7}, "row 2, field 'question': found 7. Expected a text"),
        ({"culture_type": "Literature"}, "row 2, field 'culture_type': found 'Literature'. care: unknown category"),
        ({"geographic_scope": "Nationwid"}, "found 'Nationwid'. Did you mean 'nationwide'? Allowed are"),
        ({"associated_culture": " "}, "row 2, field 'associated_culture'"),
        ({"id": "a"}, "row 1, field 'id': found nothing, while"),
        ({"Question": "x"}, "unknown column 'Question'. Did you mean 'question'"),
    ],
)
def test_a_row_that_can_not_be_used_is_named(folder, change, said):
    data = folder(ROW, OTHER | change)
    assert said in refused(data)
    assert str(data / "care" / "Arabic-test.json") in refused(data)


def test_ids_of_the_data_are_kept_and_occur_once(folder):
    assert [doc["id"] for doc in load("ar", folder({**ROW, "id": "x"}, {**OTHER, "id": 3}))] == ["ar-x", "ar-3"]
    assert "row 2, field 'id': '7' is also the id of" in refused(folder({**ROW, "id": 7}, {**OTHER, "id": "7"}))


def test_a_question_that_comes_twice_is_refused_with_both_rows(folder):
    said = refused(folder(ROW, OTHER, ROW | {"question": f" {ROW['question']} ", "culture_type": "Opinion"}))
    assert "Arabic-test.json, row 3, field 'question': " in said
    assert "stands with the same answer in" in said
    assert "Arabic-test.json, row 1 too" in said
    assert len(load("ar", folder(ROW, ROW | {"answer": "another"}))) == 2


def test_the_hub_s_repeated_questions_are_named_in_the_log(monkeypatch, caplog):
    monkeypatch.setattr(sources, "load_split", lambda *_, **__: datasets.Dataset.from_list([ROW, OTHER, ROW]))
    with caplog.at_level(logging.WARNING):
        assert len(load("ar", None)) == 3
    assert "row 3, field 'question'" in caplog.text


def test_equal_rows_have_one_fingerprint_and_any_change_another(folder):
    fingerprints = {
        load("ar", folder(*rows))[0]["data"]
        for rows in ([ROW], [ROW, OTHER], [{**ROW, "answer": "x"}], [ROW], [{**ROW, "id": None, "source": ""}])
    }
    assert len(fingerprints) == 3


def test_sources_name_the_three_configurations():
    assert {language: SOURCES[language].config for language in LANGUAGES} == CONFIGS
    assert SOURCES["ar"].name == "geyang627/CARE-eval (arabic)"
