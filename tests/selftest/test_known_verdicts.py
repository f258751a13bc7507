"""How ``culture-tasks selftest`` finds a judge that grades well, badly, or not readably."""

from __future__ import annotations

import json
from contextlib import closing
from importlib import resources

import pytest
from support.fault_server import FaultServer, fails, says
from support.judging import KEY

from culture_tasks.errors import JudgeError
from culture_tasks.selftest.known_verdicts import grade_known_answers
from culture_tasks.settings import Settings

ANSWERS = json.loads(resources.files("culture_tasks.selftest").joinpath("known_answers.json").read_text("utf-8"))


def rating(high, prompt):
    """Returns a reply that the prompt's rubric reads: CARE's, LAVE's, or CrossCult's form."""
    if "Rating: [[number]]" in prompt:
        return f"Rating: [[{10 if high else 1}]]"
    if "rating=X" in prompt:
        return f"rating={(3 if 'rating=3' in prompt or '1-3' in prompt or '3 ' in prompt else 2) if high else 1}"
    return json.dumps({"score": 10 if high else 0, "reason": "…"})


def graded(decide):
    with closing(FaultServer()) as server:
        server.decide = decide
        return grade_known_answers(Settings(judge="openai:toy", openai_api_key=KEY, openai_base_url=server.url))


def is_right(request):
    return any(answer["right"] in request.text for answer in ANSWERS)


@pytest.mark.parametrize(
    ("reply", "state", "agreed"),
    [
        (lambda request: rating(is_right(request), request.text), "ok", 20),
        (lambda request: rating(not is_right(request), request.text), "fix", 0),
    ],
)
def test_a_judge(reply, state, agreed):
    found = graded(lambda request: says(reply(request)))
    assert (found.state, found.facts["agreed"]) == (state, agreed)
    assert len(found.facts["verdicts"]) == 20


def test_a_judge_that_fails_gives_no_zero_and_no_key():
    first = []

    def decide(request):
        first.append(request)
        return says(rating(True, request.text)) if len(first) == 1 else fails(400, message=f"bad key {KEY}")

    found = graded(decide)
    assert found.facts["outcomes"] == {"failed": 20}
    assert "0 of 20 verdicts as expected, 20 unread or failed, such as" in found.found
    assert KEY not in repr(found)


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [(fails(401, message=f"bad key {KEY}"), "401"), (says("I'd rather not say."), "no rating that can be read")],
)
def test_a_judge_that_cannot_grade_at_all_is_an_error_at_once(behaviour, message):
    with pytest.raises(JudgeError, match=message) as raised:
        graded(lambda _: behaviour)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("judge", ["none", "lexical", None])
def test_without_a_judge_there_is_a_note(judge):
    assert grade_known_answers(Settings(judge=judge)).state == "note"
