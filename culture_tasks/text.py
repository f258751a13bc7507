"""Pure functions over text in any script: cleaning, tokens, reasoning blocks."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple


def _tags(names: str) -> tuple[str, str]:
    """Returns the patterns of the tags that begin and end a block; the first may have attributes."""
    return rf"<\s{{0,3}}(?:{names})(?:\s[^<>]{{0,200}})?>", rf"<\s{{0,3}}/\s{{0,3}}(?:{names})\s{{0,3}}>"


_THOUGHT = "think|thinking|thoughts?|reason|reasoning"
# What models write around their reasoning, as patterns of its beginning and end, one family of marks a line.
_MARKS = (
    _tags("think|thinking|thought|reasoning"),  # DeepSeek, Qwen, GLM, ERNIE, Hunyuan, MiniMax, Nemotron, Phi, EXAONE, …
    _tags("think_fast|think_faster|think:opensource"),  # K2, Hunyuan
    _tags(r"(?:seed|mm|ifm|longcat)[:|_]think(?:_fast|_faster)?"),  # Seed-OSS, MiniMax, K2, LongCat
    (r"<\|channel>(?:thought|analysis)?", r"<channel\|>"),  # Gemma 4
    (r"<unused94>", r"<unused95>"),  # MedGemma
    (r"<\|channel\|>\s{0,3}(?:analysis|commentary)<\|message\|>", r"<\|channel\|>\s{0,3}final<\|message\|>"),  # gpt-oss
    (rf"<\|(?:start|begin)_(?:of_)?(?:{_THOUGHT})\|>", rf"<\|end_(?:of_)?(?:{_THOUGHT})\|>"),  # Command A, OpenThinker
    (
        rf"<\|(?:{_THOUGHT})(?:[:_](?:start|begin))?\|>",
        rf"<\|(?:/(?:{_THOUGHT})|(?:{_THOUGHT})[:_]end|content)\|>",
    ),  # Solar
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"\[think\]", r"\[/think\]"),  # Magistral, Ministral
    (r"◁think▷", r"◁/think▷"),  # Kimi-VL
    (r"\[unused16\]", r"\[unused17\]"),  # Pangu
)
# Tags that are words of their own too: they count where they begin a reply, and end what they began.
_WORD_BEGIN, _WORD_END = _tags(
    "reflection|analysis|scratchpad|thoughts|thought_process|reason|chain_of_thought|cot|inner_monologue|"
    "internal_monologue|inner_thoughts|summary|caption"
)
REASONING_BEGINS = re.compile("|".join(begin for begin, _ in _MARKS), re.IGNORECASE)
_END = re.compile("|".join(end for _, end in _MARKS), re.IGNORECASE)
_WORD_MARK = re.compile(f"{_WORD_BEGIN}|{_WORD_END}", re.IGNORECASE)
# Without a group around an end, which would make the search in long reasoning several times as slow.
_MARK = re.compile("|".join((_END.pattern, REASONING_BEGINS.pattern, _WORD_MARK.pattern)), re.IGNORECASE)
# A mark in quotation marks, or within a sentence: "the tag </think> closes".
_QUOTED = re.compile(r"[`'\"“”‘’«»][<\[◁]|[>\]▷][`'\"“”‘’«»]|\w [<\[◁].*[>\]▷] [a-z]", re.DOTALL)
# Reasoning at the beginning of a reply that words mark.
_PLAIN = re.compile(
    # gpt-oss where a backend left its special tokens out, "analysisThe user asks …assistantfinalTea"; where it was cut
    # off, there is no final channel
    r"\s*(?:analysis(?:.*?assistantfinal|(?=[A-Z]).*)|assistantfinal"
    # Gemma 4 without its special tokens: the name of the channel is left
    r"|thought\n+(?=\S)"
    # Granite
    r"|Here(?:'s|’s| is) my thought process:.*?Here(?:'s|’s| is) my response:"
    # HyperCLOVA X
    r"|/think\n.*?<\|im_end\|>\s*<\|im_start\|>assistant\n)",
    re.DOTALL,
)
# What stands around an answer behind reasoning: the tags of an answer, the ends of a turn.
_WRAPPER = (
    r"</?(?:answer|response|output|conclusion|solution)>|<\|(?:START|END)_(?:RESPONSE|TEXT)\|>"
    r"|<\|(?:begin|end)_of_(?:box|solution|answer|sentence|turn)\|>|<\|(?:content|return|end|im_end|eot_id)\|>"
    r"|<\|(?:END_OF_TURN_TOKEN|endoftext)\|>|<turn\|>|<end_of_turn>|</s>|<eos>"
)
_WRAPPED = re.compile(rf"^(?:\s|{_WRAPPER})+|(?:\s|{_WRAPPER})+$", re.IGNORECASE)
# A reply in tags that are reasoning only where an answer follows them.
_ALONE = re.compile(r"\s*<(?:summary|caption)>([^<>]*)</(?:summary|caption)>\s*", re.IGNORECASE)
# What may be a mark of reasoning at the beginning of a reply, with text behind it: three or more letters in brackets.
_OPENING = re.compile(r"\s{0,9}(<[^<>\n]{0,60}>|\[[^\[\]\n]{0,60}\]|◁[^◁▷\n]{0,60}▷|【[^【】\n]{0,60}】)(?=\s{0,9}\S)")
# HTML that formats, and tags of an answer.
_HARMLESS = re.compile(
    r"/|(?:html|body|div|span|strong|code|pre|table|small|mark|font|center|article|section|sub|sup|img|image)\b|h[1-6]\b"
    r"|(?:final[ _]?)?(?:answer|response|output|conclusion|solution|result|choice|option)\b",
    re.IGNORECASE,
)
# What the harnesses' models hand over in place of a response, as they write it.
_FAILURE = re.compile(
    r"\[LMMS_EVAL_REQUEST_FAILED after \d+ retries\] ?[^\n]*"
    r"|\[LMMS_EVAL_BUDGET_EXCEEDED\]"  # the run's limit of tokens
    r"|\[SAFETY_BLOCKED:[^\n]*\]"  # lmms-eval's gemini
    r"|\[GENERATION_FAILED\][^\n]*"
    r"|\[ERROR\] (?:Unknown|Empty prompt|doc lookup failed|No conditioning input)[^\n]*"
    r'|Error: can only concatenate str \(not "NoneType"\) to str'  # lmms-eval's async_openai, of a reply without text
    r"|\[culture-tasks: no response\]"
)
NO_RESPONSE = "[culture-tasks: no response]"
"""What stands in place of a response where a model handed over none."""
# Arabic diacritics, Quranic marks and tatweel (U+0640), which lengthen or vocalise a word and don't change it.
_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")  # of another script than ASCII's
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
    mark with no opening one before it ends a block that the chat template had opened: the text before it is cut too,
    unless the mark is quoted. Tags that are words of their own (``<reflection>``) count only where they begin the
    reply. The channels of gpt-oss are also known without their special tokens, which some backends leave out.

    Examples:
        >>> without_reasoning("<think>Rice? No, tea.</think>Tea")
        'Tea'
        >>> without_reasoning("analysisRice? No, tea.assistantfinalTea")
        'Tea'
    """
    if plain := _PLAIN.match(text):
        text = text[plain.end() :]
    if not any(bracket in text for bracket in "<[◁"):
        return text
    parts: list[str] = []
    position, opened, by_word = 0, -1, False
    for mark in _MARK.finditer(text):
        is_word = bool(_WORD_MARK.fullmatch(mark.group()))
        is_end = bool(_END.fullmatch(mark.group())) or (is_word and "/" in mark.group())
        if opened < 0 and not is_end:
            before = text[position : mark.start()]
            if not is_word or not (before.strip() or any(map(str.strip, parts))):
                parts.append(before)
                opened, by_word = mark.start(), is_word
        elif is_end and not (is_word and not (opened >= 0 and by_word)):
            if opened < 0:
                if _QUOTED.search(text[max(0, mark.start() - 3) : mark.end() + 3]):
                    continue
                parts.clear()
            position, opened = mark.end(), -1
    if opened < 0:
        parts.append(text[position:])
    elif any(part.strip() for part in parts):
        parts.append(text[opened:])
    return "".join(parts)


