"""CEDAR's rows as documents, good ones and every bad one with its message; its prompts against the paper's figures."""

from __future__ import annotations

import re
import unicodedata

import pytest
from PIL import Image
from support.cedar_data import row, rows, write_folder
from support.papers import printed, wording

from culture_tasks.benchmarks.cedar.benchmark import BENCHMARK
from culture_tasks.benchmarks.cedar.documents import labels_of, prompt_file, render, supported_languages, translated
from culture_tasks.benchmarks.cedar.documents import load as load_documents
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, OPTION_WORDS, QUADRANTS
from culture_tasks.benchmarks.cedar.reading.reader import read_reply
from culture_tasks.benchmarks.interface import Picture
from culture_tasks.errors import DataError, DataUnavailableError, SettingsError
from culture_tasks.settings import Settings


def load(modality, language, folder):
    return load_documents(modality, [language], Settings(data=folder))


def english_label(word, language):
    return translated(word, labels_of(language))


def english(folder, *content):
    return load("text", "en", write_folder(folder, {"en": list(content)})).rows


def test_quadrants_hold_each_emotion_once():
    members = [emotion for emotions in QUADRANTS.values() for emotion in emotions]
    assert sorted(members) == sorted(EMOTIONS)
    assert [len(emotions) for emotions in QUADRANTS.values()] == [3, 4, 2, 5]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_gold_label_maps_to_its_english_one_in_any_unicode_form(tmp_path, language):
    content = [row(number, language, emotion) for number, emotion in enumerate(EMOTIONS)]
    for one in content[::2]:
        del one["english_ver_answer"]
    documents = load("text", language, write_folder(tmp_path, {language: content})).rows
    assert [doc["gold"] for doc in documents] == list(EMOTIONS)
    for emotion, word in OPTION_WORDS[language].items():
        for form in ("NFC", "NFD", "NFKC"):
            assert english_label(f" {unicodedata.normalize(form, word)} ", language) == emotion


def test_a_document_holds_its_row(tmp_path):
    (doc,) = english(tmp_path, row(7, "en", "pain", narrative=""))
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


@pytest.mark.parametrize("name", ["english_nq.json", "text-only/english_nq_1166.json"])
def test_text_files_may_lie_in_any_folder(tmp_path, name):
    folder = write_folder(tmp_path, {"en": [row(1, "en", "awe")]}) / "cedar"
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / "text" / "english_nq.json").rename(folder / name)
    assert load("text", "en", tmp_path).rows[0]["gold"] == "awe"


def test_labels_are_read_in_either_language(tmp_path):
    word = f"  {OPTION_WORDS['es']['embarrassment'].upper()} "
    content = [
        row(1, "es", "fear", second_label="dolor"),
        row(2, "es", "awe", second_label="relief"),
        row(3, "es", "awe", answer="awe", english_ver_answer=None),
        row(4, "es", "embarrassment", answer=word, english_ver_answer=None),
    ]
    documents = load("text", "es", write_folder(tmp_path, {"es": content})).rows
    assert [doc["minority"] for doc in documents] == ["pain", "relief", "none", "none"]
    assert [doc["gold"] for doc in documents] == ["fear", "awe", "awe", "embarrassment"]
    for word, language, label in (
        ("मजा", "hi", "amusement"),  # without nukta
        ("تسليية", "ar", "amusement"),  # misspelt in the paper
        ("اشمزاز", "ar", "disgust"),
    ):
        assert english_label(word, language) == label


def test_the_english_answer_counts_where_the_two_differ(tmp_path):
    documents = english(tmp_path, row(1, "en", "fear", answer="awe"), row(2, "en", "fear", answer="dread"))
    assert [doc["gold"] for doc in documents] == ["fear", "fear"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"english_ver_answer": "angst"}, "row 2, field 'english_ver_answer': cedar: 'angst' is no gold label"),
        (
            {"answer": "hapiness", "english_ver_answer": ""},
            "row 2, field 'answer': cedar: 'hapiness' is no gold label. Did you mean 'happiness'? "
            "Expected one of: anger, disgust",
        ),
        ({"minority": "boredom"}, "row 2, field 'minority': cedar: 'boredom' is no gold label"),
        ({"question": " "}, "row 2, field 'question': found ' '"),
        ({"narrative": None}, "row 2, field 'narrative': found None"),
        ({"second_label": "awe", "minority": "awe"}, "the columns"),
    ],
)
def test_a_bad_row_is_named(tmp_path, changed, said):
    with pytest.raises(DataError, match=re.escape(said)):
        english(tmp_path, row(1, "en", "fear"), row(2, "en", "fear") | changed)


