"""Test doubles for lmms-eval: a simple and a chat model that answer at once, without weights.

They need no checkpoint and run on any number of ranks. In process, give an instance to
``simple_evaluate(model=SimpleEcho())`` and read from ``seen`` what it was shown. From the command line, by name::

    PYTHONPATH=tests python -m support.run_lmms_eval --model echo_simple --tasks …
    PYTHONPATH=tests ACCELERATE_USE_CPU=true torchrun --standalone --nproc_per_node 2 -m support.run_lmms_eval …
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from lmms_eval.api.model import lmms
from lmms_eval.protocol import ChatMessages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lmms_eval.api.instance import Instance
    from PIL import Image


@dataclass(frozen=True)
class ModelInput:
    """The input of a model for one request."""

    task: str
    doc: Mapping[str, Any]
    text: str
    images: tuple[Image.Image, ...]
    messages: tuple[dict[str, Any], ...]
    generation: dict[str, Any]


def answer_to(text: str, images: Sequence[Image.Image]) -> str:
    """Repeats the end of the prompt, with a checksum that tells whether any text or pixel was another."""
    checksum = hashlib.sha256(text.encode())
    for image in images:
        checksum.update(repr(image.size).encode() + image.convert("RGB").tobytes())
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    return f"{lines[-1].strip()[-60:]} #{checksum.hexdigest()[:6]}"


class _Echo(lmms):
    def __init__(self, **unused: Any) -> None:
        super().__init__()
        self.seen: list[ModelInput] = []
        self.device = torch.device("cpu")  # the harness gathers counts of ranks on it

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        inputs = [self._input_of(request) for request in requests]
        self.seen += inputs
        return [self.answer(model_input) for model_input in inputs]

    def answer(self, model_input: ModelInput) -> Any:
        """Returns the answer to a request, or a list of answers."""
        return answer_to(model_input.text, model_input.images)

    def look(self, images: Sequence[Image.Image]) -> None:
        """Reads the images' pixels, as a model does."""
        for image in images:
            image.load()

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Instance]) -> list[str]:
        raise NotImplementedError

    def _input_of(self, request: Instance) -> ModelInput:
        raise NotImplementedError


class SimpleEcho(_Echo):
    """A model of the simple type: one text, and images beside it."""

    is_simple: ClassVar[bool] = True

    def _input_of(self, request: Instance) -> ModelInput:
        text, generation, doc_to_visual, doc_id, task, split = request.args
        doc = self.task_dict[task][split][doc_id]
        images = tuple(doc_to_visual(doc) or ())
        self.look(images)
        return ModelInput(task, doc, text, images, (), generation)


class ChatEcho(_Echo):
    """A model of the chat type: messages whose parts are texts and images."""

    is_simple: ClassVar[bool] = False

    def _input_of(self, request: Instance) -> ModelInput:
        _, doc_to_messages, generation, doc_id, task, split = request.args
        doc = self.task_dict[task][split][doc_id]
        messages = doc_to_messages(doc)
        images, _, _ = ChatMessages(messages=messages).extract_media()
        self.look(images)
        parts = [part for message in messages for part in message["content"]]
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        return ModelInput(task, doc, text, tuple(images), tuple(messages), generation)


class EmotionalChat(ChatEcho):
    """Feels the same about everything that CEDAR asks, and echoes all else."""

    def answer(self, model_input: ModelInput) -> Any:
        return "**Happiness**" if model_input.task.startswith("cedar") else super().answer(model_input)


def register() -> None:
    """Makes the doubles known to this process as ``echo_simple``, ``echo_chat`` and ``emotional_chat``."""
    from lmms_eval.models import MODEL_REGISTRY_V2, ModelManifest

    here = "support.lmms_models"
    manifests = (
        ModelManifest(model_id="echo_simple", simple_class_path=f"{here}.SimpleEcho"),
        ModelManifest(model_id="echo_chat", chat_class_path=f"{here}.ChatEcho"),
        ModelManifest(model_id="emotional_chat", chat_class_path=f"{here}.EmotionalChat"),
    )
    for manifest in manifests:
        MODEL_REGISTRY_V2.register_manifest(manifest, overwrite=True)
