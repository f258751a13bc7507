"""What a model is asked by CARE: the question alone, Figure 8 or Figure 9."""

from __future__ import annotations

import pytest
from support.papers import printed, wording

from culture_tasks.benchmarks.care.benchmark import PEOPLE, render
from culture_tasks.benchmarks.care.rubrics import RUBRIC_FOR
from culture_tasks.prompt_files import load


def doc(question="Q?", language="ar"):
    return {"question": question, "language": language}


def prompt_text(prompt, doc):
    """The one text of a prompt."""
    (text,) = render(f"{prompt}.v1", doc, people=PEOPLE[doc["language"]]).parts
    return text


def test_the_plain_prompt_is_the_question_alone():
    assert prompt_text("plain", doc(" ما اسمه؟\n")) == " ما اسمه؟\n"


@pytest.mark.parametrize("language", PEOPLE)
@pytest.mark.parametrize(("prompt", "figure"), [("roleplay", "figure_8"), ("cot", "figure_9")])
def test_the_other_prompts_are_those_of_their_figures(prompt, figure, language):
    text = printed("care", figure).replace("[Chinese/Arab/Japanese]", PEOPLE[language]).replace("{Question}", "Q?")
    assert wording(prompt_text(prompt, doc(language=language))) == wording(text)


def test_a_published_prompt_never_changes():
    """A changed prompt makes another task: it needs a new file and version."""
    starts = {"plain.v1": "bf085a6e12c9d0e2", "roleplay.v1": "b1bca13975d3549d", "cot.v1": "aba845350bfc7344"}
    assert {name: load("culture_tasks.benchmarks.care", name).sha256[:16] for name in starts} == starts


# The rubrics


def test_the_rubrics_follow_the_figures_of_the_paper():
    figures = {"entities": 11, "opinion": 11, "norms": 12, "commonsense": 12, "literacy": 13}
    for category, figure in figures.items():
        rubric = RUBRIC_FOR[category]
        assert wording(load(rubric.package, rubric.user).text) == wording(printed("care", f"figure_{figure}"))
        assert rubric.source.endswith(f"Figure {figure}")
