"""Spelling variants of all seven languages made alike, for labels and replies."""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")  # a character that JSON wrote as its code
# A Hindi nasal that is written as a letter before a consonant: another spelling of the anusvara.
_NASAL = re.compile("[ङञणनम]्(?=[क-ह])")
# Latin accents, Arabic diacritics and tatweel, the Hindi nukta and visarga, and invisible characters.
_DROPPED = re.compile(
    "[\u0300-\u036f\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u093c\u0903\u00ad\u061c\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\u0000-\u0008]"
)
_ALIKE = str.maketrans(
    "’‘`´ʼ′“”„‟«»「」『』《》〈〉〝〞【】〖〗＂″\r\v\f\x85\u2028\u2029،؛؟।॥。、・‐‑ةىیکگےۀँ",
    "'" * 6 + '"' * 22 + "\n" * 6 + ",;?...,,--هييكگيهं",
)


def fold(text: str) -> str:
    """Returns text in which spelling variants are alike; words are compared in this form.

    Compatibility forms, case, accents, diacritics, hamza seats and nasals are alike, and quotation marks and stops are
    the ASCII ones. Kana keep their voicing marks.
    """
    text = _ESCAPE.sub(lambda escape: chr(int(escape.group(1), 16)), text)
    decomposed = unicodedata.normalize("NFKD", text.translate(_ALIKE)).casefold()
    return _NASAL.sub("ं", unicodedata.normalize("NFC", _DROPPED.sub("", decomposed).translate(_ALIKE)))
