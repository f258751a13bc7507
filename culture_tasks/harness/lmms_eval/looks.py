"""Whether lmms-eval's models look at the images of a document: one that wasn't shown all of them has no score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from culture_tasks.errors import ImagesNotShownError
from culture_tasks.harness.lmms_eval.plugin import exit_on_error
from culture_tasks.harness.session import current_session

if TYPE_CHECKING:
    from PIL.Image import Image


def watch_images(doc: Mapping[str, Any], images: Iterable[Image]) -> list[Image]:
    """Returns a document's images, which remember whether they are looked at.

    Some model types look at the first image alone (the simple ``internvl``) or at none (a model that takes the text out
    of the messages). A document whose images nobody asks for has its answer from lmms-eval's cache, or from a model
    that reads no document at all, such as ``dummy``: it is scored.
    """
    copies = [image.copy() for image in images]  # other documents may show the same ones
    unseen = set(range(len(copies)))
    for index, image in enumerate(copies):
        _watch(image, partial(unseen.discard, index))
    looks, key = current_session().looks, _key(doc)
    if copies and (key not in looks or looks[key][1]):
        looks[key] = (len(copies), unseen)
    return copies


def _watch(image: Image, note: Callable[[], None]) -> None:
    """Makes an image note that it is read: everything that reads pixels calls ``load`` first."""
    load = image.load

    def load_and_note() -> Any:
        note()
        return load()

    image.load = load_and_note  # type: ignore[method-assign]  # a subclass would be another type to some models


def refuse_unseen(doc: Mapping[str, Any]) -> None:
    """Refuses a document whose images were handed out and not all looked at."""
    number, unseen = current_session().looks.get(_key(doc), (0, ()))
    with exit_on_error():
        if unseen:
            raise ImagesNotShownError(
                f"lmms-eval: the model looked at {number - len(unseen)} of {number} images of "
                f"document {doc.get('id', '')!r:.80}. Its answers aren't scored. Use a model type that is shown all of "
                "them: a chat type, such as internvl_hf, qwen2_5_vl or vllm."
            )


def _key(doc: Mapping[str, Any]) -> int:
    """Returns the key of a document: its short values, since variants of a question have the same id."""
    return hash(tuple(str(value) for name, value in doc.items() if isinstance(value, (str, int)) or name == "examples"))
