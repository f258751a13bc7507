from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from culture_tasks.benchmarks.care.rubrics import LITERACY as CARE
from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import SettingsError
from culture_tasks.judges.local.in_process import InProcessJudge
from culture_tasks.judges.local.local_model import LocalModel
from culture_tasks.judges.rubric.parsers import Reading
from culture_tasks.judges.rubric.verdicts import JudgeItem


class Double:
    """Takes the place of one of lm-eval's model classes."""

    made = 0
    calls: list[list[str]]
    max_length = 4000
    template = True
    keeps_system = True
    opening = ""
    reply = staticmethod(lambda prompt: "Rating: [[9]]" if "[[number]]" in prompt else "rating=2")

    def __init__(self, pretrained: str = "", batch_size: int | str = 1, **rest: Any) -> None:
        type(self).made += 1
        self.batch_size = batch_size

    @classmethod
    def create_from_arg_obj(cls, options: dict[str, Any]) -> Double:
        return cls(**options)

    def apply_chat_template(self, messages: list[dict[str, str]]) -> str:
        if not self.template:
            raise ValueError("no template")
        kept = [each for each in messages if self.keeps_system or each["role"] != "system"]
        return "".join(f"<{each['role']}>{each['content']}" for each in kept) + "<assistant>" + self.opening

    def tok_encode(self, text: str) -> list[str]:
        return text.split()

    def set_cache_hook(self, hook: Any) -> None:
        self.cache_hook = hook

    def generate_until(self, requests: list[Any]) -> list[str]:
        prompts = [request.args[0] for request in requests]
        type(self).calls.append(prompts)
        replies = []
        for request in requests:
            replies.append(self.reply(request.args[0]))
            self.cache_hook.add_partial("generate_until", request.args, replies[-1])
        return replies


@pytest.fixture
def double(monkeypatch):
    import lm_eval.models  # noqa: F401
    from lm_eval.api import registry

    class Fresh(Double):
        made = 0

    Fresh.calls = []
    monkeypatch.setattr(registry, "get_model", lambda name: Fresh)
    return Fresh


@pytest.fixture
def local_judge_for(settings_for):
    made = []

    def make(model="hf,pretrained=somewhere", **changes):
        made.append(InProcessJudge(model, settings_for(**changes)))
        return made[-1]

    yield make
    for judge in made:
        judge.close()


def test_everything_is_graded_in_one_call_a_rubric_at_the_first_verdict(double, local_judge_for, items):
    judge = local_judge_for()
    with ThreadPoolExecutor(8) as pool:
        tickets = list(pool.map(lambda item: judge.submit(LAVE, item), [*items(20), *items(20)]))
    other = judge.submit(CARE, items(1)[0])
    assert double.made == 0
    assert tickets[7].verdict().score == 2.0
    assert sorted(len(call) for call in double.calls) == [1, 20]
    assert sorted(ticket.verdict().attempts for ticket in tickets) == [0] * 20 + [1] * 20
    assert other.verdict().score == 9.0
    judge.close()
    assert local_judge_for().submit(LAVE, items(1)[0]).verdict().cached
    assert (double.made, len(double.calls)) == (1, 2)
    assert LocalModel("hf", "pretrained=x")._model.batch_size == 8  # lm-eval's own default is one prompt at a time
    assert LocalModel("vllm", "pretrained=x")._model.batch_size == "auto"
    assert LocalModel("hf", "pretrained=x,batch_size=3")._model.batch_size == 3


def test_unreadable_replies_are_asked_again_together(double, local_judge_for, items):
    double.reply = staticmethod(lambda prompt: "rating=1" if "no rating" in prompt else "hm")
    judge = local_judge_for()
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(5)]]
    assert {(verdict.score, verdict.asked_again) for verdict in verdicts} == {(1.0, True)}
    assert [len(call) for call in double.calls] == [5, 5]


