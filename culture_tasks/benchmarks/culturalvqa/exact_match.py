"""Exact match of CulturalVQA's answers, after the normalisation of the VQA evaluation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from culture_tasks.text import folded

_ARTICLES = frozenset(("a", "an", "the"))
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_NUMBERS = {**{word: str(number) for number, word in enumerate(_WORDS)}, "none": "0"}
_LISTED = frozenset(';/[]"{}()=+\\_-><@`?!')
# A comma between the digits of a number, and a period that no digit follows.
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_STRAY_PERIOD = re.compile(r"\.(?!\d)")


def normalised(answer: str) -> str:
    """Returns an answer in the form in which two answers are compared: that of the VQA evaluation.

    Lower case, number words to digits, articles and punctuation removed (Antol et al., 2015; Goyal et al., 2017). Where
    that one gives a contraction its missing apostrophe by a list, here every apostrophe is removed, which makes the
    same pairs equal.
    """
    text = _THOUSANDS.sub("", "".join(map(_plain, folded(answer)))).replace(",", " ")
    words = _STRAY_PERIOD.sub("", text).split()
    return " ".join(_NUMBERS.get(word, word) for word in words if word not in _ARTICLES)


@cache
def _plain(character: str) -> str:
    """Returns a character, or what takes its place: a space for punctuation, and nothing for an apostrophe.

    Punctuation is as the VQA evaluation lists it (neither ``%`` nor ``$``), and outside of ASCII as Unicode does.
    """
    if character in "'’":
        return ""
    is_punctuation = character in _LISTED if character.isascii() else unicodedata.category(character).startswith("P")
    return " " if is_punctuation else character


def exact_match(prediction: str, references: Iterable[str]) -> float:
    """Returns 1.0 if the prediction equals any reference after :func:`normalised` and isn't empty, else 0.0."""
    ours = normalised(prediction)
    return float(bool(ours) and any(ours == normalised(reference) for reference in references))
