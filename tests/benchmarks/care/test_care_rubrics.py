"""The rubrics of CARE: the wording of the paper's figures."""

from __future__ import annotations

import pytest
from support.papers import printed, wording

from culture_tasks.benchmarks.care.rubrics import ENTITIES_OPINION, LITERACY, NORMS_COMMONSENSE
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.prompt_files import load


@pytest.mark.parametrize(
    ("rubric", "figure"),
    [(ENTITIES_OPINION, "figure_11"), (NORMS_COMMONSENSE, "figure_12"), (LITERACY, "figure_13")],
)
def test_the_rubrics_of_care_are_those_of_its_figures(rubric, figure):
    assert wording(load(rubric.package, rubric.user).text) == wording(printed("care", figure))


def test_without_delimiters_a_judge_of_care_reads_the_figure_filled_in_and_nothing_else():
    text = load(LITERACY.package, "care_literacy.v1").text
    messages = LITERACY.messages(JudgeItem("Q?", ("A.",), "R."), delimiters=False)
    filled = text.replace("{question}", "Q?").replace("{answer}", "A.").replace("{response}", "R.")
    assert messages == [{"role": "user", "content": filled}]
