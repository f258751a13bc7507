"""The prompts and their options against the paper's figures."""

from __future__ import annotations

import re

import pytest
from support.papers import printed, wording

from culture_tasks.benchmarks.cedar import documents
from culture_tasks.benchmarks.cedar.documents import english_label, prompt_file
from culture_tasks.benchmarks.cedar.labels import LANGUAGES, OPTION_WORDS
from culture_tasks.benchmarks.cedar.reading.choice import read_reply
from culture_tasks.benchmarks.interface import Picture

FIGURES = {"multimodal": "figure_9", "text": "figure_10"}
BOTH = [(modality, language) for modality in FIGURES for language in LANGUAGES]
ORDER = ("ar", "zh", "en", "hi", "ja", "es", "sw")  # of the prompts in Figures 9 and 10


def render(language, modality, narrative, question):
    """The text of a prompt, which an image stands before where there is one."""
    doc = {"prompt_language": language, "modality": modality, "narrative": narrative, "question": question}
    *image, text = documents.render(doc).parts
    assert image == ([Picture()] if modality == "multimodal" else [])
    return text


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
            assert english_label(word, language, "row 1") == read_reply(word) == english


def test_prompts_are_pinned():
    hashes = {name: prompt_file(name[1], name[0]).sha256 for name in BOTH}
    assert len(set(hashes.values())) == 14
    assert hashes["text", "en"].startswith("1edeb5e99f0d")


def test_layout_of_the_english_prompts():
    assert render("en", "multimodal", "N", "Q").splitlines() == [
        "Read the following image and question, and select ONE emotion that best matches the situation.",
        "",
        "[question]: N",
        "Q",
        "",
        "[options]: anger, disgust, fear, happiness, sadness, surprise, amusement, awe, contentment, desire, "
        "embarrassment, pain, relief, sympathy",
        "Now, [your answer] is:",
    ]
    assert "[narrative]: N\n[question]: Q\n\n[options]" in render("en", "text", "N", "Q")
