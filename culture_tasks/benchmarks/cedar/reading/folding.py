"""A reply as the reader sees it: reasoning cut, spelling variants of all seven languages made alike."""

from __future__ import annotations

import re
import unicodedata

from culture_tasks.text import REASONING_BEGINS, without_reasoning

_EMPTY_TAG = re.compile(
    r"<\s{0,3}(?:think|thinking|thoughts?|reason|reasoning|reflection|analysis)\s{0,3}/>", re.IGNORECASE
)

# A character that JSON wrote as its code.
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
# A Hindi nasal that is written as a letter before a consonant: another spelling of the anusvara.
_NASAL = re.compile("[ङञणनम]्(?=[क-ह])")
_DROPPED = (
    *((0x300, 0x36F), (0x610, 0x61A), (0x640, 0x640), (0x64B, 0x65F), (0x670, 0x670), (0x6D6, 0x6ED)),
    *((0x93C, 0x93C), (0x903, 0x903), (0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200F)),
    *((0x202A, 0x202E), (0x2060, 0x206F), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0, 8)),
)
_ALIKE = {
    **dict(zip("ةىیکگےۀ", "هييكگيه", strict=True)),
    **dict.fromkeys("ँ", "ं"),
    **dict.fromkeys("’‘`´ʼ′", "'"),
    **dict.fromkeys("“”„‟«»「」『』《》〈〉〝〞【】〖〗＂″", '"'),
    **dict(zip("،؛؟।॥。、・", ",;?...,,", strict=True)),
    **dict.fromkeys("\r\v\f\x85\u2028\u2029", "\n"),
    **dict.fromkeys("‐‑", "-"),
}
_TABLE = {code: None for first, last in _DROPPED for code in range(first, last + 1)} | {
    ord(character): replacement for character, replacement in _ALIKE.items()
}


def cut_reasoning(reply: str) -> str:
    """Returns a reply without its reasoning blocks, in linear time, and without all behind one that never closes."""
    return REASONING_BEGINS.split(without_reasoning(_EMPTY_TAG.sub(" ", reply)), maxsplit=1)[0]


def fold(text: str) -> str:
    """Returns text in which spelling variants are alike; words are compared in this form.

    Compatibility forms and case are folded. Latin accents, Arabic diacritics, tatweel and hamza seats, the Hindi nukta
    and visarga, and invisible characters are dropped; ta marbuta becomes ha, alif maqsura ya, chandrabindu and
    homorganic nasals anusvara. Kana keep their voicing marks. Quotation marks and stops become the ASCII ones.
    """
    text = _ESCAPE.sub(lambda escape: chr(int(escape.group(1), 16)), text)
    decomposed = unicodedata.normalize("NFKD", text.translate(_QUOTES)).casefold()
    return _NASAL.sub("ं", unicodedata.normalize("NFC", decomposed.translate(_TABLE)))


_QUOTES = {ord(character): replacement for character, replacement in _ALIKE.items() if not character.isalnum()}
