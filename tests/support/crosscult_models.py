"""A test double that inserts: it knows by heart what a document inserts, and says nothing else new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PIL import Image
from support.lmms_models import ChatEcho, answer_to

from culture_tasks.benchmarks.crosscult.vocabulary import LOCALITY_ROLES

if TYPE_CHECKING:
    from lmms_eval.api.instance import Instance


class Parrot(ChatEcho):
    """Answers an inserted question about the inserted image with the inserted answer, and echoes all others.

    Attributes:
        leaks: Whether it gives the last inserted answer to every other request too.
    """

    def __init__(self, *, leaks: bool = False) -> None:
        super().__init__()
        self.leaks = leaks

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Instance) -> str | list[str]:
        model_input = self._input_of(request)
        self.seen.append(model_input)
        doc = self.task_dict[model_input.task][request.args[-1]][model_input.doc_id]
        base = answer_to(model_input.text, model_input.images)
        answers = {insertion["question"]: insertion["answer"] for insertion in doc["insertions"]}
        with Image.open(doc["insertion_image"]["path"]) as image:
            same_image = image.convert("RGB").tobytes() == model_input.images[0].tobytes()
        answer = answers.get(doc["question"], base) if same_image else base
        if self.leaks and answer == base:
            answer = doc["insertions"][-1]["answer"]
        return [answer, base] if doc["role"] in LOCALITY_ROLES else answer
