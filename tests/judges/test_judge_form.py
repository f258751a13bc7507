"""Replies that the endpoint holds to a form (``CULTURE_JUDGE_FORM``), the reasons before the rating."""

from __future__ import annotations

import json
import re

import pytest
from support.fault_server import says
from support.judging import ask

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.registry import rubrics

WHY = "It is right, though some would give 1 of 10."
TEXTS = {
    "care": f"{WHY}\nRating: [[%d]]",
    "lave": f"{WHY}\nrating=%d",
    "crosscult": f'{{"reason": "{WHY}", "score": %d}}',
}
SCHEMA, REGEX = ("json_schema", "response_format"), ("regex", "structured_outputs")


def schema_of(form):
    return form["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_a_reply_in_the_form_is_read_without_doubt(rubric):
    schema = schema_of(rubric.form("json_schema"))
    reasons, rating = schema["required"]
    assert sorted(schema["properties"]) == [reasons, rating]  # a request's keys are sorted, and the reply follows them
    assert schema["properties"][rating]["enum"] == list(range(rubric.lowest, rubric.highest + 1))
    pattern = rubric.form("regex")["structured_outputs"]["regex"]
    [text] = [text for name, text in TEXTS.items() if rubric.name.startswith(name)]
    for number in range(rubric.lowest, rubric.highest + 1):
        assert rubric.read(json.dumps({reasons: WHY, rating: number})).rating == number
        assert re.fullmatch(pattern, text % number)
        assert rubric.read(text % number).rating == number
    assert not re.fullmatch(pattern, text % (rubric.highest + 1))
    assert rubric.form("free") == {}


@pytest.mark.parametrize(
    ("form", "name", "reply"),
    [(*SCHEMA, '{"explanation": "Right.", "rating": 2}'), (*REGEX, "Right.\nrating=2")],
)
def test_the_form_is_sent_and_names_the_judge(server, judge_for, item, form, name, reply):
    server.script(says("hm"), says(reply))
    judge = judge_for(judge_form=form)
    verdict = ask(judge, item)
    assert (verdict.score, verdict.asked_again) == (2.0, True)
    expected = LAVE.form(form)[name]
    # The reply to the reminder is held to it, too.
    assert [seen.body.get(name) for seen in server.requests] == [expected] * 2
    assert judge.identity(LAVE).json["sampling"] == {**LAVE.sampling, name: expected}
    assert not ask(judge_for(), item).cached  # verdicts with and without the form don't mix
    assert name not in server.requests[-1].body
    assert ask(judge_for(judge_form=form), item).cached
