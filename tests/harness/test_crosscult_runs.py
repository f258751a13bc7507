"""CrossCult in real runs of both harnesses."""

import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.in_process import run_lm_eval, run_lmms_eval

GROUPS = ["crosscult_single", "crosscult_sequential", "crosscult_retention", "crosscult_diagnostic"]
TESTS = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def toys(monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))


def value(results, task, metric):
    return results["results"][task][f"{metric},none"]


def samples(results, task):
    return [sample["judge_score_lexical"] for sample in results["samples"][task]]


@pytest.mark.parametrize("kind", ["ChatEcho", "SimpleEcho"])
def test_an_ordinary_model_gives_the_base_row(kind):
    import support.lmms_models

    model = getattr(support.lmms_models, kind)()
    results = run_lmms_eval(model, GROUPS, bootstrap_iters=0)
    for task in ("crosscult_single_cross_language_locality", "crosscult_sequential_locality"):
        assert value(results, task, "rouge_l") == 100.0
        assert value(results, task, "judge_score_lexical") == 10.0
    roles = ["reliability", "generality", "cross_language_locality", "cross_scenario_locality"]
    mean = sum(value(results, f"crosscult_single_{role}", "rouge_l") for role in roles) / 4
    assert math.isclose(value(results, "crosscult_single", "rouge_l"), mean)
    assert value(results, "crosscult_single", "judge_score_coverage") == 1.0
    finals = [value(results, f"crosscult_sequential_{role}", "rouge_l") for role in (*roles[:2], "locality")]
    assert math.isclose(value(results, "crosscult_sequential", "rouge_l"), sum(finals) / 3)
    assert len(samples(results, "crosscult_single_reliability")) == 12
    assert len(samples(results, "crosscult_diagnostic")) == 54
    assert all(shown.generation["max_new_tokens"] == 64 for shown in model.seen)
    assert all(len(shown.images) == 1 for shown in model.seen)


def test_the_system_prompt_is_the_request_s_language():
    from support.lmms_models import ChatEcho, SimpleEcho

    chat, simple = ChatEcho(), SimpleEcho()
    for model in (chat, simple):
        run_lmms_eval(model, ["crosscult_single_cross_language_locality"], bootstrap_iters=0)
    system = {shown.messages[0]["content"][0]["text"] for shown in chat.seen}
    assert system == {
        "Please answer briefly in one sentence.",
        "请用一句话简单回答。",
        "يرجى الإجابة بإيجاز في جملة واحدة.",
    }
    assert all([message["role"] for message in shown.messages] == ["system", "user"] for shown in chat.seen)
    assert [shown.text for shown in simple.seen] == [shown.text for shown in chat.seen]


def test_a_backend_s_own_system_message_does_not_make_two():
    from support.lmms_models import ChatEcho

    model = ChatEcho()
    run_lmms_eval(model, ["crosscult_single_reliability"], bootstrap_iters=0)
    document = model.task_dict["crosscult_single_reliability"]["test"][0]
    from culture_tasks.harness.lmms_eval import hooks

    conversation = hooks.crosscult_single_reliability__messages(document)
    conversation.insert(0, {"role": "system", "content": []})
    assert [message["role"] for message in conversation] == ["system", "user"]


def test_a_model_that_inserts_returns_both_answers_for_locality():
    from support.crosscult_models import Parrot

    results = run_lmms_eval(Parrot(), GROUPS[:3], bootstrap_iters=0)
    assert value(results, "crosscult_single_reliability", "rouge_l") == 100.0
    assert value(results, "crosscult_single_cross_language_locality", "rouge_l") == 100.0
    assert value(results, "crosscult_sequential_reliability", "rouge_l") == 100.0
    assert value(results, "crosscult_retention", "judge_score_lexical") == 10.0
    logged = results["samples"]["crosscult_single_cross_language_locality"][0]
    assert logged["filtered_resps"] == [[*logged["resps"][0][0], "{}"]]


def test_what_leaks_into_locality_is_seen():
    from support.crosscult_models import Parrot

    results = run_lmms_eval(Parrot(leaks=True), GROUPS[:2], bootstrap_iters=0)
    for task in ("crosscult_single_cross_language_locality", "crosscult_sequential_locality"):
        assert value(results, task, "rouge_l") < 30.0
    record = samples(results, "crosscult_single_cross_scenario_locality")[0]
    assert record["runs"][0]["response"] != record["references"][0]


def _said(logged):
    records = [sample["judge_score_lexical"] for sample in logged]
    return {record["item"]: record["runs"][0]["response"] for record in records}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_ranks_say_the_same_as_one(tmp_path):
    from support.lmms_models import ChatEcho

    environment = os.environ | {"PYTHONPATH": str(TESTS), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    options = ["--model", "echo_chat", "--tasks", ",".join(GROUPS[:2]), "--log_samples", "--output_path", tmp_path]
    command = [*torchrun, "-m", "support.run_lmms_eval", *options]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    lines = [path.read_text(encoding="utf-8").splitlines() for path in tmp_path.rglob("*_samples_*.jsonl")]
    two = _said(json.loads(line) for line in itertools.chain(*lines))
    one = _said(itertools.chain(*run_lmms_eval(ChatEcho(), GROUPS[:2])["samples"].values()))
    assert len(one) == 4 * 12 + 9 * 6
    assert one == two


def test_lm_eval_runs_the_diagnostic(tiny_vlm):
    arguments = {"pretrained": str(tiny_vlm), "device": "cpu", "dtype": "float32"}
    results = run_lm_eval("hf-multimodal", ["crosscult_diagnostic"], model_args=arguments, limit=4, bootstrap_iters=0)
    scores = results["results"]["crosscult_diagnostic"]
    assert scores["judge_score_coverage,none"] == 1.0
    assert 0.0 <= scores["rouge_l,none"] <= 100.0
    assert "rouge_l_ethical,none" not in scores  # none of the four cases is ethical
    records = [sample["judge_score_lexical"] for sample in results["samples"]["crosscult_diagnostic"]]
    assert [record["groups"]["language"] for record in records] == ["en", "zh", "ar", "en"]
