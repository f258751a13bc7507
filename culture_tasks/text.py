"""Pure functions over text in any script: cleaning, tokens, reasoning blocks."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

# The marks around reasoning that models are trained to write: tags, Magistral's, Kimi's, OpenThinker's, the channels of
# gpt-oss, Gemma's unused tokens.
REASONING_BEGINS = re.compile(
    r"<(?:think|thinking|thought|reasoning)>|\[think\]|◁think▷|<\|begin_of_thought\|>|<unused94>"
    r"|<\|channel\|>\s{0,3}(?:analysis|commentary)<\|message\|>",
    re.IGNORECASE,
)
REASONING_ENDS = re.compile(
    r"</(?:think|thinking|thought|reasoning)>|\[/think\]|◁/think▷|<\|end_of_thought\|>|<unused95>"
    r"|<\|channel\|>\s{0,3}final<\|message\|>",
    re.IGNORECASE,
)
# Without a group around an end, which would make the search in long reasoning several times as slow.
_REASONING_MARK = re.compile(f"{REASONING_ENDS.pattern}|{REASONING_BEGINS.pattern}", re.IGNORECASE)
# The channels of gpt-oss where a backend left its special tokens out, "analysisThe user asks …assistantfinalTea"; where
# it was cut off, there is no final one.
_PLAIN_CHANNELS = re.compile(r"\s*(?:analysis(?:.*?assistantfinal|(?=[A-Z]).*)|assistantfinal)", re.DOTALL)
# Arabic diacritics, Quranic marks and tatweel (U+0640), which lengthen or vocalise a word and don't change it.
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]")
# Scripts written without spaces: Han, Kana, Thai, Lao, Khmer, Burmese. One token for each character.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3031-\u3035\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Marks that belong to the letter before them, which ``\\w`` leaves out: Latin accents, Devanagari vowel signs, joiners.
_COMBINING = "\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u200c\u200d"
# One letter of an unspaced script, or a run of letters, digits and their marks in any other script.
_TOKEN = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}_])[\w{_COMBINING}])+")


def without_reasoning(text: str) -> str:
    """Cuts reasoning blocks (``<think>…</think>`` and their like) out of a reply, in linear time.

    A block that never closes runs to the end, if it begins the reply; after other text its mark is a quotation and
    nothing is cut, so that a quoted ``<think>`` can't hide what a judge says after it. Blocks don't nest. A closing
    mark with no opening one before it ends a block that the chat template had opened: the text before it is cut too.
    The channels of gpt-oss are also known without their special tokens, which some backends leave out.

    Examples:
        >>> without_reasoning("<think>Rice? No, tea.</think>Tea")
        'Tea'
        >>> without_reasoning("analysisRice? No, tea.assistantfinalTea")
        'Tea'
    """
    if channels := _PLAIN_CHANNELS.match(text):
        text = text[channels.end() :]
    if "<" not in text and "◁" not in text and "think]" not in text.lower():
        return text
    parts: list[str] = []
    position, opened = 0, -1
    for mark in _REASONING_MARK.finditer(text):
        is_end = REASONING_ENDS.fullmatch(mark.group())
        if opened < 0 and not is_end:
            parts.append(text[position : mark.start()])
            opened = mark.start()
        elif is_end:
            if opened < 0:
                parts.clear()
            position, opened = mark.end(), -1
    if opened < 0:
        parts.append(text[position:])
    elif any(part.strip() for part in parts):
        parts.append(text[opened:])
    return "".join(parts)


def answer_in(response: str) -> str:
    """Returns a response without its reasoning blocks; one that has none is returned as it is.

    The white space between a block and the answer goes with the block.

    Examples:
        >>> answer_in("<think>Rice? No, tea.</think>  Tea")
        'Tea'
    """
    answer = without_reasoning(response)
    return answer if answer == response else answer.strip()


def storable(text: str) -> str:
    """Returns the text with U+FFFD for characters that JSON, SQLite or HTTP can't carry (lone surrogates, NUL).

    Examples:
        >>> storable("tea" + chr(0))
        'tea�'
    """
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


# Controls, but for tabs and ends of lines, and marks that set, isolate or override the direction of writing.
_ACTING = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def inert(text: str) -> str:
    """Returns the text without characters that act on a terminal or on the direction of the text around them.

    Examples:
        >>> inert("gpt" + chr(0x202E) + "4o" + chr(27))
        'gpt4o'
    """
    return _ACTING.sub("", storable(text))


def escaped(text: str) -> str:
    """Returns JSON in which no character acts on a terminal, and none is lost."""
    return _ACTING.sub(lambda control: f"\\u{ord(control.group()):04x}", storable(text))


def tokens(text: str) -> list[str]:
    """Splits text of any script into comparable tokens.

    NFKC and casefold, and NFKC again, since casefold takes some characters apart; Arabic diacritics and tatweel
    removed; one token for each character in scripts written without spaces (Han, Kana, Thai, …); runs of letters and
    digits elsewhere; punctuation dropped.

    Examples:
        >>> tokens("Ｋｉｍｃｈｉ, 泡菜 و كِتَاب!")
        ['kimchi', '泡', '菜', 'و', 'كتاب']
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _TOKEN.findall(_ARABIC_MARKS.sub("", folded))


def token_f1(candidate: str, reference: str) -> float:
    """Token-level F1 of two texts, regardless of order.

    Formula: 2PR/(P+R) over the multiset overlap of :func:`tokens`. Range 0-1, higher is better; two texts without
    any token give 0.

    Examples:
        >>> round(token_f1("a bowl of rice", "rice bowl"), 3)
        0.667
    """
    ours, theirs = Counter(tokens(candidate)), Counter(tokens(reference))
    overlap = sum((ours & theirs).values())
    if overlap == 0:
        return 0.0
    return 2 * overlap / (sum(ours.values()) + sum(theirs.values()))


def best_token_f1(candidate: str, references: Iterable[str]) -> float:
    """The highest :func:`token_f1` over the references; 0 without any.

    Examples:
        >>> best_token_f1("green tea", ["tea", "Green tea"])
        1.0
    """
    return max((token_f1(candidate, reference) for reference in references), default=0.0)
