"""Rubrics: what a judge is asked, on which scale, and how its reply is read.

A filled-in text is data. It is never formatted twice (braces in it mean nothing), it can't carry characters that break
a request or a log, it has a largest length, and by default it is put between tags that end in a code. The code is made
from the text and a secret of the run, so that no text can hold it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypedDict

from culture_tasks.judges.rubric.verdicts import JudgeItem, OfferedScale, Reading
from culture_tasks.prompt_files import load
from culture_tasks.text import storable

# Characters of one filled-in text that a judge is shown; the rest is cut, and the cut is named in the prompt.
LONGEST_TEXT = 32_000
Form = Literal["free", "json_schema", "regex"]
"""How an endpoint holds a reply to a form: not at all, by a schema as OpenAI's API, or by a pattern as vLLM's."""


class Message(TypedDict):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """One way of grading. Any package can define one: its prompt files lie in the folder ``prompts`` beside it.

    A prompt has slots: ``{question}``, ``{answer}`` or ``{reference_answer}`` for the references, ``{response}`` or
    ``{candidate_answer}``, and ``{language}``.

    Attributes:
        name: The rubric's name, unique among all packages.
        package: The package whose folder ``prompts`` holds the prompt files.
        system: Name of the system prompt file, or None.
        user: Name of the user prompt file.
        reminder: Name of the prompt that asks again after an unreadable reply.
        lowest: Lowest rating offered.
        highest: Highest rating offered.
        asks_for: The word that the prompt asks for before the rating.
        rationale: Name of the reasons in a reply as JSON; it comes before ``asks_for`` in the alphabet, in which the
            keys of a request are sorted, and so in the reply.
        pattern: Regular expression of a reply, the reasons before the rating; ``RATING`` is any rating offered.
        reader: Maps a completion and the scale to a rating, or to None; None means ``read_rating``.
        model: Model of the paper, used where the user names none.
        sampling: Sampling parameters for the judge.
        source: Paper and figure.
    """

    name: str
    package: str
    system: str | None = None
    user: str
    reminder: str
    lowest: int
    highest: int
    asks_for: Literal["rating", "score"] = "rating"
    rationale: str = "explanation"
    pattern: str = r"[^\n]+\nRating: RATING"
    reader: Callable[[str, OfferedScale], Reading | None] | None = None
    model: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    source: str

    def read(self, reply: str) -> Reading | None:
        """Returns the rating that a reply states, or None where a careful reader would ask again."""
        return (self.reader or _usual_reader())(reply, OfferedScale(self.lowest, self.highest, self.asks_for))

    def messages(self, item: JudgeItem, *, delimiters: bool = True, secret: str = "") -> list[Message]:
        """Returns the chat messages that ask for a verdict.

        With delimiters, the item's texts stand between tags whose codes are made from the texts and the secret, and a
        system message says what the tags mean; without, the messages are the paper's alone.
        """
        system = _system_wording(self.package, self.system, delimiters)
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        user = load(self.package, self.user).fill(_values(item, delimiters, secret))
        return [*messages, {"role": "user", "content": user}]

    def form(self, form: Form) -> Mapping[str, Any]:
        """Returns the parameters with which an endpoint holds a reply to a form: the reasons, then the rating."""
        ratings = range(self.lowest, self.highest + 1)
        if form == "regex":
            # The longest number first: some engines take the first alternative that fits.
            pattern = self.pattern.replace("RATING", f"({'|'.join(map(str, reversed(ratings)))})")
            return {"structured_outputs": {"regex": pattern}, "response_format": None}
        if form == "json_schema":
            # The ratings are listed: strict schemas of some endpoints take no minimum and maximum.
            rating = {"type": "integer", "enum": list(ratings)}
            schema = {
                "type": "object",
                "properties": {self.rationale: {"type": "string"}, self.asks_for: rating},
                "required": [self.rationale, self.asks_for],
                "additionalProperties": False,
            }
            json_schema = {"name": "verdict", "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": json_schema}}
        return {}

    def prompt_order(self, item: JudgeItem) -> tuple[object, ...]:
        """Returns a sort key that puts prompts with the same beginning together."""
        return self.name, item.language, item.question, item.references

    def reminder_messages(self, reply: str) -> list[Message]:
        """Returns the messages that follow an unreadable reply."""
        return [
            {"role": "assistant", "content": shortened(reply)},
            {"role": "user", "content": load(self.package, self.reminder).text},
        ]

    @staticmethod
    def after_a_cut(reminder: Sequence[Message]) -> list[Message]:
        """Returns a reminder for a reply that was cut off, which says so first."""
        *others, last = reminder
        text = f"{load(__package__, 'cut_off.v1').text} {last['content']}"
        return [*others, {"role": last["role"], "content": text}]

    def prompt_sha256(self, *, delimiters: bool = True) -> str:
        """Hash of all wording that a judge sees besides the item."""
        names = (self.system, self.user, self.reminder)
        hashes = [load(self.package, name).sha256 if name else None for name in names]
        hashes.append(load(*_ABOUT_DELIMITERS).sha256 if delimiters else None)
        return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()


_ABOUT_DELIMITERS = (__package__, "delimiters.v1")


@cache
def _usual_reader() -> Callable[[str, OfferedScale], Reading | None]:
    from culture_tasks.judges.rubric.parsers import read_rating  # its patterns take a while to compile

    return read_rating


@cache
def _system_wording(package: str, name: str | None, delimiters: bool) -> str:
    prompts = [load(package, name)] if name else []
    prompts += [load(*_ABOUT_DELIMITERS)] if delimiters else []
    return "\n\n".join(prompt.text for prompt in prompts)


def _values(item: JudgeItem, delimiters: bool, secret: str) -> dict[str, str]:
    question, response = shortened(item.question), shortened(item.response)
    references = [shortened(reference) for reference in item.references]
    if delimiters:
        question, response = delimited("question", question, secret), delimited("response", response, secret)
        references = [delimited("reference", reference, secret) for reference in references]
    answer = ("\n" if delimiters else "; ").join(references)
    values = {"question": question, "answer": answer, "response": response, "language": item.language}
    return values | {"reference_answer": answer, "candidate_answer": response}


def shortened(text: str) -> str:
    """Returns the text as it may be shown to a judge: storable, and cut after :data:`LONGEST_TEXT` characters."""
    clean = storable(text)
    if len(clean) <= LONGEST_TEXT:
        return clean
    return f"{clean[:LONGEST_TEXT]} [cut here: {len(clean) - LONGEST_TEXT} more characters]"


def delimited(name: str, text: str, secret: str = "") -> str:
    """Wraps a text in tags that it can't close: they end in a hash of the text and a secret that no author knows.

    Without a secret, anybody can compute the tags: that prompt names a request, and is not sent.
    """
    code = hashlib.sha256(f"{secret}\n{name}\n{text}".encode()).hexdigest()[:12]
    return f"<{name}-{code}>\n{text}\n</{name}-{code}>"
