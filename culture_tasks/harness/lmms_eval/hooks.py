"""The hooks that lmms-eval's task files name (see :mod:`culture_tasks.harness.hooks`).

lmms-eval can only load by ``datasets.load_dataset``, and repeats whatever fails there five times. Its task files
therefore name a placeholder of one row, and ``process_docs`` puts the real documents in its place; the plug-in has
loaded and checked them by then, outside of the repetition.

A prompt reaches chat models as messages. The simple model types put all images before one text: a prompt with several
images numbers them there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from culture_tasks.benchmarks.interface import Picture, Prompt
from culture_tasks.harness.hooks import Hook, hook_named, images_of
from culture_tasks.harness.lmms_eval.images import refuse_unseen, watched
from culture_tasks.harness.lmms_eval.plugin import one_message
from culture_tasks.harness.loading import loaded
from culture_tasks.harness.scoring import scorer_of

if TYPE_CHECKING:
    import datasets
    from PIL.Image import Image

Message = dict[str, Any]


class ReplacedPlaceholder(Hook):
    """Puts a task's documents in the place of the placeholder."""

    __slots__ = ()

    def __call__(self, placeholder: datasets.Dataset) -> datasets.Dataset:  # noqa: ARG002
        """Returns the documents."""
        with one_message():
            return loaded(self.task.name)


class Text(Hook):
    """The text of a task's prompts, for simple model types."""

    __slots__ = ()

    def __call__(self, doc: Mapping[str, Any]) -> str:
        """Returns the prompt as one text."""
        return rendered(self.task.prompt(doc))


def rendered(prompt: Prompt) -> str:
    """Returns a prompt as one text for models that put all images before it: the system message first."""
    numbered = sum(isinstance(part, Picture) for part in prompt.parts) > 1
    lines = [prompt.system] if prompt.system else []
    number = 0
    for part in prompt.parts:
        if isinstance(part, str):
            lines.append(part)
        elif numbered:
            number += 1
            lines.append(f"Image {number}:")
    return "\n".join(lines)


class Visuals(Hook):
    """The images of a task's prompts, for simple model types."""

    __slots__ = ()

    def __call__(self, doc: Mapping[str, Any]) -> list[Image]:
        """Returns the images that a document's prompt shows, in order."""
        if not self.task.shows_images:
            return []
        return watched(doc, images_of(self.task, doc, self.task.prompt(doc)))


class Messages(Hook):
    """The messages of a task's prompts, for chat model types."""

    __slots__ = ()

    def __call__(self, doc: Mapping[str, Any]) -> list[Message]:
        """Returns the prompt as messages: the system message, if it has one, then texts and images in order."""
        prompt = self.task.prompt(doc)
        images = iter(watched(doc, images_of(self.task, doc, prompt)) if self.task.shows_images else ())
        content = [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "url": next(images)}
            for part in prompt.parts
        ]
        user = {"role": "user", "content": content}
        if not prompt.system:
            return [user]
        return Conversation([{"role": "system", "content": [{"type": "text", "text": prompt.system}]}, user])


class Conversation(list[Message]):
    """Messages whose system message stays the only one.

    lmms-eval's Qwen backends put their own system message before whatever a task asks, and Qwen's chat template
    refuses a second one. The paper's stays, the backend's is left out.
    """

    def insert(self, index: SupportsIndex, message: Message) -> None:
        """Inserts a message, unless it would be a second system message."""
        if message.get("role") != "system" or all(each["role"] != "system" for each in self):
            super().insert(index, message)


class SeenResults(Hook):
    """The records of a task's documents, if the model looked at their images."""

    __slots__ = ()

    def __call__(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Returns a document's records.

        Raises:
            ImagesNotShownError: If its images were handed out and not all looked at.
        """
        if self.task.shows_images:
            refuse_unseen(doc)
        return scorer_of(self.task.name)(doc, results)


def __getattr__(name: str) -> Any:
    kinds = {
        "documents": ReplacedPlaceholder,
        "text": Text,
        "visuals": Visuals,
        "messages": Messages,
        "results": SeenResults,
    }
    return hook_named(name, __name__, kinds)
