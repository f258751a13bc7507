"""The requests to a model, how answers are decoded, the samples to insert, and the cases to learn from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass as validated_dataclass

from culture_tasks.benchmarks.training_cases import Locality
from culture_tasks.data.images import as_rgb, read_image
from culture_tasks.errors import DataError, SettingsError

if TYPE_CHECKING:
    from PIL.Image import Image

_NEW_TOKENS = 1024  # of an answer if a task doesn't say, as in lmms-eval's own chat models

Message = Mapping[str, Any]
"""One message of a conversation: a ``role``, and ``content`` as a list of parts."""

Part = dict[str, Any]
"""``{"type": "text", "text": …}`` or ``{"type": "image", "image": …}``, as transformers' chat templates take them. The
image may be the path of a file, which is read whenever the model is shown it, and not kept."""


class Request:
    """A request to a model: a conversation that holds a question."""

    def __init__(self, question: str, messages: Sequence[Message]) -> None:
        self.question, self.messages = question, messages
        self._key: str | None = None  # not a cached property: those of Python 3.11 let one thread compute at a time

    @classmethod
    def about(cls, image: Image | Path, question: str, system: str = "") -> Request:
        """Returns a request with a system message, if there is one, and a user message of image and question."""
        opening = [{"role": "system", "content": [text_part(system)]}] if system else []
        return cls(question, [*opening, {"role": "user", "content": [image_part(image), text_part(question)]}])

    @property
    def key(self) -> str:
        """SHA-256 of all that the model is shown, images by their pixels."""
        if self._key is None:
            canonical = [
                {"role": message["role"], "content": list(map(_key_part, message["content"]))}
                for message in self.messages
            ]
            self._key = hashlib.sha256(json.dumps(canonical, sort_keys=True).encode()).hexdigest()
        return self._key

    def preceded_by(self, parts: Sequence[Part]) -> Request:
        """Returns the same request with parts inserted before the user's text, after the system message."""
        messages = list(self.messages)
        place = [message["role"] for message in messages].index("user")
        messages[place] = {"role": "user", "content": [*parts, *messages[place]["content"]]}
        return Request(self.question, messages)

    def texts(self) -> list[str]:
        """Returns the texts of the conversation, in its order."""
        parts = (part for message in self.messages for part in message["content"])
        return [part["text"] for part in parts if part["type"] == "text"]

    def pictures(self) -> list[Image | Path]:
        """Returns the images of the conversation, in its order; those in files aren't read."""
        return pictures_of(self.messages)


@dataclass(frozen=True)
class Insertion:
    """An insertion sample e = (i, q, a) (section 3.1): a request, phrased as any is, and the answer.

    A locality item has a kind, and the data's own answer to a request whose behaviour is to be preserved.
    """

    request: Request
    answer: str
    kind: Locality | None = None

    @property
    def key(self) -> str:
        """SHA-256 of request and answer."""
        return hashlib.sha256(f"{self.request.key}\n{self.answer}".encode()).hexdigest()


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

    def requests(self) -> list[Request]:
        """Returns all requests: the sample, the generality items, the locality items."""
        return [item.request for item in (self.insertion, *self.generality, *self.locality)]


def text_part(text: str) -> Part:
    """Returns a part of a message that holds text."""
    return {"type": "text", "text": text}


def image_part(image: Image | Path) -> Part:
    """Returns a part of a message that holds an image."""
    return {"type": "image", "image": image}


def pictures_of(messages: Iterable[Message]) -> list[Image | Path]:
    """Returns the images of a conversation, in its order; those in files aren't read."""
    return [part["image"] for message in messages for part in message["content"] if part["type"] == "image"]


def image_key(image: Image | Path) -> str:
    """Returns the SHA-256 of an image's pixels."""
    pixels = loaded(image)
    return hashlib.sha256(repr(pixels.size).encode() + pixels.tobytes()).hexdigest()


def loaded(image: Image | Path) -> Image:
    """Returns an image in RGB, which is read if it is a file."""
    try:
        return read_image(image.read_bytes()) if isinstance(image, Path) else as_rgb(image)
    except (OSError, SyntaxError) as error:
        raise DataError(f"insertion: the image {image} can't be read ({error}). Replace it.") from error


def size_of(image: Image | Path) -> tuple[int, int]:
    """Returns width and height of an image; of a file only the beginning is read."""
    if not isinstance(image, Path):
        return image.size
    import PIL.Image

    with PIL.Image.open(image) as opened:
        return opened.size


def conversation(messages: Iterable[Message]) -> list[Message]:
    """Returns messages with lists of parts; harnesses put the image under ``url``, and plain texts as strings."""
    return [{"role": message["role"], "content": _parts(message["content"])} for message in messages]


def _parts(content: Any) -> list[Part]:
    parts = list[Part]()
    for part in [text_part(content)] if isinstance(content, str) else content:
        if part["type"] not in ("text", "image"):
            raise DataError(
                f"knowledge_insertion: a message has a part of type {part['type']!r}. Expected text or image: leave "
                "tasks with other media to another model."
            )
        image: Any = part.get("image", part.get("url"))
        parts.append(text_part(part["text"]) if part["type"] == "text" else image_part(image))
    return parts


def _key_part(part: Part) -> list[str]:
    return ["text", part["text"]] if part["type"] == "text" else ["image", image_key(part["image"])]


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
        shared = {"max_new_tokens": self.max_new_tokens, "num_beams": self.num_beams, "do_sample": self.samples}
        if not self.samples:
            return {**shared, "temperature": None, "top_p": None, "top_k": None}
        return {**shared, "temperature": self.temperature, **({} if self.top_p is None else {"top_p": self.top_p})}