def test_missing_data_say_where_they_belong(tmp_path):
    with pytest.raises(DataUnavailableError, match=r"not on the Hub. Put cedar/multilingual/english_nq"):
        load("text", "en", None)
    folder = write_folder(tmp_path, {"es": [row(1, "es", "fear")]})
    with pytest.raises(DataUnavailableError, match=r"not on the Hub. Put cedar/multilingual/english_nq"):
        load("text", "en", folder)


def test_a_check_goes_on_where_no_file_of_a_modality_can_be_read(tmp_path):
    file = tmp_path / "cedar" / "text" / "arabic_nq.json"
    file.parent.mkdir(parents=True)
    file.write_text("[{", encoding="utf-8")
    report = BENCHMARK.check(Settings(data=tmp_path))
    assert f"{file}, line 1, column 3: not JSON" in report.problems[0]
    assert len(report.problems) == len(LANGUAGES)


def test_an_image_may_have_another_ending_or_name_and_a_bad_one_is_named_with_its_row(tmp_path):
    content = rows()
    content["en"][1]["image"] = "scene.png"
    folder = write_folder(tmp_path, content, images=True)
    images = folder / "cedar" / "images"
    (images / "1.png").unlink()
    Image.new("RGB", (4, 4)).save(images / "1.jpg")
    Image.new("RGB", (5, 4)).save(images / "scene.png")
    loaded = load("multimodal", "en", folder).images
    assert [(one["image"].format, one["image"].width) for one in loaded] == [("JPEG", 4), ("PNG", 5)]
    (images / "2.png").unlink()
    with pytest.raises(DataError, match=r"swahili_inq_sample.json, row 2, field 'image': no file '2.png'"):
        load("multimodal", "sw", folder)


def test_supported_languages_are_checked():
    assert supported_languages(None) == LANGUAGES
    assert set(supported_languages(("zh", "en", "en"))) == {"en", "zh"}
    with pytest.raises(SettingsError, match=r"unknown language 'de'. Expected some of ar, en"):
        supported_languages(("en", "de"))
    with pytest.raises(SettingsError, match=r"unknown language ''. Expected some of ar"):
        supported_languages(())


# Prompts

FIGURES = {"multimodal": "figure_9", "text": "figure_10"}
BOTH = [(modality, language) for modality in FIGURES for language in LANGUAGES]
ORDER = ("ar", "zh", "en", "hi", "ja", "es", "sw")  # of the prompts in Figures 9 and 10


@pytest.mark.parametrize(("modality", "language"), BOTH)
def test_prompt_is_the_papers_white_space_and_two_arabic_words_aside(modality, language):
    text, figure = prompt_file(language, modality).text, printed("cedar", FIGURES[modality])
    figure = figure.replace(r"\n", "\n").replace("اشمزاز", "اشمئزاز").replace("تسليية", "تسلية")
    assert wording(figure).count(wording(text)) == 1
    assert text.count("{narrative}") == text.count("{question}") == 1
    assert text.count("{") == text.count("}") == 2
    places = [text.index(word, text.index("{question}")) for word in OPTION_WORDS[language].values()]
    assert places == sorted(places)


@pytest.mark.parametrize("figure", FIGURES.values())
def test_options_as_printed_map_to_the_english_ones(figure):
    # Below the question stands a line "[options]: anger, disgust, ...", with the commas of the language.
    lines = re.findall(r"\{question\}\\n\n\n\[.+\]: (.+)\n", printed("cedar", figure))
    options = dict(zip(ORDER, (re.split("[,、،] ?", line) for line in lines), strict=True))
    for language, words in options.items():
        for word, english in zip(words, options["en"], strict=True):
            assert english_label(word, language) == read_reply(word) == english


def test_prompts_are_pinned():
    hashes = {name: prompt_file(name[1], name[0]).sha256 for name in BOTH}
    assert len(set(hashes.values())) == 14
    assert hashes["text", "en"].startswith("1edeb5e99f0d")


def test_layout_of_the_english_prompts():
    doc = {"prompt_language": "en", "narrative": "N", "question": "Q"}
    image, below = render(doc | {"modality": "multimodal"}).parts
    assert image == Picture()
    assert below.splitlines() == [
        "Read the following image and question, and select ONE emotion that best matches the situation.",
        "",
        "[question]: N",
        "Q",
        "",
        "[options]: anger, disgust, fear, happiness, sadness, surprise, amusement, awe, contentment, desire, "
        "embarrassment, pain, relief, sympathy",
        "Now, [your answer] is:",
    ]
    (text,) = render(doc | {"modality": "text"}).parts
    assert "[narrative]: N\n[question]: Q\n\n[options]" in text
