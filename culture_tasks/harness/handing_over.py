"""What a harness's model hands over: responses as files can hold them, failures as such, thinking in known marks."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from culture_tasks.text import NO_RESPONSE, REASONING_BEGINS, failure_in, storable, without_reasoning

_IN_PROCESS = re.compile(
    r"lm_eval\.models\.(?:_?onnx|dummy|hf_|huggingface|mamba_lm|megatron_lm|mistral3|nemo_lm|neuron|optimum_"
    r"|sglang_causallms|trtllm|vllm_|winml)|lmms_eval\.models\.(?:chat|simple)\.vllm(?:_generate)?$"
)
"""The modules of models that run in the harness's process and let an error end the run."""
_ENDPOINTS = re.compile(
    r"lmms_eval\.models\.(?:chat|simple)\.(?:async_openai|batch_gpt4|claude|gemini|generation_api|gpt4o_audio|gpt4v"
    r"|litellm|openai|qwen_vl_api|reka|srt_api)$"
)
"""The modules of lmms-eval's models that ask an endpoint."""


def may_say_nothing(model: Any, *, tokens: int | None = None) -> bool:
    """Whether an empty response of a model is its answer, and no failure that its class hid.

    A model in lm-eval's process, and vLLM, fail loudly. lmms-eval's others catch errors, and then count no ``tokens``.
    An endpoint's reply without a text was refused, or cut off while the model was thinking.
    """
    model_class: Any = type(model)
    fails_loudly, is_endpoint = _traits(model_class)
    return fails_loudly or (bool(tokens) and not is_endpoint)


@cache
def _traits(model_class: type) -> tuple[bool, bool]:
    """Whether models of a class fail loudly, and whether they ask an endpoint."""
    modules = [cls.__module__ for cls in model_class.__mro__]
    is_ours = any(module.startswith("culture_tasks.") for module in modules)
    return is_ours or any(map(_IN_PROCESS.match, modules)), any(map(_ENDPOINTS.match, modules))


class Thinking(NamedTuple):
    """The marks that a chat template puts around thinking, where they aren't known from elsewhere."""

    begin: str
    end: str


_THOUGHT, _ANSWER = "7391", "2846"
# The last mark of a text, with a word behind it: "<|channel>thought".
_LAST_MARK = re.compile(r"[<\[◁【][^<>\[\]◁▷【】\s]{1,60}[>\]▷】]\w{0,20}\s*$")


def thinking_of(model: Any) -> Thinking | None:
    """Returns the marks of thinking that a model's chat template writes; None without one, and where they are known.

    The template is asked: it renders an answer with thinking.
    """
    for content in (lambda text: text, lambda text: [{"type": "text", "text": text}]):
        question = {"role": "user", "content": content("?")}
        thoughts = dict.fromkeys(("reasoning_content", "reasoning", "thinking"), _THOUGHT)
        answer = {"role": "assistant", "content": content(_ANSWER), **thoughts}
        try:
            render = (getattr(model, "tokenizer", None) or model.processor.tokenizer).apply_chat_template
            before, after = render([question, answer], tokenize=False).split(_THOUGHT, maxsplit=1)
            between, _ = after.split(_ANSWER, maxsplit=1)
            header = render([question], tokenize=False, add_generation_prompt=True)
        except Exception:  # noqa: BLE001, S112 - a template is a program that anybody wrote
            continue
        pairs = enumerate(zip(before, header, strict=False))
        shared = next((place for place, (one, other) in pairs if one != other), min(len(before), len(header)))
        begin = _LAST_MARK.search(before[shared:])
        marks = Thinking(begin.group().strip() if begin else "", between.strip())
        is_known = without_reasoning(f"{marks.begin}{_THOUGHT}{marks.end}{_ANSWER}").strip() == _ANSWER
        return marks if _LAST_MARK.search(marks.end) and not is_known else None
    return None


def handed_over(response: Any, *, may_be_empty: bool, thinking: Thinking | None = None, prompt: Any = "") -> Any:
    """Returns a response as files can hold it, with :data:`~culture_tasks.text.NO_RESPONSE` in place of none.

    Marks of thinking that a chat template defines become ``<think>``, and so does one at the end of the prompt, which
    the response continues.
    """
    if isinstance(response, (list, tuple)):
        return [storable(text) if isinstance(text, str) else text for text in response]
    text = "" if response is None else storable(str(response))
    if not text.strip() and not (may_be_empty and response is not None):
        return NO_RESPONSE
    if failure_in(text):
        return text
    end = str(prompt)[-80:].rstrip() if isinstance(prompt, str) else ""
    if thinking is not None:
        if thinking.begin:
            text, end = text.replace(thinking.begin, "<think>"), end.replace(thinking.begin, "<think>")
        text = text.replace(thinking.end, "</think>")
    is_open = any(mark.end() == len(end) for mark in REASONING_BEGINS.finditer(end))
    return f"<think>{text}" if is_open and not text.startswith("<think>") else text
