"""Tasks that compare log-likelihoods of the allowed replies, in real runs of lm-eval."""

from __future__ import annotations

import math

import pytest
from support.in_process import run_lm_eval, variant
from support.scripted_lm import ScriptedLM

from culture_tasks.benchmarks.registry import entries

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TASKS = ["culturalbench_easy_ll", "culturalbench_hard_ll", "normad_rule_ll", "blend_mcq_ll"]
ENDS = {"culturalbench": "\nAnswer:", "normad": "\nAnswer (options Yes, No or Neither):", "blend": "\n\nAnswer:"}
FORMS = {"culturalbench_easy_ll": 4, "culturalbench_hard_ll": 2, "normad_rule_ll": 3}


@pytest.fixture(scope="module")
def model(tiny_lm):
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=str(tiny_lm), device="cpu", batch_size=4)


@pytest.fixture(scope="module")
def results(model, fixture_data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        return run_lm_eval(model, TASKS, bootstrap_iters=0)


def test_the_likeliest_reply_to_the_other_task_s_prompt_and_a_cue_is_scored_as_if_the_model_had_written_it(results):
    assert results["samples"].keys() == {*FORMS, "blend_mcq_ll"}
    chosen = set()
    for name, samples in results["samples"].items():
        task, cue = entries()[name.removesuffix("_ll")], ENDS[name.partition("_")[0]]
        for sample in samples:
            likelihoods = [likelihood for likelihood, _ in sample["filtered_resps"]]
            replies = [continuation for _, continuation in sample["arguments"]]
            assert len(replies) == FORMS.get(name, 4)
            assert all(reply == f" {reply.strip()}" for reply in replies)
            reply = replies[likelihoods.index(max(likelihoods))].strip()
            [record] = (value for value in sample.values() if isinstance(value, dict) and "record" in value)
            assert [run["response"] for run in record["runs"]] == [reply]
            assert record["outcomes"] == {"scored": 1}
            assert record["score"] == task.score(sample["doc"], [reply]).score
            chosen.add(reply)
            (prompt,) = {context for context, _ in sample["arguments"]}
            (written,) = task.prompt(sample["doc"]).parts
            assert prompt.endswith(cue)
            assert prompt.startswith(written.rstrip())
            assert prompt.removeprefix(written.rstrip()) in ("", cue)
    assert {"A", "B"} < chosen


def test_a_chat_template_ends_the_prompt_and_the_reply_begins_without_a_blank(model):
    results = run_lm_eval(model, ["culturalbench_easy_ll"], limit=1, apply_chat_template=True, bootstrap_iters=0)
    (sample,) = results["samples"]["culturalbench_easy_ll"]
    assert [reply for _, reply in sample["arguments"]] == ["A", "B", "C", "D"]
    assert all(prompt.endswith("\nAnswer:<|im_end|>\n<|im_start|>assistant\n") for prompt, _ in sample["arguments"])


class Undecided(ScriptedLM):
    """Finds all replies alike, or has no number for one."""

    def __init__(self, *likelihoods):
        super().__init__(lambda prompt, _: prompt)
        self.likelihoods = likelihoods

    def loglikelihood(self, requests, disable_tqdm=False):
        return [(self.likelihoods[place % len(self.likelihoods)], False) for place in range(len(requests))]


def test_a_model_without_a_likeliest_reply_has_chosen_nothing():
    for likelihoods in ((-1.0,), (-math.inf,), (-1.0, math.nan)):
        row = run_lm_eval(Undecided(*likelihoods), ["culturalbench_easy_ll"])["results"]["culturalbench_easy_ll"]
        assert (row["acc,none"], row["unparsed,none"]) == (0.0, 1.0)


def test_examples_have_their_answers_behind_the_cue(tmp_path):
    lm = Undecided(-1.0, -2.0, -2.0, -2.0)
    tasks = variant(tmp_path, "lm_eval", "normad_rule_ll", num_fewshot=2)
    results = run_lm_eval(lm, tasks, include=tmp_path, limit=1, bootstrap_iters=0)
    prompt = results["samples"]["variant"][0]["arguments"][0][0]
    assert prompt.count(f"{ENDS['normad']} ") == 2
    assert prompt.endswith(ENDS["normad"])
