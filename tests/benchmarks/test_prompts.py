"""What a model is asked, word by word: every task on the bundled data, and the prompt files beside the papers.

``UPDATE_PROMPTS=1 pytest tests/benchmarks/test_prompts.py`` writes ``tests/fixtures/prompts`` anew. A published prompt
never changes: a changed wording is a new file and version.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from pathlib import Path

import pytest
from support.papers import printed, wording

from culture_tasks.benchmarks.care.rubrics import RUBRIC_FOR
from culture_tasks.benchmarks.cedar.documents import labels_of, prompt_file, translated
from culture_tasks.benchmarks.cedar.labels import LANGUAGES, OPTION_WORDS
from culture_tasks.benchmarks.cedar.reading.reader import read_reply
from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.prompt_files import load
from culture_tasks.settings import Settings

FIXTURES = Path(__file__).parents[1] / "fixtures" / "prompts"


@pytest.fixture(scope="module")
def lemmatisers():
    """Stand-ins for the packages of BLEnD's own matcher, which its tasks ask for before they load anything."""
    from culture_tasks.benchmarks.blend import official

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(official, "_LEMMATISERS", dict.fromkeys(official._LEMMATISERS, ("", lambda: str.split)))
        yield
    official._thread.submit(vars(official._lemmatisers).clear)


def shown(task, doc):
    """Returns a prompt as text."""
    prompt = task.prompt(doc)
    parts = [part if isinstance(part, str) else f"<image {part.row or ''}>" for part in prompt.parts]
    return "\n".join([*([f"<system> {prompt.system}"] if prompt.system else []), *parts])


@pytest.mark.parametrize("name", benchmarks())
@pytest.mark.usefixtures("lemmatisers")
def test_every_task_asks_word_by_word_as_before(name, fixture_data):
    """Tasks that ask the same are written once."""
    asked: dict[str, list[str]] = {}
    for task in benchmarks()[name].tasks():
        asked.setdefault(shown(task, task.data.load(Settings(data=fixture_data)).rows[0]), []).append(task.name)
    text = "".join(f"===== {' '.join(tasks)}\n{prompt}\n" for prompt, tasks in asked.items())
    path = FIXTURES / f"{name}.txt"
    if os.environ.get("UPDATE_PROMPTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


FILES = {
    "blend": "3267d26edc47",
    "care": "7ad218707577",
    "cedar": "283093f0bec3",
    "crosscult": "f42eb6494077",
    "culturalbench": "e182ae275303",
    "culturalvqa": "dae5abf4108b",
    "cvqa": "b155b6d1f9a8",
    "normad": "66f0508ad2bf",
}


def test_prompt_files_are_pinned():
    """One digest over every prompt file of a benchmark, judges' ones included."""
    found = {}
    for name in benchmarks():
        folder = Path(__file__).parents[2] / "culture_tasks" / "benchmarks" / name / "prompts"
        texts = [f"{path.name}\0{path.read_text('utf-8')}" for path in sorted(folder.glob("*.txt"))]
        if texts:
            found[name] = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
    assert found == FILES


# Beside the papers


def ours(benchmark, name):
    return load(f"culture_tasks.benchmarks.{benchmark}", name).text


@pytest.mark.parametrize(
    ("text", "paper", "place"),
    [
        (ours("care", "roleplay.v1").replace("{people}", "[Chinese/Arab/Japanese]"), "care", "figure_8"),
        (ours("care", "cot.v1"), "care", "figure_9"),
        *((ours("care", RUBRIC_FOR[name].user), "care", "figure_11") for name in ("entities", "opinion")),
        *((ours("care", RUBRIC_FOR[name].user), "care", "figure_12") for name in ("norms", "commonsense")),
        (ours("care", RUBRIC_FOR["literacy"].user), "care", "figure_13"),
        (ours("culturalvqa", "vlm.v1").replace("{question}", ""), "culturalvqa", "appendix_h"),
        (ours("culturalvqa", "fewshot.v1") + "\n{image}\n{question}\n{answer}", "culturalvqa", "appendix_i"),
        (ours("culturalvqa", "lave_system.v1"), "culturalvqa", "appendix_f"),
    ],
)
def test_a_prompt_is_the_paper_s_white_space_aside(text, paper, place):
    assert wording(text) == wording(printed(paper, place).replace("{Question}", "{question}"))


FIGURES = {"multimodal": "figure_9", "text": "figure_10"}


@pytest.mark.parametrize("modality", FIGURES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_cedar_s_prompts_are_the_paper_s_two_arabic_words_aside(modality, language):
    text, figure = prompt_file(language, modality).text, printed("cedar", FIGURES[modality])
    figure = figure.replace(r"\n", "\n").replace("اشمزاز", "اشمئزاز").replace("تسليية", "تسلية")
    assert wording(figure).count(wording(text)) == 1
    places = [text.index(word, text.index("{question}")) for word in OPTION_WORDS[language].values()]
    assert places == sorted(places)


@pytest.mark.parametrize("figure", FIGURES.values())
def test_cedar_s_options_as_printed_map_to_the_english_ones(figure):
    order = ("ar", "zh", "en", "hi", "ja", "es", "sw")  # of the prompts in Figures 9 and 10
    # Below the question stands a line "[options]: anger, disgust, ...", with the commas of the language.
    lines = re.findall(r"\{question\}\\n\n\n\[.+\]: (.+)\n", printed("cedar", figure))
    options = dict(zip(order, (re.split("[,、،] ?", line) for line in lines), strict=True))
    for language, words in options.items():
        for word, english in zip(words, options["en"], strict=True):
            assert translated(word, labels_of(language)) == read_reply(word) == english


def test_crosscult_s_system_prompts_are_those_of_figure_9():
    """The paper's text has the Arabic one in visual order, with the letter yeh in Farsi code points."""
    lines = printed("crosscult", "figure_9").splitlines()
    assert {f"English {PAPER['en'].system_prompt}", f"Chinese {PAPER['zh'].system_prompt}"} <= set(lines)
    visual = next(line for line in lines if line.startswith("Arabic ")).removeprefix("Arabic ")
    logical = unicodedata.normalize("NFC", visual[::-1]).replace("ی", "ي")
    ours = PAPER["ar"].system_prompt.split()
    differing = [pair for pair in zip(ours, logical.split(), strict=True) if len(set(pair)) > 1]
    assert differing in ([], [("الإجابة", "اإلجابة")])  # the ligature lam-alef is turned around as one character


def test_judges_get_the_papers_prompts_and_every_text():
    system, user = (load(CROSSCULT.package, name).text for name in ("crosscult_system.v1", "crosscult_user.v1"))
    assert f"System:\n{system}\n\nUser:\n{user}\n" == printed("crosscult", "figure_10")
    item = JudgeItem("Is it {language}?", ("Yes.", "Sure."), "No {question}.", "Arabic")
    _, asked = CROSSCULT.messages(item, delimiters=False)
    beginning = "Language: Arabic\nQuestion: Is it {language}?\nReference answer: Yes.; Sure.\n"
    assert asked["content"].startswith(f"{beginning}Candidate answer: No {{question}}.\n\n")
    _, asked = LAVE.messages(item, delimiters=False)
    references = "Reference answers: Yes.; Sure.\nCandidate answer: No {question}.\n"
    assert f"Question: Is it {{language}}?\n{references}" in asked["content"]
