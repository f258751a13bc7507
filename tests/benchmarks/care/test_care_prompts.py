"""What a model is asked by CARE: the question alone, Figure 8 or Figure 9."""

from __future__ import annotations

import pytest
from support.papers import printed, wording

from culture_tasks.benchmarks.care.benchmark import asked
from culture_tasks.benchmarks.care.documents import LANGUAGES, PEOPLE, CareDoc
from culture_tasks.prompt_files import load


def doc(question="Q?", language="ar"):
    return CareDoc(
        id="x",
        language=language,
        prompt_language=language,
        question=question,
        answer="a",
        category="norms",
        culture="c",
        scope="nationwide",
        data="",
    )


def render(prompt, doc):
    """The one text of a prompt."""
    (text,) = asked(prompt, doc).parts
    return text


def test_the_plain_prompt_is_the_question_alone():
    assert render("plain", doc(" ما اسمه؟\n")) == " ما اسمه؟\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_role_play_prompt_is_that_of_figure_8(language):
    figure = printed("care", "figure_8").replace("[Chinese/Arab/Japanese]", PEOPLE[language])
    assert wording(render("roleplay", doc(language=language))) == wording(figure.replace("{Question}", "Q?"))


def test_the_chain_of_thought_prompt_is_that_of_figure_9():
    assert wording(render("cot", doc())) == wording(printed("care", "figure_9").replace("{Question}", "Q?"))


@pytest.mark.parametrize("prompt", ["plain", "roleplay", "cot"])
def test_braces_in_a_question_stay_as_they_are(prompt):
    question = "{people} {question} {0} {{x}} \\1 {"
    assert render(prompt, doc(question)).count(question) == 1


# A changed prompt makes another task: it needs a new file and version.
@pytest.mark.parametrize(
    ("name", "start"),
    [("plain.v1", "bf085a6e12c9d0e2"), ("roleplay.v1", "b1bca13975d3549d"), ("cot.v1", "aba845350bfc7344")],
)
def test_a_published_prompt_never_changes(name, start):
    assert load("culture_tasks.benchmarks.care", name).sha256.startswith(start)