def answer_in(response: str) -> str:
    """Returns a response without its reasoning blocks; one that has none is returned as it is.

    The white space between a block and the answer goes with the block, and so do the tags around such an answer.

    Examples:
        >>> answer_in("<think>Rice? No, tea.</think>  <answer>Tea</answer>")
        'Tea'
    """
    answer = without_reasoning(response)
    if not answer.strip() and (alone := _ALONE.fullmatch(response)):
        answer = alone.group(1)
    return answer if answer == response else _WRAPPED.sub("", answer)


def opening_mark(response: str) -> str:
    """Returns the mark that a response begins with, such as ``<ponder>``, where it isn't known; else an empty text.

    Formatting, tags of an answer and brackets that hold the whole response are no such marks.

    Examples:
        >>> opening_mark("<ponder>Rice? No, tea.</ponder>Tea")
        '<ponder>'
    """
    opening = _OPENING.match(response) and _OPENING.match(without_reasoning(response))
    if not opening:
        return ""
    name = opening.group(1)[1:-1].strip(" |:")
    has_letters = sum(character.isalpha() for character in name) >= 3
    return opening.group(1) if has_letters and not _HARMLESS.match(name) else ""


class FrequentMark(NamedTuple):
    """A mark that isn't known, and how many responses begin with it."""

    mark: str
    responses: int


