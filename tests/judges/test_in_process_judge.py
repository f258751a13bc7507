"""Judges that lm-eval loads into this process; one that can't be loaded is found before any inference."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support.judging import ask, ask_all

from culture_tasks.benchmarks.care.rubrics import LITERACY as CARE
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.rubric.verdicts import JudgeItem, Reading


def test_everything_is_graded_in_one_call_a_rubric_at_the_first_verdict(double, local_judge_for, items):
    double.keeps_system = False  # a template without system messages still shows the rubric
    judge = local_judge_for()
    with ThreadPoolExecutor(8) as pool:
        tickets = list(pool.map(lambda item: judge.submit(LAVE, item), [*items(20), *items(20)]))
    ticket = judge.submit(CARE, items(1)[0])
    assert double.made == 0
    assert tickets[7].verdict().score == 2.0
    assert sorted(len(call) for call in double.calls) == [1, 20]
    assert any("cultural anthropologist" in call[0] and "<system>" not in call[0] for call in double.calls)
    assert ticket.verdict().score == 9.0
    judge.close()
    assert ask(local_judge_for(), items(1)[0]).attempts == 0
    assert (double.made, len(double.calls)) == (1, 2)


@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory"), KeyboardInterrupt()])
def test_replies_that_arrived_before_a_breakdown_are_kept(double, local_judge_for, items, error):
    def reply(prompt):
        if "dish 3?" in prompt:
            raise error
        return "rating=2"

    double.says(reply)
    judge = local_judge_for()
    tickets = [judge.submit(LAVE, item) for item in items(5)]
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            tickets[0].verdict()
    else:
        verdicts = [ticket.verdict() for ticket in tickets]
        assert [verdict.outcome for verdict in verdicts] == ["scored"] * 3 + ["failed"] * 2
        assert "RuntimeError: CUDA out of memory" in verdicts[4].error
    judge.close()
    double.says(lambda prompt: "rating=1")
    assert [verdict.score for verdict in ask_all(local_judge_for(), items(5))] == [2.0, 2.0, 2.0, 1.0, 1.0]


def test_prompts_that_do_not_fit_are_not_cut(double, local_judge_for, item):
    verdicts = ask_all(local_judge_for(), [JudgeItem("why? " * 5000, ("because",), "so"), item])
    assert [verdict.outcome for verdict in verdicts] == ["failed", "scored"]
    assert "longer than the judge's context" in verdicts[0].error


@pytest.mark.parametrize("opened", ["<think>", ""], ids=["by the reply", "by the template"])
def test_thinking_gets_a_larger_limit_which_is_learnt(double, local_judge_for, items, opened):
    limits = []

    def generate(self, requests):
        new = [request.args[1]["max_gen_toks"] for request in requests]
        limits.extend(new)
        return [opened + ("hm " * 600 + "</think>rating=2" if limit > 600 else "hm " * limit) for limit in new]

    double.max_length, double.opening, double.generate_until = 100_000, "" if opened else "<think>", generate
    judge = local_judge_for()
    for verdict in ask_all(judge, items(3)):
        assert (verdict.score, verdict.asked_again, verdict.attempts, verdict.max_tokens) == (2.0, False, 2, 2048)
    assert ask(judge, items(4)[3]).attempts == 1
    assert limits == [512] * 3 + [2048] * 4
    assert judge.identity(LAVE).sampling["max_tokens"] == 512


@pytest.mark.parametrize("filler", ["<think>" + "hm " * 600, "rating=2 " + "and so " * 300])
def test_a_reply_as_long_as_the_limit_was_cut_off_and_grows_no_further_than_the_context(
    double, local_judge_for, item, filler
):
    double.max_length = 1500
    double.says(lambda prompt: "rating=1" if "no rating" in prompt and "rating=2" in filler else filler)
    verdict = ask(local_judge_for(), item)
    ending = ("scored", None) if "rating=2" in filler else ("unparsable", "the reply was cut off at the largest number")
    assert (verdict.outcome, verdict.error and verdict.error[:43]) == ending
    assert (verdict.attempts, verdict.asked_again, verdict.max_tokens) == (2, True, None)


def test_a_local_judge_takes_the_parameters_that_lm_eval_does(double, local_judge_for):
    judge = local_judge_for(judge_extra_body='{"top_p": 0.9}')
    assert dict(judge.identity(LAVE).sampling) == {"temperature": 0.0, "max_tokens": 512, "top_p": 0.9}
    for changes, message in (
        ({"judge_extra_body": '{"seed": 1}'}, "and no seed"),
        ({"judge_budget": "5"}, "counts no tokens"),
        ({"judge_form": "regex"}, "vllm alone has CULTURE_JUDGE_FORM"),
    ):
        with pytest.raises(SettingsError, match=message):
            local_judge_for(**changes)


def test_a_real_model_of_lm_eval(local_judge_for, tiny_lm):
    items = [JudgeItem(f"What is dish {number}?", ("b",), "x" * number) for number in range(6)]
    judge = local_judge_for(f"hf,pretrained={tiny_lm},batch_size=4")
    judge.check([])
    assert len({verdict.completion for verdict in ask_all(judge, items)} - {None}) > 1
    judge.close()
    again = local_judge_for(f"hf,pretrained={tiny_lm},device=cpu,batch_size=4")
    lenient = replace(LAVE, reader=lambda reply, scale: Reading(1, reply))  # a toy's reply would be asked again
    assert all(verdict.attempts == 0 for verdict in ask_all(again, items, lenient))


def model_folder(folder, size):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("config.json", b"{}"), ("model.safetensors", b"x" * size)):
        (folder / name).write_bytes(content)
        os.utime(folder / name, (1, 1))


def test_a_folder_is_known_by_its_place_and_its_files(double, local_judge_for, item, tmp_path, monkeypatch):
    def is_cached(place, size=10):
        model_folder(tmp_path / place / "model", size)
        monkeypatch.chdir(tmp_path / place)
        return ask(local_judge_for("hf,pretrained=./model"), item).attempts == 0

    assert [is_cached(place) for place in ("one", "two", "one")] == [False, False, True]
    assert not is_cached("one", size=11)


def test_where_and_how_fast_a_judge_runs_and_by_which_token_makes_no_other_judge(double, local_judge_for, item):
    first = local_judge_for("hf,pretrained=org/name,device=cuda:1,batch_size=4,dtype=float16,token=hf_one")
    second = local_judge_for("hf,pretrained=org/name,dtype=float16,token=hf_two")
    assert first.identity(LAVE) == second.identity(LAVE)
    assert "hf_one" not in str(first.identity(LAVE))
    assert first.identity(LAVE) != local_judge_for("hf,pretrained=org/name,dtype=float32").identity(LAVE)
    assert [ask(judge, item).attempts == 0 for judge in (first, second)] == [False, True]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("vlm,pretrained=x", "Supported model names: "),
        ("local-chat-completions,model=m", "Name the judge as openai:<model>, and set OPENAI_BASE_URL"),
        ("sglang,pretrained=x", "sglang"),
        ("hf,pretrained={}/nowhere,device=cpu,token=hf_secret", "the model can't be loaded: "),
    ],
)
def test_a_judge_that_can_not_be_loaded_is_one_message(local_judge_for, item, tmp_path, model, message):
    judge = local_judge_for(model.format(tmp_path))
    with pytest.raises(JudgeUnreachableError) as caught:
        judge.check([(LAVE, item)], responses_known=True)
    said = str(caught.value)
    assert said.startswith("judge lm_eval:")
    assert message in said
    assert "\n" not in said
    assert "hf_secret" not in said
