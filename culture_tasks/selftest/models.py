"""A model as a harness loads it, asked by prompts as our tasks ask, and the requests that reach its ``generate``.

Of a model of transformers or vLLM in this process, the number of tokens that it was given is known; of an API model,
the number that its server counted.
"""

from __future__ import annotations

import io
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from culture_tasks.benchmarks.interface import Harness, Prompt
from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.harness.extending import check_engine

if TYPE_CHECKING:
    from PIL.Image import Image

_log = logging.getLogger(__name__)

ENDPOINT = "endpoint"
"""The name here of lm-eval's model type for an OpenAI-compatible endpoint of chat completions."""

_CHAT_ENDPOINT, _PATH = "local-chat-completions", "/chat/completions"
_MAX_IMAGES = 4
_REPLY_TOKENS, _GLANCE_TOKENS = 1024, 32
"""New tokens where the reply is all there is, and the model may think before it; and where the prompt can be seen."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A reply, and what is known of the request that reached the model; None where that can't be seen.

    Attributes:
        reply: The reply, as the harness returns it.
        prompt_tokens: Number of tokens of the prompt.
        pixels: Number of pixel values.
    """

    reply: str
    prompt_tokens: int | None = None
    pixels: int | None = None


class HarnessModel(ABC):
    """A model of a harness."""

    harness: ClassVar[Harness]

    def __init__(self, lm: Any) -> None:
        self.lm = lm
        self._arrivals: list[Arrival] = []
        self._has_engine = False
        if self.is_remote:
            self._extend(lm, "parse_generations", self._api_arrival)
            return
        for part in {id(part): part for part in vars(lm).values()}.values():
            for name in ("generate", "chat"):
                if callable(getattr(part, name, None)):
                    self._has_engine = True
                    self._extend(part, name, self._engine_arrival)

    def ask(self, prompt: Prompt, images: Sequence[Image] = ()) -> Arrival:
        """Has the model reply to a prompt with its images, greedily."""
        new_tokens = _REPLY_TOKENS if self.is_remote else _GLANCE_TOKENS
        self._arrivals.clear()
        generation = {"until": [], "do_sample": False, "temperature": 0.0}
        with redirect_stderr(io.StringIO()):  # a harness has a progress bar for every request
            reply = self._reply(prompt, list(images), generation, new_tokens)
        text = str(getattr(reply, "text", reply) or "")
        if self._has_engine and not self._arrivals and not text:
            raise CultureTasksError("The backend replied with nothing, as some do after an error. Look at its log.")
        arrival = self._arrivals[-1] if self._arrivals else Arrival("")
        return replace(arrival, reply=text)

    @property
    def takes_images(self) -> bool:
        """Whether the model type takes images at all; lmms-eval's all do."""
        return self.harness == "lmms_eval" or bool(getattr(self.lm, "MULTIMODAL", False))

    @property
    def is_remote(self) -> bool:
        """Whether the model is behind an API."""
        return hasattr(self.lm, "parse_generations")

    @abstractmethod
    def _reply(self, prompt: Prompt, images: list[Image], generation: dict[str, Any], new_tokens: int) -> Any:
        """Has the harness's model reply."""

    def _extend(self, owner: Any, name: str, arrival_of: Callable[[dict[str, Any], Any], Arrival | None]) -> None:
        """Has a function that generates tell what it was given, and what it gave."""
        original = getattr(owner, name)

        def wrapper(*args: Any, **options: Any) -> Any:
            result = original(*args, **options)
            arrival = arrival_of({"input_ids": args[0], **options} if args else options, result)
            self._arrivals += [] if arrival is None else [arrival]
            return result

        setattr(owner, name, wrapper)

    def _engine_arrival(self, options: dict[str, Any], result: Any) -> Arrival | None:
        import torch

        if isinstance(result, list) and result and hasattr(result[0], "prompt_token_ids"):  # vLLM
            return Arrival("", len(result[0].prompt_token_ids))
        tokens = options.get("input_ids", options.get("inputs"))
        if not isinstance(tokens, torch.Tensor) or not isinstance(result, torch.Tensor):
            return None
        images = [value for name, value in options.items() if name.startswith("pixel_values")]
        pixels = sum(value.numel() for value in images if isinstance(value, torch.Tensor))
        return Arrival("", tokens.shape[-1], pixels)

    @staticmethod
    def _api_arrival(options: dict[str, Any], _: Any) -> Arrival:
        outputs = options.get("outputs")
        output = outputs[0] if isinstance(outputs, list) and outputs else outputs
        usage = (output.get("usage") if isinstance(output, dict) else None) or {}
        return Arrival("", usage.get("prompt_tokens"))


