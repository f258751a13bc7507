"""Counting tokens by a rule, beside an encoding."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.costs.token_counts import tokens_by_rule
from culture_tasks.judges.rubric.verdicts import JudgeItem

# Counted with o200k_base, the encoding of gpt-4o and of the models after it.
MEASURED = {
    "ما هي العادات المتبعة عند تقديم القهوة للضيوف في المناسبات العائلية؟": 22,
    "晚辈给长辈敬酒时，一般怎样拿酒杯？请说明这样做的原因和含义。": 27,
    "How do people usually greet older relatives at a family dinner, and why?": 15,
}
OF_RUBRICS = {"care_literacy": 479, "crosscult": 451, "lave": 262}


def test_the_rule_counts_by_script_and_is_near_an_encoding_in_any_script_and_of_a_judge_s_prompt():
    exact = {"": 0, "four": 1, "敬酒时杯子": 4, "كأس كأس": 3}  # 5 / 1.25, and 6 / 3 + 1 / 4, up
    assert {text: tokens_by_rule(text) for text in exact} == exact
    for text, tokens in MEASURED.items():
        assert tokens_by_rule(text) == pytest.approx(tokens, rel=0.21), text
    for name, tokens in OF_RUBRICS.items():
        messages = rubric_named(name).messages(JudgeItem("What?", ("tea",), "coffee"))
        text = "\n".join(message["content"] for message in messages)
        assert tokens_by_rule(text) == pytest.approx(tokens, rel=0.16), name
