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
_THOUSANDS = re.compile(r"(?<=\d),(?=\d)")
_STRAY_PERIOD = re.compile(r"\.(?!\d)")


def normalised(answer: str) -> str:
    """Returns an answer in the form in which two answers are compared."""
    text = unicodedata.normalize("NFKC", answer).replace("’", "'").casefold().strip()
    text = _THOUSANDS.sub("", text.replace("'", ""))
    text = "".join(_kept(mark) for mark in _STRAY_PERIOD.sub("", text))
    return " ".join(_NUMBERS.get(word, word) for word in text.split() if word not in _ARTICLES)


def _kept(mark: str) -> str:
    if mark in ".:" or unicodedata.category(mark)[0] not in "PS":
        return mark
    return " "


def exact_match(prediction: str, references: Iterable[str]) -> float:
    """Returns 1.0 if the prediction equals any reference after :func:`normalised`, else 0.0.

    An empty prediction never matches.
    """
    ours = normalised(prediction)
    return float(bool(ours) and any(ours == normalised(reference) for reference in references))
