"""What a harness's model hands over: responses as files can hold them, failures as such, open thinking marked."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from culture_tasks.text import NO_RESPONSE, REASONING_BEGINS, failure_in, storable

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


def handed_over(response: Any, *, may_be_empty: bool, prompt: Any = "") -> Any:
    """Returns a response as files can hold it, with :data:`~culture_tasks.text.NO_RESPONSE` in place of none.

    Where the prompt ends with a mark that opens thinking, the response continues it, and begins with ``<think>``.
    """
    if isinstance(response, (list, tuple)):
        return [storable(text) if isinstance(text, str) else text for text in response]
    text = "" if response is None else storable(str(response))
    if not text.strip() and not (may_be_empty and response is not None):
        return NO_RESPONSE
    if failure_in(text):
        return text
    end = str(prompt)[-80:].rstrip() if isinstance(prompt, str) else ""
    is_open = any(mark.end() == len(end) for mark in REASONING_BEGINS.finditer(end))
    return f"<think>{text}" if is_open and not text.startswith("<think>") else text
