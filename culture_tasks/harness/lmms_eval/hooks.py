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

from culture_tasks.benchmarks.interface import Picture, Prompt, Task
from culture_tasks.harness.hooks import hook_named, images_of
from culture_tasks.harness.lmms_eval.images import refuse_unseen, watched
from culture_tasks.harness.lmms_eval.plugin import one_message
from culture_tasks.harness.loading import loaded
from culture_tasks.harness.scoring import scorer_of

if TYPE_CHECKING:
    import datasets
    from PIL.Image import Image

Message = dict[str, Any]


def documents(task: Task, placeholder: datasets.Dataset) -> datasets.Dataset:  # noqa: ARG001
    """Returns a task's documents in the place of the placeholder."""
    with one_message():
        return loaded(task.name)


def text(task: Task, doc: Mapping[str, Any]) -> str:
    """Returns the prompt as one text, for simple model types."""
    return rendered(task.prompt(doc))


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


def visuals(task: Task, doc: Mapping[str, Any]) -> list[Image]:
    """Returns the images that a document's prompt shows, in order, for simple model types."""
    return watched(doc, images_of(task, doc, task.prompt(doc))) if task.shows_images else []


def messages(task: Task, doc: Mapping[str, Any]) -> list[Message]:
    """Returns the prompt as messages, for chat model types: the system message, then texts and images in order."""
    prompt = task.prompt(doc)
    images = iter(watched(doc, images_of(task, doc, prompt)) if task.shows_images else ())
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


def results(task: Task, doc: Mapping[str, Any], responses: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's records; refuses one whose images were handed out and not all looked at."""
    if task.shows_images:
        refuse_unseen(doc)
    return scorer_of(task.name)(doc, responses)


def __getattr__(name: str) -> Any:
    kinds: dict[str, Any] = {
        "documents": documents,
        "text": text,
        "visuals": visuals,
        "messages": messages,
        "results": results,
    }
    return hook_named(name, __name__, kinds)
