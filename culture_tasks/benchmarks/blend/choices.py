"""What a reply to a multiple-choice question chooses."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from culture_tasks.text import answer_in

_OBJECT = re.compile(r"\{[^{}]*\}")
"""A JSON object without objects in it: the prompt asks for ``{"answer_choice":""}``."""

_LETTER = re.compile(r"\W*([A-Za-z])\W*")
"""One letter alone, with any punctuation: ``A``, ``(a)``, ``**B.**``."""

_LETTER_AND_TEXT = re.compile(r"\W*([A-Z])\s*[.):]\s*(.+)", re.DOTALL)
"""A letter as the prompt lists it, then a text: ``B. noodles``."""


def chosen(response: str, choices: Mapping[str, str]) -> str | None:
    """Returns the letter that a reply chooses, or None where that isn't certain.

    What counts is the value of ``answer_choice`` in the JSON object that the prompt asks for, or else the whole reply:
    a letter, a choice's text, or a letter with its own text. Two different choices are none, and so are a letter that
    wasn't offered, a letter with another choice's text, and a letter within a sentence.

    Args:
        response: The reply, which may hold reasoning blocks.
        choices: Texts by letter.
    """
    reply = answer_in(response).strip()
    given = [found for found in map(_answer_choice, _OBJECT.findall(reply)) if found is not None]
    read = {_letter_of(text, choices) for text in given or [reply]}
    return read.pop() if len(read) == 1 else None


def _answer_choice(text: str) -> str | None:
    try:
        value = json.loads(text).get("answer_choice")
    except ValueError:
        return None
    return value if isinstance(value, str) and value.strip() else None  # an empty one repeats the prompt


def _letter_of(text: str, choices: Mapping[str, str]) -> str | None:
    texts = {" ".join(choice.casefold().split()): letter for letter, choice in choices.items()}
    plain = text.strip()
    if (alone := _LETTER.fullmatch(plain)) and (letter := alone.group(1).upper()) in choices:
        return letter
    if whole := texts.get(" ".join(plain.casefold().split())):
        return whole
    both = _LETTER_AND_TEXT.fullmatch(plain)
    if both is None:
        return None
    named = texts.get(" ".join(both.group(2).casefold().split()).rstrip("."))
    return named if named == both.group(1) else None
