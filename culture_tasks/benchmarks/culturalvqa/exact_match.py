"""Exact match after VQA-style normalisation, the classic contrast to a judge.

The normalisation is the one of the VQA evaluation (Antol et al., 2015; Goyal et al., 2017): lower case, number words
to digits, articles and punctuation removed. Where that one gives a contraction its missing apostrophe by a list, here
every apostrophe is removed, which makes the same pairs equal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

_ARTICLES = frozenset(("a", "an", "the"))
_NUMBERS: Mapping[str, str] = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
} | {"none": "0"}
_LISTED = frozenset(';/[]"{}()=+\\_-><@`?!')
# A comma between the digits of a number, and a period that no digit follows.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_STRAY_PERIOD = re.compile(r"\.(?!\d)")


def normalised(answer: str) -> str:
    """Returns an answer in the form in which two answers are compared."""
    text = unicodedata.normalize("NFKC", answer).casefold().translate(_MARKS)
    if "," in text:
        text = _THOUSANDS.sub("", text).replace(",", " ")
    if "." in text:
        text = _STRAY_PERIOD.sub("", text)
    words = text.split()
    return " ".join(_NUMBERS.get(word, word) for word in words if word not in _ARTICLES)


class _Marks(dict[int, int | str | None]):
    """A translation table, filled as characters come: punctuation to spaces, apostrophes to nothing.

    Punctuation is what the VQA evaluation lists, which leaves ``%``, ``$``, ``#`` and their like in place, and what
    Unicode calls so outside of ASCII. Commas and periods are told from those in numbers before and after.
    """

    def __missing__(self, code: int) -> int | str | None:
        mark = chr(code)
        listed = mark in _LISTED if code < 128 else unicodedata.category(mark).startswith("P")
        self[code] = None if mark in "'’" else " " if listed else code
        return self[code]


_MARKS = _Marks()


def exact_match(prediction: str, references: Iterable[str]) -> float:
    """Returns 1.0 if the prediction equals any reference after :func:`normalised`, else 0.0.

    An empty prediction never matches.
    """
    ours = normalised(prediction)
    return float(bool(ours) and any(ours == normalised(reference) for reference in references))
