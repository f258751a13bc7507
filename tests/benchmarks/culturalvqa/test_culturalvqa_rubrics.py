"""The rubrics of CulturalVQA: the paper's wording."""

from __future__ import annotations

from support.papers import printed, wording

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.prompt_files import load


def test_the_system_prompt_of_lave_is_that_of_appendix_f():
    assert wording(load(LAVE.package, "lave_system.v1").text) == wording(printed("culturalvqa", "appendix_f"))


def test_without_delimiters_lave_gets_the_paper_s_system_prompt_and_all_references():
    system, user = LAVE.messages(JudgeItem("Q?", ("one", "two"), "R."), delimiters=False)
    assert system == {"role": "system", "content": load(LAVE.package, "lave_system.v1").text}
    assert "Question: Q?\nReference answers: one; two\nCandidate answer: R.\n" in user["content"]
