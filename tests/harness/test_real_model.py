"""A small real model in both harnesses: its chat template reaches it once, and its replies come back as it wrote them.

Its template begins with the token that its tokenizer has for the beginning of a text, so that one more would show.
"""

from __future__ import annotations

import json
from functools import cache

import pytest
import torch
from support.fault_server import FaultServer, completion, raw
from support.in_process import run_lm_eval, run_lmms_eval
from transformers import AutoModelForCausalLM, AutoTokenizer

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.harness.loading import load_for_evaluation

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TASKS = ("normad_country", "culturalbench_hard")
DOCS = 2
"""Of each task."""
CUT = 16
"""Tokens of a reply, fewer than the second to ``culturalbench_hard`` has."""


class Model:
    """The model on transformers, greedy in float32, by its own template."""

    def __init__(self, folder):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.lm = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.reply = cache(self._reply)

    def _reply(self, question, limit):
        inputs = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
        with torch.inference_mode():
            [ids] = self.lm.generate(**inputs, do_sample=False, max_new_tokens=limit)
        return self.tokenizer.decode(ids[inputs["input_ids"].shape[1] :], skip_special_tokens=True)

    def expected(self, limit=512):
        """Its replies to each task, up to the task's limit of tokens or to this one."""
        limits = {task: min(limit, task_named(task).decoding.max_tokens) for task in TASKS}
        return {task: [self.reply(text, limits[task]) for text in questions(task)] for task in TASKS}


def questions(task):
    """What the first documents ask, one text each."""
    return [task_named(task).prompt(load_for_evaluation(task)[number]).parts[0] for number in range(DOCS)]


def text_of(request):
    """The one message of a request, which is the user's."""
    [message] = request.body["messages"]
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def logged(results):
    return {
        task: [row["resps"][0][0] for row in sorted(samples, key=lambda row: row["doc_id"])]
        for task, samples in results["samples"].items()
    }


@pytest.fixture(scope="module")
def model(real_model):
    return Model(real_model)


def test_replies_in_lm_eval_are_the_model_s_own_and_cut_where_they_should_be(model):
    from lm_eval.models.huggingface import HFLM

    prompts = []

    class Noting(HFLM):
        def _model_generate(self, context, *args, **options):
            prompts.extend(context.tolist())
            return super()._model_generate(context, *args, **options)

    hf = Noting(pretrained=model.lm, tokenizer=model.tokenizer, batch_size=1)
    options = {"limit": DOCS, "apply_chat_template": True, "gen_kwargs": f"max_gen_toks={CUT}"}
    assert logged(run_lm_eval(hf, list(TASKS), **options)) == model.expected(CUT)
    ended, cut = model.expected(), model.expected(CUT)
    assert ended["normad_country"] == cut["normad_country"]
    assert ended["culturalbench_hard"][1].startswith(cut["culturalbench_hard"][1])
    assert len(model.tokenizer.encode(cut["culturalbench_hard"][1])) == CUT
    bos = model.tokenizer.bos_token
    chats = list(map(model.tokenizer.decode, prompts))
    assert [chat.count(bos) for chat in chats] == [3] * 4  # the template's system message, ours, a reply
    assert all(chat.startswith(f"{bos}system\n") and chat.endswith(f"{bos}assistant\n") for chat in chats)


def run_chat_completions(server):
    from lm_eval.models.openai_completions import LocalChatCompletion

    lm = LocalChatCompletion(base_url=f"{server.url}/chat/completions", model="m")
    return run_lm_eval(lm, list(TASKS), limit=DOCS, apply_chat_template=True)


def run_openai(server):
    from lmms_eval.models.chat.openai import OpenAICompatible

    # lmms-eval waits ten seconds for a reply unless told otherwise, and this one is written on a CPU
    lmms = OpenAICompatible(model_version="m", base_url=server.url, api_key="none", timeout=200, num_concurrent=1)
    return run_lmms_eval(lmms, list(TASKS), limit=DOCS)


@pytest.mark.parametrize("run", [run_chat_completions, run_openai])
def test_a_served_model_is_given_the_question_alone_and_its_reply_comes_back(model, run):
    def serve(request):
        reply = model.reply(text_of(request), request.body["max_tokens"])
        for stop in request.body.get("stop") or ():
            reply = reply.split(stop)[0]
        return raw(json.dumps(completion(reply)))

    server = FaultServer()
    server.decide = serve
    assert logged(run(server)) == model.expected()
    asked = {(text_of(request), request.body["max_tokens"]) for request in server.requests}
    server.close()
    assert asked == {(text, task_named(task).decoding.max_tokens) for task in TASKS for text in questions(task)}
