"""Reading a judge's reply: one pure function a format.

Rules shared by all: the last verdict wins, since a judge may quote the candidate or the format before it decides;
a last verdict that is not one of the offered values makes the reply unparsable, and no earlier one stands in for it;
digits are ASCII. A parser never sees the prompt, so a candidate can forge a verdict only through the judge's own words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from culture_tasks.text import without_reasoning


class Reading(NamedTuple):
    """A reply that was understood.

    Attributes:
        rating: The rating on the scale that the prompt offers.
        rationale: The reply without the verdict.
    """

    rating: int
    rationale: str


_EMPHASIS = r"[*_`'\"‘’“”]{0,4}"
_LAVE = re.compile(
    rf"\brating{_EMPHASIS}[ \t]{{0,4}}={_EMPHASIS}[ \t]{{0,4}}{_EMPHASIS}([0-9][^\s,;:)\]}}]*)", re.IGNORECASE
)
_CARE = re.compile(
    rf"\brating{_EMPHASIS}[ \t]{{0,4}}:{_EMPHASIS}[ \t]{{0,4}}{_EMPHASIS}\[\[([^\[\]\n]{{0,40}})\]\]", re.IGNORECASE
)
_TRAILING = ".!?*_`'\"‘’“”"


def read_lave(reply: str, highest: int = 2) -> Reading | None:
    """Reads ``rating=X`` with X from 1 to ``highest`` (CulturalVQA, Appendix F).

    Args:
        reply: The judge's completion.
        highest: Highest rating that the prompt offers.

    Returns:
        The reading, or None if the last ``rating=`` with a digit is not an offered value, or there is none.
    """
    return _last_offered(_LAVE, reply, highest, trailing=_TRAILING)


def read_care(reply: str) -> Reading | None:
    """Reads ``Rating: [[n]]`` with an integer n from 1 to 10 (CARE, Figures 11-13).

    Args:
        reply: The judge's completion.

    Returns:
        The reading, or None if the last ``Rating: [[…]]`` with a number is not an integer from 1 to 10, or there is
        none. The unfilled format itself, ``Rating: [[number]]``, is no verdict.
    """
    return _last_offered(_CARE, reply, 10, trailing="")


def _last_offered(pattern: re.Pattern[str], reply: str, highest: int, trailing: str) -> Reading | None:
    text = without_reasoning(reply)
    numeric = [found for found in pattern.finditer(text) if any(mark in "0123456789" for mark in found.group(1))]
    if not numeric:
        return None
    last = numeric[-1]
    value = last.group(1).strip().rstrip(trailing)
    if re.fullmatch(r"[0-9]{1,2}", value) is None or not 1 <= int(value) <= highest:
        return None
    return Reading(int(value), (text[: last.start()] + text[last.end() :]).strip())
