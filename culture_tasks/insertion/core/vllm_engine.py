"""Answers of vLLM in place of transformers', for methods that leave the model's weights alone.

vLLM is given the tokens of a request as transformers has them before images take their places, so that no chat template
is rendered a second time. It decodes by the checkpoint's generation settings that transformers follows: the tokens that
end an answer, a penalty of repetitions, and what bounds a sampled token.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from culture_tasks.errors import CultureTasksError, MissingExtraError, SettingsError, nearest
from culture_tasks.insertion.core.adapter import ModelAnswer, ModelOptions, MultimodalModel
from culture_tasks.insertion.core.encoding import ends_of_generation
from culture_tasks.insertion.core.identity import value_key
from culture_tasks.insertion.core.queries import AnswerDecoding, Query, images_of

_CHUNK = 256  # requests whose answers are stored together
_MEMORY = 0.8  # share of a GPU; the rest is for a method's other models
_FROM_THE_MODEL = ("model", "tokenizer", "revision", "dtype", "trust_remote_code", "mm_processor_kwargs")
_TOP_K = 50  # transformers' value where a checkpoint has none


class VllmEngine:
    """vLLM, which starts when it is first given requests; before that the model gives its memory back."""

    def __init__(self, model: MultimodalModel, options: ModelOptions, arguments: Mapping[str, Any]) -> None:
        self._model = model
        self._arguments = {
            "model": model.identity.source,
            "revision": options.revision,
            "dtype": str(model.model.dtype).removeprefix("torch."),
            "trust_remote_code": options.trust_remote_code,
            "mm_processor_kwargs": options.images or None,
            "gpu_memory_utilization": _MEMORY,
            "seed": torch.initial_seed() % 2**32,
            **{name: _read(value) for name, value in arguments.items()},
        }
        self._llm: Any = None

    @property
    def identity(self) -> str:
        """Hash of all that can change an answer, the request and its decoding aside."""
        arguments = {name: value for name, value in self._arguments.items() if name not in ("model", "seed")}
        described = ["vllm", importlib.metadata.version("vllm"), self._model.identity.run, arguments]
        return value_key(described)

    def answers(self, queries: Sequence[Query], decoding: AnswerDecoding) -> Iterator[tuple[int, ModelAnswer]]:
        """Yields the place of a request, with its answer, some hundred at a time."""
        sampling = self._sampling(decoding)
        if self._llm is None:
            self._llm = self._start()
        for start in range(0, len(queries), _CHUNK):
            places = range(start, min(start + _CHUNK, len(queries)))
            prompts = [self._prompt(queries[place]) for place in places]
            try:
                outputs = self._llm.generate(prompts, sampling, use_tqdm=False)
            except Exception as error:  # its classes differ by version; a request that is too long is one of them
                raise CultureTasksError(
                    f"insertion: vLLM can't answer ({_reason(error)}). Its log may say more. If a request is too "
                    "long, raise max_model_len."
                ) from error
            for place, output in zip(places, outputs, strict=True):
                yield place, self._answer(output, decoding)

    def close(self) -> None:
        """Ends vLLM, which gives its memory back."""
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
            self._llm = None

    def _start(self) -> Any:
        import vllm

        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")  # the fork of a process with threads may hang
        self._model.release()
        try:
            return vllm.LLM(**self._arguments)
        except Exception as error:
            raise SettingsError(
                f"insertion: vLLM can't be started ({_reason(error)}). Its log may say more. Correct the arguments "
                "that it was given: all that knowledge_insertion itself doesn't have."
            ) from error

    def _prompt(self, query: Query) -> dict[str, Any]:
        messages = query.messages()
        tokens, images = self._model.encoding.prompt_tokens(messages), images_of(messages)
        return {"prompt_token_ids": tokens, **({"multi_modal_data": {"image": images}} if images else {})}

    def _sampling(self, decoding: AnswerDecoding) -> Any:
        from vllm import SamplingParams

        if decoding.num_beams > 1:
            raise SettingsError(
                f"insertion: num_beams={decoding.num_beams}, and backend=vllm has no beams. Leave the backend out, or "
                "decode with num_beams=1."
            )
        checkpoint = self._model.model.generation_config
        bounds: dict[str, Any] = {}
        if decoding.samples:
            values = {"top_p": decoding.top_p or checkpoint.top_p, "top_k": checkpoint.top_k, "min_p": checkpoint.min_p}
            bounds = {"top_k": _TOP_K} | {name: value for name, value in values.items() if value is not None}
        return SamplingParams(
            max_tokens=decoding.max_new_tokens,
            temperature=decoding.temperature,
            repetition_penalty=checkpoint.repetition_penalty or 1.0,
            stop_token_ids=list(ends_of_generation(self._model.model)),
            ignore_eos=True,  # these alone end an answer, as on transformers
            **bounds,
        )

    def _answer(self, output: Any, decoding: AnswerDecoding) -> ModelAnswer:
        tokens, prompt = list(output.outputs[0].token_ids), len(output.prompt_token_ids)
        if output.outputs[0].finish_reason == "length" and len(tokens) < decoding.max_new_tokens:
            raise SettingsError(
                f"insertion: vLLM cut an answer after {len(tokens)} of {decoding.max_new_tokens} tokens, since its "
                f"request has {prompt}. Raise max_model_len."
            )
        # vLLM's own text lacks the begun character with which an answer may end.
        text = self._model.processor.tokenizer.decode(tokens, skip_special_tokens=True)
        return ModelAnswer(text.strip(), prompt, len(tokens))


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Makes sure that vLLM is installed and has arguments of these names."""
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtraError("backend=vllm", "vllm", "vllm")
    from vllm import EngineArgs

    names = sorted({field.name for field in dataclasses.fields(EngineArgs)}.difference(_FROM_THE_MODEL))
    for name in arguments:
        if name not in names:
            raise SettingsError(
                f"insertion: unknown argument {name!r} of backend=vllm.{nearest(name, names)} Expected an argument of "
                f"vllm.LLM. {', '.join(_FROM_THE_MODEL)} are set from those of the model."
            )


def _read(value: Any) -> Any:
    """Returns an argument as vLLM takes it: the command line gives a mapping as its JSON."""
    is_mapping = isinstance(value, str) and value.startswith("{")
    try:
        return json.loads(value) if is_mapping else value
    except json.JSONDecodeError as error:
        raise SettingsError(f"insertion: {value!r:.80} isn't JSON ({error}). Correct the argument of vLLM.") from None


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]:.300}" if lines else type(error).__name__
