"""The requests to a model, how answers are decoded, the samples to insert, and the cases to learn from."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass as validated_dataclass

from culture_tasks.benchmarks.training_cases import Locality
from culture_tasks.data.images import as_rgb
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.insertion.core.progress import Progress

if TYPE_CHECKING:
    from PIL.Image import Image

_READERS = 8  # threads that decode images
_NEW_TOKENS = 1024  # of an answer if a task doesn't say, as in lmms-eval's own chat models

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
        digest.update(as_rgb(image).tobytes())
        return cls(digest.hexdigest(), image.size, load or (lambda: image))


class Query:
    """A request to a model: a conversation that holds a question.

    The conversation is made on demand and not kept, so that thousands of queries don't hold thousands of images. Its
    outline is kept: the texts, and the key and size of each image.
    """

    def __init__(
        self, question: str, load: Callable[[], Sequence[Message]], outline: list[Message] | None = None
    ) -> None:
        self.question, self._load = question, load
        # Not cached properties: those of Python 3.11 let one thread at a time compute them.
        self._outline = outline
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

        if self._outline is None:
            messages = self.messages()
            self._outline = [{**message, "content": [*map(outlined, message["content"])]} for message in messages]
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
        pictures = [image_part(QueryImage.of(part["image"])) if part["type"] == "image" else part for part in parts]
        outline = _insert_parts(self.outline, pictures)
        return Query(self.question, lambda: _insert_parts(self.messages(), parts), outline)

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
    """An insertion sample e = (i, q, a) (section 3.1): a request, phrased as any is, and the answer.

    A locality item has a kind, and the data's own answer to a request whose behaviour is to be preserved.
    """

    query: Query
    answer: str
    kind: Locality | None = None

    @property
    def key(self) -> str:
        """SHA-256 of request and answer."""
        return hashlib.sha256(f"{self.query.key}\n{self.answer}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """A single-insert case with its paired items (Appendix D.1).

    The sample e_j and the generality items, of the same scenario and partition, are its positives P_j, the locality
    items its negatives N_j.
    """

    scenario: str
    insertion: Insertion
    generality: tuple[Insertion, ...]
    locality: tuple[Insertion, ...]

    def queries(self) -> list[Query]:
        """Returns all requests: the sample, the generality items, the locality items."""
        positives = [item.query for item in (self.insertion, *self.generality)]
        return [*positives, *(item.query for item in self.locality)]


def read_all(queries: Iterable[Query], progress: Progress) -> list[Query]:
    """Reads the distinct requests, so that a broken image is found before anything is computed, and returns them."""
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
    return [as_rgb(part["image"]) for part in _parts(messages) if part["type"] == "image"]


def _parts(messages: Iterable[Message]) -> Iterable[Part]:
    return (part for message in messages for part in message["content"])


def _insert_parts(messages: Sequence[Message], parts: Sequence[Part]) -> list[Message]:
    place = [message["role"] for message in messages].index("user")
    user = {"role": "user", "content": [*parts, *messages[place]["content"]]}
    return [*messages[:place], user, *messages[place + 1 :]]


def _normal(message: Message) -> Message:
    """Returns a message with a list of parts; harnesses put the image under ``url``, and plain texts as strings."""
    content, parts = message["content"], list[Part]()
    for part in [text_part(content)] if isinstance(content, str) else content:
        if part["type"] not in ("text", "image"):
            raise DataError(
                f"knowledge_insertion: a message has a part of type {part['type']!r}. Expected text or image: "
                "leave tasks with other media to another model."
            )
        image: Any = part.get("image", part.get("url"))
        picture = image.load() if isinstance(image, QueryImage) else image
        parts.append(text_part(part["text"]) if part["type"] == "text" else image_part(picture))
    return {"role": message["role"], "content": parts}


@validated_dataclass(frozen=True, slots=True)
class AnswerDecoding:
    """Decoding settings; the default is the paper's (section E.2). Temperature 0 is greedy, 1 beam no beam search."""

    max_new_tokens: Annotated[int, Field(ge=1)] = 64
    temperature: Annotated[float, Field(ge=0)] = 0.0
    top_p: float | None = None
    num_beams: Annotated[int, Field(ge=1)] = 1

    @classmethod
    def from_request(cls, gen_kwargs: Mapping[str, Any]) -> AnswerDecoding:
        """Reads a request's ``generation_kwargs``.

        ``until`` is ignored, as in lmms-eval's own chat models: lmms-eval adds one to every task.
        """
        values = {name: gen_kwargs[name] for name in asdict(cls()) if gen_kwargs.get(name) is not None}
        try:
            return cls(**{"max_new_tokens": _NEW_TOKENS, **values})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise SettingsError(
                f"knowledge_insertion: generation_kwargs {problem['loc'][0]}={problem['input']!r}: {problem['msg']}. "
                "Correct it in the task or in --gen_kwargs."
            ) from None

    @property
    def samples(self) -> bool:
        """Whether two answers to one request may differ, so that none is stored."""
        return self.temperature > 0

    def options(self) -> dict[str, Any]:
        """Returns the arguments of ``model.generate``; sampling parameters are unset if nothing is sampled."""
        sampling: dict[str, float | None] = {"temperature": None, "top_p": None, "top_k": None}
        if self.samples:
            sampling = {"temperature": self.temperature, **({} if self.top_p is None else {"top_p": self.top_p})}
        shared = {"max_new_tokens": self.max_new_tokens, "num_beams": self.num_beams, "do_sample": self.samples}
        return {**shared, **sampling}
