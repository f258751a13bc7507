"""Whether lmms-eval's models look at the images of a document: one that wasn't shown all of them has no score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from culture_tasks.errors import ImagesNotShownError
from culture_tasks.harness.lmms_eval.plugin import exit_on_error
from culture_tasks.harness.session import Session, current_session

if TYPE_CHECKING:
    from PIL.Image import Image


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
