"""The requests to a model, the samples to insert, and the cases to learn from."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culture_tasks.benchmarks.training_cases import Locality
from culture_tasks.errors import DataError
from culture_tasks.insertion.core.progress import Progress

if TYPE_CHECKING:
    from PIL.Image import Image

_READERS = 8  # threads that decode images

Message = Mapping[str, Any]
"""One message of a conversation: a ``role``, and ``content`` as a list of parts."""

Part = dict[str, Any]
"""``{"type": "text", "text": …}`` or ``{"type": "image", "image": …}``, as transformers' chat templates take them; the
image may be a :class:`QueryImage`."""


@dataclass(frozen=True, slots=True)
class QueryImage:
    """An image of a query, which is loaded on demand; its key is the SHA-256 of its pixels."""

    key: str
    size: tuple[int, int]
    load: Callable[[], Image]

    @classmethod
    def of(cls, image: Image | QueryImage, load: Callable[[], Image] | None = None) -> QueryImage:
        """Returns the picture of an image; without ``load`` it keeps the image itself."""
        if isinstance(image, QueryImage):
            return image
        digest = hashlib.sha256(repr(image.size).encode())
        digest.update(image.convert("RGB").tobytes())
        return cls(digest.hexdigest(), image.size, load or (lambda: image))


class Query:
    """A request to a model: a conversation that holds a question.

    The conversation is made on demand and not kept, so that thousands of queries don't hold thousands of images. After
    the first time an outline is kept: the texts, and the key and size of each image. ``outline`` makes it where that is
    possible without the images.
    """

    def __init__(
        self,
        question: str,
        load: Callable[[], Sequence[Message]],
        outline: Callable[[], list[Message]] | None = None,
    ) -> None:
        self.question = question
        self._load = load
        self._make_outline = outline
        # Not cached properties: those of Python 3.11 let one thread at a time compute them.
        self._outline: list[Message] | None = None
        self._key: str | None = None

    @classmethod
    def about(cls, image: Image, question: str, system: str = "") -> Query:
        """Returns a query with a system message, if there is one, and a user message of image and question."""
        content = [image_part(image), text_part(question)]
        opening = [{"role": "system", "content": [text_part(system)]}] if system else []
        return cls(question, lambda: [*opening, {"role": "user", "content": content}])

    def messages(self) -> list[Message]:
        """Returns the conversation, with its images loaded."""
        try:
            return [_normal(message) for message in self._load()]
        except (OSError, SyntaxError) as error:
            raise DataError(
                f"insertion: the image of {self.question!r:.80} can't be read ({error}). Replace the image."
            ) from error

    @property
    def outline(self) -> list[Message]:
        """The conversation with a :class:`QueryImage` in place of each image."""
        places = itertools.count()

        def outlined(part: Part) -> Part:
            if part["type"] == "text":
                return part
            place = next(places)
            return image_part(QueryImage.of(part["image"], lambda: self.images()[place]))

        if self._outline is None and self._make_outline is not None:
            self._outline = self._make_outline()
        elif self._outline is None:
            shown = self.messages()
            self._outline = [{**message, "content": [*map(outlined, message["content"])]} for message in shown]
        return self._outline

    @property
    def key(self) -> str:
        """SHA-256 of all that the model is shown, images by their pixels."""
        if self._key is None:
            canonical = [
                {
                    "role": message["role"],
                    "content": [
                        ["text", part["text"]] if part["type"] == "text" else ["image", part["image"].key]
                        for part in message["content"]
                    ],
                }
                for message in self.outline
            ]
            self._key = hashlib.sha256(json.dumps(canonical, sort_keys=True).encode()).hexdigest()
        return self._key

    def preceded_by(self, parts: Sequence[Part]) -> Query:
        """Returns the same query with parts inserted before the user's text, after the system message."""

        def outline() -> list[Message]:
            pictures = [image_part(QueryImage.of(part["image"])) if part["type"] == "image" else part for part in parts]
            return _preceded(self.outline, pictures)

        return Query(self.question, lambda: _preceded(self.messages(), parts), outline)

    def pictures(self) -> list[QueryImage]:
        """Returns the images of the conversation without loading them, in its order."""
        return [part["image"] for part in _parts(self.outline) if part["type"] == "image"]

    def texts(self) -> list[str]:
        """Returns the texts of the conversation, in its order."""
        return [part["text"] for part in _parts(self.outline) if part["type"] == "text"]

    def images(self) -> list[Image]:
        """Returns the images of the conversation, in its order."""
        return images_of(self.messages())


@dataclass(frozen=True, slots=True)
class Insertion:
    """An insertion sample e = (i, q, a) (section 3.1)."""

    query: Query
    answer: str

    @property
    def key(self) -> str:
        """SHA-256 of the sample."""
        return hashlib.sha256(f"{self.query.key}\n{self.answer}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Negative:
    """A locality item of a training case: a request whose behaviour is to be preserved, and the data's own answer."""

    query: Query
    answer: str
    kind: Locality


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """A single-insert case with its paired items (Appendix D.1).

    Attributes:
        case_id: Its name.
        scenario: The scenario inserted.
        insertion: The sample e_j.
        generality: Items of the same scenario and partition; together with the sample they are the positives P_j.
        locality: The negatives N_j.
    """

    case_id: str
    scenario: str
    insertion: Insertion
    generality: tuple[Insertion, ...]
    locality: tuple[Negative, ...]

    def queries(self) -> list[Query]:
        """Returns all requests: the sample, the generality items, the locality items."""
        positives = [item.query for item in (self.insertion, *self.generality)]
        return [*positives, *(item.query for item in self.locality)]


def read_all(queries: Iterable[Query], progress: Progress) -> list[Query]:
    """Returns the distinct requests, each read, so that an image that can't be read is found before anything is computed."""
    distinct = list(dict.fromkeys(queries))
    with ThreadPoolExecutor(min(_READERS, os.cpu_count() or 1)) as pool:
        for _ in progress(pool.map(lambda query: query.key, distinct), "requests", total=len(distinct)):
            pass
    return distinct


def text_part(text: str) -> Part:
    """Returns a part of a message that holds text."""
    return {"type": "text", "text": text}


def image_part(image: Image | QueryImage) -> Part:
    """Returns a part of a message that holds an image."""
    return {"type": "image", "image": image}


def images_of(messages: Iterable[Message]) -> list[Image]:
    """Returns the images of a conversation, in its order."""
    return [part["image"].convert("RGB") for part in _parts(messages) if part["type"] == "image"]


def _parts(messages: Iterable[Message]) -> Iterable[Part]:
    return (part for message in messages for part in message["content"])


def _preceded(messages: Sequence[Message], parts: Sequence[Part]) -> list[Message]:
    place = [message["role"] for message in messages].index("user")
    user = {"role": "user", "content": [*parts, *messages[place]["content"]]}
    return [*messages[:place], user, *messages[place + 1 :]]


def _normal(message: Message) -> Message:
    """Returns a message with a list of parts; harnesses put the image under ``url``, and plain texts as strings."""
    content = message["content"]
    parts = [text_part(content)] if isinstance(content, str) else [_normal_part(part) for part in content]
    return {"role": message["role"], "content": parts}


def _normal_part(part: Mapping[str, Any]) -> Part:
    if part["type"] == "text":
        return text_part(part["text"])
    if part["type"] == "image":
        image = part["image"] if "image" in part else part["url"]
        return image_part(image.load() if isinstance(image, QueryImage) else image)
    raise DataError(
        f"knowledge_insertion: a message has a part of type {part['type']!r}. Allowed are text and image: "
        "leave tasks with other media to another model."
    )
