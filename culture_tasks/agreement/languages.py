"""In which language a rated response's question is, where the data may not say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN = "und"
"""ISO 639's code for an undetermined language."""

_CODES: Mapping[str, str] = {
    "chinese": "zh",
    "china": "zh",
    "mandarin": "zh",
    "arabic": "ar",
    "arab": "ar",
    "japanese": "ja",
    "japan": "ja",
    "english": "en",
    "hindi": "hi",
    "spanish": "es",
    "swahili": "sw",
}
_NATIVE = re.compile(r"^\s*native\b[\s:(\[-]*([a-z]+)", re.IGNORECASE)
_KANA = re.compile("[\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\uff66-\uff9d]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_ARABIC = re.compile("[\u0620-\u064a\u066e-\u06d3\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]")
_LEAST_KANA = 0.2


def language_of(question: str, *, language: str | None = None, culture: str | None = None) -> str:
    """Decides a question's language.

    The first of these that tells: the ``language`` column; a native culture, such as ``Native (Chinese)``; the script
    of the question. A foreign culture tells nothing, since CARE asks about those in its own three languages.

    Args:
        question: The question.
        language: What the data say, as a code or an English name.
        culture: CARE's ``associated_culture``.

    Returns:
        A code such as ``zh``, or ``und``.
    """
    if language is not None:
        return _code(language)
    native = _NATIVE.match(culture or "")
    if native and native.group(1).casefold() in _CODES:
        return _CODES[native.group(1).casefold()]
    return language_of_script(question)


def language_of_script(text: str) -> str:
    """Guesses Arabic, Chinese or Japanese from the script that most letters are in.

    Han with at least a fifth of kana is Japanese, since a Chinese text may quote a Japanese word; Japanese without kana
    passes for Chinese. Persian and Urdu pass for Arabic. Anything else is ``und``.
    """
    kana, han, arabic = (len(script.findall(text)) for script in (_KANA, _HAN, _ARABIC))
    others = sum(mark.isalpha() for mark in text) - kana - han - arabic
    east_asian = kana + han
    if max(arabic, east_asian) <= others or arabic == east_asian:
        return UNKNOWN
    if arabic > east_asian:
        return "ar"
    return "ja" if kana >= _LEAST_KANA * east_asian else "zh"


def _code(language: str) -> str:
    name = language.strip().casefold().replace("_", "-")
    return _CODES.get(name, name.split("-")[0])