def frequent_mark(marks: Mapping[str, int]) -> FrequentMark | None:
    """Returns the unknown mark that three responses, and one in five of all, begin with; None without one.

    ``marks`` are the numbers of responses by :func:`opening_mark`.
    """
    least = max(3, sum(marks.values()) / 5)
    return next((FrequentMark(mark, count) for mark, count in marks.items() if mark and count >= least), None)


def failure_in(response: str) -> str:
    """Returns what a harness's model handed over in place of a response, in one line; empty for a response.

    Examples:
        >>> failure_in("[LMMS_EVAL_REQUEST_FAILED after 5 retries] Error code: 500")
        'LMMS_EVAL_REQUEST_FAILED after 5 retries: Error code: 500'
    """
    text = response.strip()
    is_failure = text.startswith(("[", "Error: ")) and _FAILURE.fullmatch(text) is not None
    return text.strip("[]").removeprefix("culture-tasks: ").replace("] ", ": ", 1) if is_failure else ""


def may_be_cut(characters: int, tokens: int) -> bool:
    """Whether a model that read so many tokens can't have read all of a prompt: eight characters or more for each."""
    return 0 < 8 * tokens <= characters


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


def folded(text: str) -> str:
    """Returns text in which letters and digits that people type differently are alike, in lower case.

    NFKC and casefold; the dot of a Turkic İ goes, Persian yeh and kaf become the Arabic ones, and digits of any script
    those of ASCII; and NFKC again, since this takes some characters apart.

    Examples:
        >>> folded("İNÇİ"), folded("۳ Ｋg")
        ('inçi', '3 kg')
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    if plain.isascii():
        return plain
    plain = plain.replace("i\u0307", "i").replace("\u06cc", "\u064a").replace("\u06a9", "\u0643")
    return unicodedata.normalize("NFKC", _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit.group())), plain))


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

    :func:`folded`; Arabic diacritics and tatweel removed; one token for each character in scripts written without
    spaces (Han, Kana, Thai, …); runs of letters and digits elsewhere; punctuation dropped.

    Examples:
        >>> tokens("Ｋｉｍｃｈｉ, 泡菜 و كِتَاب!")
        ['kimchi', '泡', '菜', 'و', 'كتاب']
    """
    return _TOKEN.findall(_ARABIC_MARKS.sub("", folded(text)))


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
