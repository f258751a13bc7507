"""CEDAR's rows as documents: good ones, and every bad one with its message."""

from __future__ import annotations

import json
import logging

import pytest
from PIL import Image
from support.cedar_data import row, rows, write_folder

from culture_tasks.benchmarks.cedar.documents import check_languages, load
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, OPTION_WORDS
from culture_tasks.data.images import image_column
from culture_tasks.errors import DataError, DataUnavailableError, SettingsError


def english(folder, *content, **options):
    return load("text", "en", write_folder(folder, {"en": list(content)}, **options))


def refused(folder, *content):
    with pytest.raises(DataError) as caught:
        english(folder, *content)
    return str(caught.value)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_gold_label_maps_to_its_english_one(tmp_path, language):
    content = [row(number, language, emotion) for number, emotion in enumerate(EMOTIONS)]
    for one in content[::2]:
        del one["english_ver_answer"]
    questions = load("text", language, write_folder(tmp_path, {language: content}))
    assert [doc["gold"] for doc in questions.documents] == list(EMOTIONS)


def test_a_document_holds_its_row(tmp_path):
    questions = english(tmp_path, row(7, "en", "pain", narrative=""))
    (doc,) = questions.documents
    assert len(doc.pop("data")) >= 12
    assert doc == {
        "id": "7",
        "modality": "text",
        "language": "en",
        "prompt_language": "en",
        "narrative": "",
        "question": "Q en 7?",
        "gold": "pain",
        "minority": "",
        "supported": True,
    }


@pytest.mark.parametrize("name", ["english_nq.json", "text/english_nq_1166.json", "text-only/english_nq.json"])
def test_text_files_may_lie_in_any_folder(tmp_path, name):
    path = tmp_path / "cedar" / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([row(1, "en", "awe")]))
    assert load("text", "en", tmp_path).documents[0]["gold"] == "awe"


def test_the_bundled_items_load_with_their_images(fixture_data):
    for language in LANGUAGES:
        questions = load("multimodal", language, fixture_data)
        assert len(questions.documents) == 4
        assert len(image_column(questions.table, questions.image_names, questions.folder)) == 4


def test_labels_are_read_in_either_language(tmp_path):
    word = f"  {OPTION_WORDS['es']['embarrassment'].upper()} "
    content = [
        row(1, "es", "fear", second_label="dolor"),
        row(2, "es", "awe", second_label="relief"),
        row(3, "es", "awe", answer="awe", english_ver_answer=None),
        row(4, "es", "embarrassment", answer=word, english_ver_answer=None),
    ]
    documents = load("text", "es", write_folder(tmp_path, {"es": content}), "ja").documents
    assert [doc["minority"] for doc in documents] == ["pain", "relief", "", ""]
    assert [doc["gold"] for doc in documents] == ["fear", "awe", "awe", "embarrassment"]
    assert {doc["prompt_language"] for doc in documents} == {"ja"}


def test_the_english_answer_counts_where_the_two_differ(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        english(tmp_path, row(1, "en", "fear"))
        assert caplog.records == []
        questions = english(tmp_path, row(1, "en", "fear", answer="awe"), row(2, "en", "fear", answer="dread"))
    assert [doc["gold"] for doc in questions.documents] == ["fear", "fear"]
    (record,) = caplog.records
    assert "in 1 rows and none of the paper's words in 1" in record.message
    assert "culture-tasks data check cedar" in record.message


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"english_ver_answer": "angst"}, "row 2, field 'english_ver_answer': cedar: 'angst' is no gold label"),
        ({"answer": "hapiness", "english_ver_answer": ""}, "row 2, field 'answer': cedar: 'hapiness' is no gold label"),
        ({"minority": "boredom"}, "row 2, field 'minority': cedar: 'boredom' is no gold label"),
        ({"id": 1}, "row 2, field 'id': '1' is also the id of"),
        ({"id": "1"}, "row 2, field 'id': '1' is also the id of"),
        ({"id": None}, "row 2, field 'id': found None"),
        ({"question": " "}, "row 2, field 'question': found ' '"),
        ({"answer": ""}, "row 2, field 'answer': found ''"),
        ({"narrative": None}, "row 2, field 'narrative': found None"),
        ({"narative": "x"}, "unknown column 'narative'. Did you mean 'narrative'?"),
        ({"second_label": "awe", "minority": "awe"}, "the columns"),
    ],
)
def test_a_bad_row_is_named(tmp_path, changed, said):
    assert said in refused(tmp_path, row(1, "en", "fear"), row(2, "en", "fear") | changed)


def test_a_missing_column_and_the_nearest_label_are_named(tmp_path):
    message = refused(tmp_path, row(1, "en", "fear", answer="hapiness", english_ver_answer=None))
    assert "Did you mean 'happiness'?" in message
    assert "Allowed are: anger, disgust" in message
    bad = row(1, "en", "fear")
    del bad["question"]
    assert "no column 'question'" in refused(tmp_path, bad)


def test_missing_data_say_where_they_belong(tmp_path):
    with pytest.raises(DataUnavailableError, match=r"not on the Hub. Put cedar/multilingual/english_nq"):
        load("text", "en", None)
    with pytest.raises(DataError, match="no such folder"):
        load("text", "en", tmp_path / "nowhere")
    folder = write_folder(tmp_path, {"es": [row(1, "es", "fear")]})
    with pytest.raises(DataUnavailableError, match=r"holds no multilingual/english_nq\*.json.* Put the file there.$"):
        load("text", "en", folder)


def test_two_files_that_both_fit_are_refused(tmp_path):
    folder = write_folder(tmp_path)
    place = folder / "cedar" / "text"
    (place / "english_nq_2.json").write_bytes((place / "english_nq.json").read_bytes())
    with pytest.raises(DataError, match=r"both match. Keep one of them"):
        load("text", "en", folder)


def test_an_image_may_have_another_ending_or_name(tmp_path):
    content = rows()
    content["en"][1]["image"] = "scene.png"
    folder = write_folder(tmp_path, content, images=True)
    images = folder / "cedar" / "images"
    (images / "1.png").unlink()
    Image.new("RGB", (4, 4)).save(images / "1.jpg")
    Image.new("RGB", (4, 4)).save(images / "scene.png")
    questions = load("multimodal", "en", folder)
    assert questions.image_names == ["1.jpg", "scene.png"]
    assert len(image_column(questions.table, questions.image_names, questions.folder)) == 2


@pytest.mark.parametrize(("content", "said"), [(None, "no file '2.png'"), (b"no image", "broken image")])
def test_a_bad_image_is_named_with_its_row(tmp_path, content, said):
    folder = write_folder(tmp_path, images=True)
    image = folder / "cedar" / "images" / "2.png"
    image.unlink() if content is None else image.write_bytes(content)
    questions = load("multimodal", "sw", folder)
    with pytest.raises(DataError, match=f"swahili_inq_sample.json, row 2, field 'image': .*{said}"):
        image_column(questions.table, questions.image_names, questions.folder)


def test_supported_languages_are_checked():
    assert check_languages(None) is None
    assert check_languages(("zh", "en", "en")) == ("en", "zh")
    with pytest.raises(SettingsError, match=r"unknown language 'de'. Allowed are ar, en"):
        check_languages(("en", "de"))
    with pytest.raises(SettingsError, match=r"no language. Name some of ar"):
        check_languages(())
