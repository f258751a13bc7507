"""Rubrics: what a judge is asked, on which scale, and how its reply is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypedDict

from culture_tasks.errors import JudgeError, nearest
from culture_tasks.judges.parsers import Reading, read_care, read_crosscult, read_lave
from culture_tasks.judges.prompts import delimited, load_prompt, shortened
from culture_tasks.judges.verdicts import JudgeItem


class Message(TypedDict):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """One way of grading.

    Attributes:
        name: The rubric's name.
        system: Name of the system prompt file, or None.
        user: Name of the user prompt file.
        reminder: Name of the prompt that asks again after an unreadable reply.
        read: Maps a completion to a rating, or to None.
        lowest: Lowest rating offered.
        highest: Highest rating offered.
        model: Model of the paper, used where the user names none.
        sampling: Sampling parameters for the judge.
        source: Paper and figure.
    """

    name: str
    system: str | None
    user: str
    reminder: str
    read: Callable[[str], Reading | None]
    lowest: int
    highest: int
    model: str
    sampling: Mapping[str, Any]
    source: str

    def messages(self, item: JudgeItem, *, delimiters: bool = True, secret: str = "") -> list[Message]:
        """Returns the chat messages that ask for a verdict.

        Args:
            item: What to grade.
            delimiters: Wrap the item's texts in tags, and say what the tags mean. Without, the messages are the paper's
                alone.
            secret: What the tags' codes are made from besides the texts: with one, no text can forge its tags.
        """
        system = [load_prompt(self.system).text] if self.system else []
        system += [load_prompt(_DELIMITERS).text] if delimiters else []
        messages: list[Message] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
        return [*messages, {"role": "user", "content": load_prompt(self.user).fill(_values(item, delimiters, secret))}]

    def reminder_messages(self, reply: str) -> list[Message]:
        """Returns the messages that follow an unreadable reply."""
        return [
            {"role": "assistant", "content": shortened(reply)},
            {"role": "user", "content": load_prompt(self.reminder).text},
        ]

    def prompt_sha256(self, *, delimiters: bool = True) -> str:
        """Hash of all wording that a judge sees besides the item."""
        names = [self.system, self.user, self.reminder, _DELIMITERS if delimiters else None]
        hashes = [load_prompt(name).sha256 if name else None for name in names]
        return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()


_DELIMITERS = "delimiters.v1"


def _values(item: JudgeItem, delimiters: bool, secret: str) -> dict[str, str]:
    question, response = shortened(item.question), shortened(item.response)
    references = [shortened(reference) for reference in item.references]
    answer = "; ".join(references)
    if delimiters:
        question, response = delimited("question", question, secret), delimited("response", response, secret)
        answer = "\n".join(delimited("reference", reference, secret) for reference in references)
    own = {"question": question, "answer": answer, "response": response}
    return own | {"language": item.language, "reference_answer": answer, "candidate_answer": response}


def _care(name: str, figure: int) -> Rubric:
    return Rubric(
        name=f"care_{name}",
        system=None,
        user=f"care_{name}.v1",
        reminder="care_reminder.v1",
        read=read_care,
        lowest=1,
        highest=10,
        model="gpt-4o",
        sampling={"temperature": 0.0, "max_tokens": 1024},
        source=f"CARE (Guo et al., 2025), Figure {figure}",
    )


# The reply's form as a schema. The scores are listed: strict schemas of some endpoints take no minimum and maximum.
_CROSSCULT_FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"score": {"type": "integer", "enum": list(range(11))}, "reason": {"type": "string"}},
            "required": ["score", "reason"],
            "additionalProperties": False,
        },
    },
}

RUBRICS: Mapping[str, Rubric] = {
    rubric.name: rubric
    for rubric in (
        Rubric(
            name="lave",
            system="lave_system.v1",
            user="lave_user.v1",
            reminder="lave_reminder.v1",
            read=partial(read_lave, highest=2),
            lowest=1,
            highest=2,
            model="gpt-4o",
            sampling={"temperature": 0.0, "max_tokens": 512},
            source="CulturalVQA (Nayak et al., 2024), Appendix F",
        ),
        Rubric(
            name="lave3",
            system="lave3_system.v1",
            user="lave_user.v1",
            reminder="lave3_reminder.v1",
            read=partial(read_lave, highest=3),
            lowest=1,
            highest=3,
            model="gpt-4o",
            sampling={"temperature": 0.0, "max_tokens": 512},
            source="LAVE (Mañas et al., 2024), its scale of 1-3; score (rating - 1) / 2",
        ),
        _care("entities_opinion", 11),
        _care("norms_commonsense", 12),
        _care("literacy", 13),
        Rubric(
            name="crosscult",
            system="crosscult_system.v1",
            user="crosscult_user.v1",
            reminder="crosscult_reminder.v1",
            read=read_crosscult,
            lowest=0,
            highest=10,
            model="gpt-5.4-mini",
            sampling={
                "temperature": 0.0,
                "max_tokens": 256,
                "reasoning_effort": "none",
                "response_format": _CROSSCULT_FORMAT,
            },
            source="CrossCult-KIBench (2026), Figure 10",
        ),
    )
}


def rubric_named(name: str) -> Rubric:
    """Returns the rubric of that name.

    Raises:
        JudgeError: If there is none.
    """
    try:
        return RUBRICS[name]
    except KeyError:
        raise JudgeError(
            f"judges: no rubric {name!r}.{nearest(name, RUBRICS)} Known are {', '.join(RUBRICS)}."
        ) from None
