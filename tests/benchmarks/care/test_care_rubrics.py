"""The rubrics of CARE: the wording of the paper's figures."""

from __future__ import annotations

import pytest
from support.papers import between, wording

from culture_tasks.benchmarks.care.rubrics import ENTITIES_OPINION, LITERACY, NORMS_COMMONSENSE
from culture_tasks.judges.verdicts import JudgeItem
from culture_tasks.prompt_files import load


@pytest.mark.parametrize(
    ("rubric", "heading", "figure"),
    [
        (ENTITIES_OPINION, "## Cultural entities and opinion evaluation", "Figure 11: LM-as-a-judge"),
        (NORMS_COMMONSENSE, "## Social norms and commonsense evaluation", "Figure 12: LM-as-a-judge"),
        (LITERACY, "## Literacy evaluation", "Figure 13: LM-as-a-judge"),
    ],
)
def test_the_rubrics_of_care_are_those_of_its_figures(papers, rubric, heading, figure):
    paper = (papers / "care.txt").read_text(encoding="utf-8")
    assert wording(load(rubric.package, rubric.user).text) == wording(between(paper, heading, figure))


def test_without_delimiters_a_judge_of_care_reads_the_figure_filled_in_and_nothing_else():
    text = load(LITERACY.package, "care_literacy.v1").text
    messages = LITERACY.messages(JudgeItem("Q?", ("A.",), "R."), delimiters=False)
    filled = text.replace("{question}", "Q?").replace("{answer}", "A.").replace("{response}", "R.")
    assert messages == [{"role": "user", "content": filled}]