def test_a_model_that_can_not_be_loaded_fails_all_once(double, local_judge_for, items, caplog):
    def refuse(options):
        double.made += 1
        raise OSError("no such\nmodel")

    double.create_from_arg_obj = refuse
    judge = local_judge_for()
    with caplog.at_level(logging.WARNING):
        verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(5)]]
        late = judge.submit(LAVE, items(6)[5]).verdict()
    assert {verdict.outcome for verdict in verdicts} == {"failed"}
    assert "no such model" in verdicts[0].error
    assert "no such" in late.error
    assert double.made == 1


def test_what_arrived_before_a_breakdown_is_kept(double, local_judge_for, items):
    def reply(prompt):
        if "dish 3?" in prompt:
            raise RuntimeError("CUDA out of memory")
        return "rating=2"

    double.reply = staticmethod(reply)
    judge = local_judge_for()
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(5)]]
    assert [verdict.outcome for verdict in verdicts] == ["scored"] * 3 + ["failed"] * 2
    assert "out of memory" in verdicts[4].error


def test_prompts_that_do_not_fit_are_not_cut(double, local_judge_for, item):
    long = JudgeItem("why? " * 5000, ("because",), "so")
    judge = local_judge_for()
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, long), judge.submit(LAVE, item)]]
    assert [verdict.outcome for verdict in verdicts] == ["failed", "scored"]
    assert "longer than the judge's context" in verdicts[0].error


@pytest.mark.parametrize("lacks", ["keeps_system", "template"])
def test_a_template_without_system_messages_still_shows_the_rubric(double, local_judge_for, item, caplog, lacks):
    setattr(double, lacks, False)
    local_judge_for().submit(LAVE, item).verdict()
    assert "cultural anthropologist" in double.calls[0][0]
    assert "<system>" not in double.calls[0][0]
    assert ("no chat template" in caplog.text) == (lacks == "template")


def test_a_reply_as_long_as_the_limit_was_cut_off(double, local_judge_for, item):
    double.reply = staticmethod(lambda prompt: "rating=1" if "no rating" in prompt else "rating=2 " + "and so " * 300)
    verdict = local_judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.asked_again, verdict.max_tokens) == (1.0, True, None)


@pytest.mark.parametrize("opened", ["<think>", ""], ids=["by the reply", "by the template"])
def test_thinking_gets_a_larger_limit_which_is_learnt(double, local_judge_for, items, opened):
    double.max_length = 100_000
    double.opening = "" if opened else "<think>"
    double.asked = []

    def generate(self, requests):
        limits = [request.args[1]["max_gen_toks"] for request in requests]
        double.asked += limits
        return [
            opened + "hm " * 600 + "</think>rating=2" if limit > 600 else opened + "hm " * limit for limit in limits
        ]

    double.generate_until = generate
    judge = local_judge_for()
    tickets = [judge.submit(LAVE, item) for item in items(3)]
    verdicts = [ticket.verdict() for ticket in tickets]
    assert {(each.score, each.asked_again, each.attempts, each.max_tokens) for each in verdicts} == {
        (2.0, False, 2, 2048)
    }
    assert judge.submit(LAVE, items(4)[3]).verdict().attempts == 1
    assert double.asked == [512] * 3 + [2048] * 4
    assert judge.identity(LAVE).sampling["max_tokens"] == 512


def test_thinking_gets_no_limit_that_the_context_has_no_room_for(double, local_judge_for, item):
    double.max_length = 1500
    double.reply = staticmethod(lambda prompt: "<think>" + "hm " * 600)
    verdict = local_judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.attempts) == ("unparsable", 2)
    assert "cut off" in verdict.error


def test_a_local_judge_takes_the_parameters_that_lm_eval_does(double, local_judge_for, item):
    judge = local_judge_for(judge_max_tokens=99, judge_temperature=0.5, judge_extra_body='{"top_p": 0.9}')
    assert dict(judge.identity(LAVE).sampling) == {"temperature": 0.5, "max_tokens": 99, "top_p": 0.9}
    assert dict(judge.identity(CROSSCULT).sampling) == dict(judge.identity(LAVE).sampling)
    with pytest.raises(SettingsError, match="takes no reasoning_effort"):
        local_judge_for(judge_reasoning_effort="low")


