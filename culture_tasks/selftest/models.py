"""A model as a harness loads it, asked as our tasks ask; of one of transformers, the pixel values that it is given."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any, NamedTuple

from culture_tasks.benchmarks.interface import Harness, Prompt
from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.harness.extending import check_engine

if TYPE_CHECKING:
    from PIL.Image import Image

_log = logging.getLogger(__name__)

_REPLY_TOKENS, _GLANCE_TOKENS = 1024, 32
"""New tokens where the reply is all there is, and the model may think before it; and where pixel values are seen."""


class Answer(NamedTuple):
    """A reply, and the number of pixel values that reached the model; None where that can't be seen."""

    reply: str
    pixels: int | None = None


class HarnessModel:
    """A model of a harness, whose ``generate`` is watched where it is one of transformers in this process."""

    def __init__(self, lm: Any, harness: Harness) -> None:
        self.lm, self.harness = lm, harness
        self._pixels: list[int] = []
        modules = (part for part in vars(lm).values() if hasattr(part, "generate") and hasattr(part, "parameters"))
        self._module = next(modules, None)
        if self._module is not None:
            self._watch(self._module)

    @property
    def takes_images(self) -> bool:
        """Whether the model type takes images at all; lmms-eval's all do."""
        return self.harness == "lmms_eval" or bool(getattr(self.lm, "MULTIMODAL", False))

    @property
    def is_remote(self) -> bool:
        """Whether the model is behind an API."""
        return hasattr(self.lm, "parse_generations")

    def ask(self, prompt: Prompt, images: Sequence[Image] = ()) -> Answer:
        """Has the model reply to a prompt with its images, greedily."""
        self._pixels.clear()
        new_tokens = _REPLY_TOKENS if self._module is None else _GLANCE_TOKENS
        request = _ask_lm_eval if self.harness == "lm_eval" else _ask_lmms_eval
        with redirect_stderr(io.StringIO()):  # a harness has a progress bar for every request
            reply = request(self, prompt, list(images), new_tokens)
        text = str(getattr(reply, "text", reply) or "")
        if self._module is not None and not self._pixels and not text:
            raise CultureTasksError("The backend replied with nothing, as some do after an error. Look at its log.")
        return Answer(text, self._pixels[-1] if self._pixels else None)

    def _watch(self, module: Any) -> None:
        original = module.generate

        def generate(*args: Any, **options: Any) -> Any:
            result = original(*args, **options)
            images = [value for name, value in options.items() if name.startswith("pixel_values")]
            self._pixels.append(sum(value.numel() for value in images if value is not None))
            return result

        module.generate = generate


def _ask_lm_eval(model: HarnessModel, prompt: Prompt, images: list[Image], new_tokens: int) -> Any:
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalChatCompletion

    from culture_tasks.harness.prompts import images_first, render_prompt

    text = render_prompt(prompt)
    message = {"role": "user", "content": images_first(text) if model.is_remote else text}
    holders = [getattr(model.lm, name, None) for name in ("tokenizer", "processor", "_tokenizer")]
    has_template = not model.is_remote and any(getattr(holder, "chat_template", None) for holder in holders)
    has_roles = has_template or isinstance(model.lm, LocalChatCompletion)
    context = model.lm.apply_chat_template([message]) if has_roles else message["content"]
    generation = {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": new_tokens}
    arguments: tuple[Any, ...] = (context, generation, {"visual": images}) if images else (context, generation)
    return model.lm.generate_until([Instance("generate_until", {}, arguments, 0, metadata=("selftest", 0, 1))])[0]


def _ask_lmms_eval(model: HarnessModel, prompt: Prompt, images: list[Image], new_tokens: int) -> Any:
    from lmms_eval.api.instance import Instance

    from culture_tasks.harness.prompts import conversation, images_first, render_prompt

    generation = {"until": [], "do_sample": False, "temperature": 0.0, "max_new_tokens": new_tokens}
    document = (0, "selftest", "test")
    model.lm.task_dict = {"selftest": {"test": [{}]}}
    arguments: tuple[Any, ...]
    text = images_first(render_prompt(prompt))
    if model.lm.is_simple:
        arguments = (text, generation, lambda _: images, *document)
    else:
        arguments = (text, lambda _: conversation(prompt, images), generation, *document)
    metadata = {"task": "selftest", "doc_id": 0, "repeats": 1}
    return model.lm.generate_until([Instance("generate_until", arguments, 0, metadata)])[0]


def load_model(name: str, arguments: str, harness: Harness | None = None) -> HarnessModel:
    """Loads a model type with its ``--model_args``, by default of lm-eval where it has the type, else of lmms-eval.

    Raises:
        SettingsError: If no harness has the type.
    """
    check_engine(name)
    if name == "steered":
        _log.warning("--model steered unpickles the file steer_path, which can run any code.")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # its processes log to standard output
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
            return HarnessModel(cls.create_from_arg_string(arguments, options), "lm_eval")
    if harness in ("lmms_eval", None):
        from lmms_eval.models import MODEL_REGISTRY_V2, get_model

        model_types += MODEL_REGISTRY_V2.list_model_names()
        if name in model_types:
            return HarnessModel(get_model(name).create_from_arg_string(arguments, options), "lmms_eval")
    raise SettingsError(
        f"selftest: {harness or 'neither harness'} has the model type {name!r}.{nearest(name, model_types)} "
        "Name one of theirs."
    )
