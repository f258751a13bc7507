"""A reply as the reader sees it: reasoning cut, spelling variants of all seven languages made alike."""

from __future__ import annotations

import re
import unicodedata

from culture_tasks.text import REASONING_BEGINS, REASONING_ENDS, without_reasoning

# Names of reasoning in models' tags: <think>, <reasoning effort="high">, </seed:think>.
_NAMES = (
    r"think|thinking|thoughts?|thought_process|reason|reasoning|reflection|analysis|scratchpad|chain_of_thought|"
    r"inner_monologue|internal_monologue|seed:think"
)
_TAG = re.compile(rf"<\s{{0,3}}(/?)\s{{0,3}}(?:{_NAMES})(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_EMPTY_TAG = re.compile(rf"<\s{{0,3}}(?:{_NAMES})\s{{0,3}}/>", re.IGNORECASE)
_DOUBLED = re.compile(r"<think>(?:\s{0,20}<think>)+")

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
    """Returns a reply without its reasoning blocks, in linear time.

    Knows the marks of the models of Table 6 and their relatives, and further tags, with attributes. A block that
    never closes runs to the end, so that a reply cut off while thinking holds no answer; the text before a
    closing tag without an opening one is reasoning too.
    """
    text = REASONING_ENDS.sub("</think>", REASONING_BEGINS.sub("<think>", _EMPTY_TAG.sub(" ", reply)))
    text = _TAG.sub(lambda tag: f"<{tag.group(1)}think>", text)
    return without_reasoning(_DOUBLED.sub("<think>", text)).partition("<think>")[0]


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
