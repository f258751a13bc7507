"""Replies that the endpoint holds to a form (``CULTURE_JUDGE_FORM``), the reasons before the rating."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest
from support.fault_server import fails, says

from culture_tasks.benchmarks.care.rubrics import LITERACY as CARE
from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.errors import SettingsError
from culture_tasks.judges.local.in_process import InProcessJudge

RUBRICS = [rubric for benchmark in benchmarks().values() for rubric in benchmark.rubrics()]
WHY = "It is right, though some would give 1 of 10."
TEXTS = {
    "care": f"{WHY}\nRating: [[%d]]",
    "lave": f"{WHY}\nrating=%d",
    "crosscult": f'{{"reason": "{WHY}", "score": %d}}',
}


@pytest.mark.parametrize("rubric", RUBRICS, ids=lambda rubric: rubric.name)
def test_a_reply_in_the_form_is_read_without_doubt(rubric):
    schema = rubric.form("json_schema")["response_format"]["json_schema"]["schema"]
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
    [
        ("json_schema", "response_format", '{"explanation": "Right.", "rating": 2}'),
        ("regex", "structured_outputs", "Right.\nrating=2"),
    ],
)
def test_the_form_is_sent_and_names_the_judge(server, judge_for, item, form, name, reply):
    server.script(says("hm"), says(reply))
    judge, free = judge_for(judge_form=form), judge_for()
    verdict = judge.submit(LAVE, item).verdict()
    assert (verdict.score, verdict.asked_again) == (2.0, True)
    expected = LAVE.form(form)[name]
    assert [seen.body.get(name) for seen in server.requests] == [
        expected
    ] * 2  # the reminder's reply is held to it, too
    assert judge.identity(LAVE).json["sampling"] == {**LAVE.sampling, name: expected}
    assert not free.submit(LAVE, item).verdict().cached  # verdicts with and without the form don't mix
    assert name not in server.requests[-1].body
    assert judge_for(judge_form=form).submit(LAVE, item).verdict().cached


def test_a_schema_asks_for_the_reasons_first(server, judge_for, item):
    server.script(says('{"reason": "Right.", "score": 7}'))
    assert judge_for(judge_form="json_schema").submit(CROSSCULT, item).verdict().score == 7.0
    assert list(server.requests[0].body["response_format"]["json_schema"]["schema"]["properties"]) == [
        "reason",
        "score",
    ]


def test_a_pattern_takes_the_place_of_the_rubric_s_own_schema(server, judge_for, item):
    server.script(says('{"reason": "Right.", "score": 7}'))
    assert judge_for(judge_form="regex").submit(CROSSCULT, item).verdict().score == 7.0
    assert "response_format" not in server.requests[0].body


@pytest.mark.parametrize(("form", "name"), [("json_schema", "response_format"), ("regex", "structured_outputs")])
def test_an_endpoint_without_forms_is_asked_for_free_text(server, judge_for, item, caplog, form, name):
    server.decide = lambda seen: fails(400, message=f"unknown field {name}") if name in seen.body else says()
    judge = judge_for(judge_form=form)
    assert judge.submit(LAVE, item).verdict().score == 2.0
    assert f"takes no {name}" in caplog.text
    assert judge.identity(LAVE).sampling == LAVE.sampling


def test_what_can_not_hold_a_form_says_so_before_the_run(settings_for):
    with pytest.raises(SettingsError, match=r"lm-eval's hf can't hold replies to a form.*lm_eval:vllm"):
        InProcessJudge("hf,pretrained=somewhere", settings_for(judge_form="regex"))


SCHEMA = CARE.form("json_schema")["response_format"]["json_schema"]["schema"]
PATTERN = CARE.form("regex")["structured_outputs"]["regex"]


@pytest.mark.parametrize(
    ("form", "expected", "reply"),
    [
        ("json_schema", {"json": SCHEMA}, '{"explanation": "Right.", "rating": 9}'),
        ("regex", {"regex": PATTERN}, "Right.\nRating: [[9]]"),
    ],
)
def test_vllm_in_this_process_gets_the_form_as_its_own_parameters(
    settings_for, item, monkeypatch, form, expected, reply
):
    @dataclass
    class StructuredOutputsParams:
        json: object = None
        regex: str | None = None

    class Engine:
        max_length = 4000

        @classmethod
        def create_from_arg_obj(cls, options):
            return cls()

        def apply_chat_template(self, messages):
            return "".join(message["content"] for message in messages)

        def tok_encode(self, text):
            return text.split()

        def set_cache_hook(self, hook):
            pass

        def generate_until(self, requests):
            sent.extend(request.args[1]["structured_outputs"] for request in requests)
            return [reply] * len(requests)

    from lm_eval.api import registry

    sent = []
    module = ModuleType("vllm.sampling_params")
    module.StructuredOutputsParams = StructuredOutputsParams
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", module)
    monkeypatch.setattr(registry, "get_model", lambda name: Engine)
    judge = InProcessJudge("vllm,pretrained=somewhere", settings_for(judge_form=form))
    assert judge.submit(CARE, item).verdict().score == 9.0
    judge.close()
    assert sent == [StructuredOutputsParams(**expected)]
    assert judge.identity(CARE).sampling == CARE.sampling | {
        name: value for name, value in CARE.form(form).items() if value is not None
    }
