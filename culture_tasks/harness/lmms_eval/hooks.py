"""The hooks that lmms-eval's task files name (see :mod:`culture_tasks.harness.hooks`).

lmms-eval can only load by ``datasets.load_dataset``, and repeats whatever fails there five times. Its task files
therefore name a placeholder of one row, and ``process_docs`` puts the real documents in its place; the plug-in has
loaded and checked them by then, outside of the repetition.

A prompt reaches chat models as messages. The simple model types put all images before one text: a prompt with several
images numbers them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex
from weakref import WeakKeyDictionary

from culture_tasks.benchmarks.interface import Picture, Prompt, Task
from culture_tasks.errors import ImagesNotShownError
from culture_tasks.harness.hooks import images_of, resolve_hook
from culture_tasks.harness.lmms_eval.plugin import exit_on_error
from culture_tasks.harness.loading import load_for_evaluation, loaded_task
from culture_tasks.harness.scoring import scorer_of
from culture_tasks.harness.session import Session, current_session
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    import datasets
    from PIL.Image import Image

Message = dict[str, Any]


def documents(task: Task, placeholder: datasets.Dataset) -> datasets.Dataset:  # noqa: ARG001
    """Returns a task's documents in the place of the placeholder; for a user's variant they are loaded here."""
    with exit_on_error():
        loaded = loaded_task(task.name)
        is_of_this_run = loaded is not None and loaded.settings == Settings.from_environment()
        return loaded.data if loaded and is_of_this_run else load_for_evaluation(task.name)


def text(task: Task, doc: Mapping[str, Any]) -> str:
    """Returns the prompt as one text, for simple model types."""
    return render_prompt(task.prompt(doc))


def render_prompt(prompt: Prompt) -> str:
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
    return watch_images(doc, images_of(task, doc, task.prompt(doc))) if task.shows_images else []


def messages(task: Task, doc: Mapping[str, Any]) -> list[Message]:
    """Returns the prompt as messages, for chat model types: the system message, then texts and images in order."""
    prompt = task.prompt(doc)
    return conversation(prompt, watch_images(doc, images_of(task, doc, prompt)) if task.shows_images else [])


def conversation(prompt: Prompt, images: Iterable[Image]) -> list[Message]:
    """Returns a prompt with its images, in order, as messages."""
    pictures = iter(images)
    content = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "url": next(pictures)}
        for part in prompt.parts
    ]
    user = {"role": "user", "content": content}
    if not prompt.system:
        return [user]
    return Conversation([{"role": "system", "content": [{"type": "text", "text": prompt.system}]}, user])


class Conversation(list[Message]):
    """Messages whose system message stays the only one: lmms-eval's Qwen backends insert their own before it."""

    def insert(self, index: SupportsIndex, message: Message) -> None:
        """Inserts a message, unless it would be a second system message."""
        if message.get("role") != "system" or all(earlier["role"] != "system" for earlier in self):
            super().insert(index, message)


def results(task: Task, doc: Mapping[str, Any], responses: Sequence[Any]) -> dict[str, Any]:
    """Returns a document's records; refuses one whose images were handed out and not all looked at."""
    if task.shows_images:
        refuse_unseen(doc)
    return scorer_of(task.name)(doc, responses)


class _Looks:
    """How many images of a document were handed out together, and the places of the images that weren't read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.unseen = set(range(number))

    def watch(self, image: Image, place: int) -> Image:
        """Makes an image of this document tell when it is read: everything that reads pixels calls ``load`` first."""
        image = image.copy()  # other documents may show the same one
        load = image.load

        def load_and_tell() -> Any:
            self.unseen.discard(place)
            return load()

        image.load = load_and_tell  # type: ignore[method-assign]  # a subclass would be another type to some models
        return image


_looks: WeakKeyDictionary[Session, dict[int, _Looks]] = WeakKeyDictionary()


def watch_images(doc: Mapping[str, Any], images: Iterable[Image]) -> list[Image]:
    """Returns a document's images, which remember whether they are looked at.

    Some model types look at the first image alone (the simple ``internvl``) or at none (a model that takes the text out
    of the messages). A document whose images nobody asks for has its answer from lmms-eval's cache, or from a model
    that reads no document at all, such as ``dummy``: it is scored.
    """
    handed_out = list(images)
    looks = _Looks(len(handed_out))
    looks_by_key = _looks.setdefault(current_session(), {})
    before = looks_by_key.get(_key(doc))
    if handed_out and (before is None or before.unseen):
        looks_by_key[_key(doc)] = looks
    return [looks.watch(image, place) for place, image in enumerate(handed_out)]


def refuse_unseen(doc: Mapping[str, Any]) -> None:
    """Refuses a document whose images were handed out and not all looked at."""
    looks = _looks.get(current_session(), {}).get(_key(doc))
    with exit_on_error():
        if looks is not None and looks.unseen:
            raise ImagesNotShownError(
                f"lmms-eval: the model looked at {looks.number - len(looks.unseen)} of {looks.number} images of "
                f"document {doc.get('id', '')!r:.80}. Its answers aren't scored. Use a model type that is shown all of "
                "them: a chat type, such as internvl_hf, qwen2_5_vl or vllm."
            )


def _key(doc: Mapping[str, Any]) -> int:
    """Returns the key of a document: its short values, since variants of a question have the same id."""
    return hash(tuple(str(value) for name, value in doc.items() if isinstance(value, (str, int)) or name == "examples"))


def __getattr__(name: str) -> Any:
    return resolve_hook(name, __name__, documents, text, visuals, messages, results)