class _LmEvalModel(HarnessModel):
    harness: ClassVar[Harness] = "lm_eval"

    def _reply(self, prompt: Prompt, images: list[Image], generation: dict[str, Any], new_tokens: int) -> Any:
        from lm_eval.api.instance import Instance
        from lm_eval.models.openai_completions import LocalChatCompletion

        from culture_tasks.harness.prompts import images_first, render_prompt

        text = render_prompt(prompt)
        message = {"role": "user", "content": images_first(text) if self.is_remote else text}
        holders = [getattr(self.lm, name, None) for name in ("tokenizer", "processor", "_tokenizer")]
        has_template = not self.is_remote and any(getattr(holder, "chat_template", None) for holder in holders)
        has_roles = has_template or isinstance(self.lm, LocalChatCompletion)
        context = self.lm.apply_chat_template([message]) if has_roles else message["content"]
        generation |= {"max_gen_toks": new_tokens}
        arguments: tuple[Any, ...] = (context, generation, {"visual": images}) if images else (context, generation)
        return self.lm.generate_until([Instance("generate_until", {}, arguments, 0, metadata=("selftest", 0, 1))])[0]


class _LmmsEvalModel(HarnessModel):
    harness: ClassVar[Harness] = "lmms_eval"

    def _reply(self, prompt: Prompt, images: list[Image], generation: dict[str, Any], new_tokens: int) -> Any:
        from lmms_eval.api.instance import Instance

        from culture_tasks.harness.prompts import conversation, images_first, render_prompt

        generation |= {"max_new_tokens": new_tokens}
        place = (0, "selftest", "test")
        self.lm.task_dict = {"selftest": {"test": [{}]}}
        arguments: tuple[Any, ...]
        text = images_first(render_prompt(prompt))
        if self.lm.is_simple:
            arguments = (text, generation, lambda _: images, *place)
        else:
            arguments = (text, lambda _: conversation(prompt, images), generation, *place)
        metadata = {"task": "selftest", "doc_id": 0, "repeats": 1}
        return self.lm.generate_until([Instance("generate_until", arguments, 0, metadata)])[0]


def load_model(name: str, arguments: str, harness: Harness | None = None) -> HarnessModel:
    """Loads a model as a harness would.

    Args:
        name: A model type of a harness, or :data:`ENDPOINT`.
        arguments: What the harness takes as ``--model_args``.
        harness: The harness; None takes lm-eval where it has the type, else lmms-eval.

    Raises:
        SettingsError: If no harness has the type, or an endpoint has no address.
    """
    check_engine(name)
    if name == "steered":
        _log.warning("--model steered unpickles the file steer_path, which can run any code.")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # its processes log to standard output
    if name == ENDPOINT:
        name, arguments = _CHAT_ENDPOINT, _endpoint_arguments(arguments)
    options: dict[str, Any] = {} if "batch_size=" in arguments else {"batch_size": 1}
    model_types: list[str] = []
    if harness in ("lm_eval", None):
        import lm_eval.models  # noqa: F401 - fills the registry
        from lm_eval.api import registry

        from culture_tasks.judges.local.in_process import device_argument

        model_types += registry.model_registry.keys()
        if name in model_types:
            cls = registry.get_model(name)
            options |= {} if "device=" in arguments else device_argument(cls)
            return _LmEvalModel(cls.create_from_arg_string(arguments, options))
    if harness in ("lmms_eval", None):
        from lmms_eval.models import MODEL_REGISTRY_V2, get_model

        model_types += MODEL_REGISTRY_V2.list_model_names()
        if name in model_types:
            return _LmmsEvalModel(get_model(name).create_from_arg_string(arguments, options))
    raise SettingsError(
        f"selftest: {harness or 'neither harness'} has the model type {name!r}.{nearest(name, model_types)} "
        f"Name one of theirs, or {ENDPOINT}."
    )


def _endpoint_arguments(arguments: str) -> str:
    """Returns the arguments of lm-eval's chat completions: with the whole address, and more than one image."""
    parts = [part.strip() for part in arguments.split(",") if part.strip()]
    options = dict(part.partition("=")[::2] for part in parts)
    if not options.get("base_url") or not options.get("model"):
        names = ", ".join(options) or "nothing"
        raise SettingsError(
            f"selftest: --model {ENDPOINT} with {names} in --model_args. Expected model=NAME and base_url=ADDRESS, "
            "such as model=Qwen/Qwen3-8B,base_url=http://localhost:8000/v1."
        )
    address = options["base_url"].rstrip("/")
    options |= {"base_url": address if address.endswith(_PATH) else f"{address}{_PATH}"}
    return ",".join(f"{name}={value}" for name, value in {"max_images": _MAX_IMAGES, **options}.items())
