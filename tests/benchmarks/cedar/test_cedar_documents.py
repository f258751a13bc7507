"""CEDAR's rows as documents: labels in either language, files, images, and the languages that a model supports."""

from __future__ import annotations

import unicodedata

import pytest
from PIL import Image
from support.cedar_data import row, rows, write_folder

from culture_tasks.benchmarks.cedar.benchmark import BENCHMARK
from culture_tasks.benchmarks.cedar.documents import SOURCES, labels_of, supported_languages, translated
from culture_tasks.benchmarks.cedar.documents import load as load_documents
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, OPTION_WORDS
from culture_tasks.errors import DataError, DataUnavailableError, SettingsError
from culture_tasks.settings import Settings


def load(modality, language, folder):
    return load_documents([SOURCES[modality, language]], Settings(data=folder))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_gold_label_maps_to_its_english_one_in_any_unicode_form(tmp_path, language):
    content = [row(number, language, emotion) for number, emotion in enumerate(EMOTIONS)]
    for one in content[::2]:
        del one["english_ver_answer"]
    documents = load("text", language, write_folder(tmp_path, {language: content})).rows
    assert [doc["gold"] for doc in documents] == list(EMOTIONS)
    for emotion, word in OPTION_WORDS[language].items():
        for form in ("NFC", "NFD", "NFKC"):
            assert translated(f" {unicodedata.normalize(form, word)} ", labels_of(language)) == emotion


def test_a_document_holds_its_row(tmp_path):
    (doc,) = load("text", "en", write_folder(tmp_path, {"en": [row(7, "en", "pain", narrative="")]})).rows
    assert len(doc.pop("data")) >= 12
    facts = {"modality": "text", "language": "en", "prompt_language": "en", "minority": "", "supported": True}
    assert doc == {"id": "7", "narrative": "", "question": "Q en 7?", "gold": "pain", **facts}


def test_labels_are_read_in_either_language_and_the_english_one_counts(tmp_path):
    word = f"  {OPTION_WORDS['es']['embarrassment'].upper()} "
    content = [
        row(1, "es", "fear", minority="dolor", answer="asombro"),
        row(2, "es", "awe", minority="relief", answer="temor"),
        row(3, "es", "awe", answer="awe", english_ver_answer=None),
        row(4, "es", "embarrassment", answer=word, english_ver_answer=None),
    ]
    documents = load("text", "es", write_folder(tmp_path, {"es": content})).rows
    assert [doc["minority"] for doc in documents] == ["pain", "relief", "none", "none"]
    assert [doc["gold"] for doc in documents] == ["fear", "awe", "awe", "embarrassment"]
    assert translated("मजा", labels_of("hi")) == "amusement"  # without nukta
    misspelt = [translated(word, labels_of("ar")) for word in ("تسليية", "اشمزاز")]  # in the paper
    assert misspelt == ["amusement", "disgust"]


def test_an_unknown_label_is_named_with_its_row(tmp_path):
    folder = write_folder(tmp_path, {"en": [row(1, "en", "awe"), row(2, "en", "awe", minority="reliefs")]})
    with pytest.raises(DataError, match=r"row 2, field 'minority': cedar: 'reliefs' is no gold label. Did you mean"):
        load("text", "en", folder)


def test_missing_data_say_where_they_belong_and_a_check_goes_on(tmp_path):
    with pytest.raises(DataUnavailableError, match=r"not on the Hub. Put cedar/text/english_nq"):
        load("text", "en", None)
    file = tmp_path / "cedar" / "text" / "arabic_nq.json"
    file.parent.mkdir(parents=True)
    file.write_text("[{", encoding="utf-8")
    report = BENCHMARK.check(Settings(data=tmp_path))
    assert f"{file}, line 1, column 3: not JSON" in report.problems[0]
    assert len(report.problems) == len(LANGUAGES)


def test_an_image_may_have_another_name_and_a_missing_one_is_named_with_its_row(tmp_path):
    content = rows()
    content["en"][1]["image"] = "scene.png"
    folder = write_folder(tmp_path, content, images=True)
    images = folder / "cedar" / "images"
    Image.new("RGB", (5, 4)).save(images / "scene.png")
    loaded = load("multimodal", "en", folder).images
    assert [one["image"].width for one in loaded] == [12, 5]
    (images / "2.png").unlink()
    with pytest.raises(DataError, match=r"swahili_inq_sample.json, row 2, field 'image': no file '2.png'"):
        load("multimodal", "sw", folder)


def test_supported_languages_are_checked():
    assert supported_languages(None) == LANGUAGES
    assert set(supported_languages(("zh", "en", "en"))) == {"en", "zh"}
    for codes in (("en", "de"), ()):
        with pytest.raises(SettingsError, match=r"unknown language '.*'. Expected some of ar, en"):
            supported_languages(codes)