def test_a_real_model_of_lm_eval(local_judge_for, tmp_path):
    from tiny_models import make_tiny_lm

    items = [JudgeItem(f"What is dish {number}?", ("b",), "x" * number) for number in range(6)]

    folder = make_tiny_lm(tmp_path / "lm")
    judge = local_judge_for(f"hf,pretrained={folder},device=cpu,batch_size=4")
    judge.check([])
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items]]
    assert {verdict.outcome for verdict in verdicts} <= {"scored", "unparsable"}
    assert all(verdict.completion is not None for verdict in verdicts)
    assert len({verdict.completion for verdict in verdicts}) > 1
    judge.close()
    again = local_judge_for(f"hf,pretrained={folder},device=cpu,batch_size=4")
    lenient = replace(LAVE, reader=lambda reply, scale: Reading(1, reply))  # a toy's reply would be asked again
    kept = [ticket.verdict() for ticket in [again.submit(lenient, item) for item in items]]
    assert all(verdict.cached for verdict in kept)


def model_folder(folder, size=10):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"x" * size)
    return folder


def test_a_folder_is_known_by_its_place_and_its_files(double, local_judge_for, item, tmp_path, monkeypatch):
    def is_cached(place):
        monkeypatch.chdir(tmp_path / place)
        return local_judge_for("hf,pretrained=./model").submit(LAVE, item).verdict().cached

    for name in ("one", "two"):
        folder = model_folder(tmp_path / name / "model")
        os.utime(folder / "config.json", (1, 1))
        os.utime(folder / "model.safetensors", (1, 1))
    assert [is_cached(place) for place in ("one", "two", "one")] == [False, False, True]
    model_folder(tmp_path / "one" / "model", size=11)
    assert not is_cached("one")


def test_where_and_how_fast_a_judge_runs_and_by_which_token_makes_no_other_judge(double, local_judge_for, item):
    one = local_judge_for("hf,pretrained=org/name,device=cuda:1,batch_size=4,dtype=float16,token=hf_one")
    two = local_judge_for("hf,pretrained=org/name,dtype=float16,token=hf_two")
    assert one.identity(LAVE) == two.identity(LAVE)
    assert "hf_one" not in str(one.identity(LAVE))
    assert one.identity(LAVE) != local_judge_for("hf,pretrained=org/name,dtype=float32").identity(LAVE)
    assert [judge.submit(LAVE, item).verdict().cached for judge in (one, two)] == [False, True]


def test_the_address_of_an_api_model_is_no_part_of_its_identity_but_recorded(double, local_judge_for, item):
    arguments = "model=m,base_url=http://user:pass-word@localhost:{port}/v1?sig=s"
    first = local_judge_for("local-chat-completions," + arguments.format(port=8000))
    second = local_judge_for("local-chat-completions," + arguments.format(port=8001))
    assert first.identity(LAVE) == second.identity(LAVE)
    verdicts = [judge.submit(LAVE, item).verdict() for judge in (first, second)]
    assert [verdict.cached for verdict in verdicts] == [False, False]
    assert [verdict.endpoint for verdict in verdicts] == [
        "lm_eval:local-chat-completions at http://localhost:8000/v1",
        "lm_eval:local-chat-completions at http://localhost:8001/v1",
    ]


def test_unparsable_verdicts_of_an_earlier_run_are_asked_again(double, local_judge_for, items):
    double.reply = staticmethod(lambda prompt: "hm" if "dish 1?" in prompt else "rating=2")
    judge = local_judge_for()
    tickets = [judge.submit(LAVE, each) for each in items(3)]
    assert [ticket.verdict().outcome for ticket in tickets] == ["scored", "unparsable", "scored"]
    assert judge.submit(LAVE, items(3)[1]).verdict().outcome == "unparsable"
    judge.close()
    calls = len(double.calls)
    double.reply = staticmethod(lambda prompt: "rating=1")
    judge = local_judge_for()
    tickets = [judge.submit(LAVE, each) for each in items(3)]
    assert [ticket.verdict().score for ticket in tickets] == [2.0, 1.0, 2.0]
    assert [len(call) for call in double.calls[calls:]] == [1]
