"""Where a reply names an option, in any of the languages in which the benchmarks ask.

A letter or number is a label where it stands alone: behind it the clause ends, or goes on as it does behind an answer
("B because", "B or C", "B is correct"). So "A bowl of rice" and "3 people" name nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from importlib import resources

LABEL, BOTH, TEXT, UNKNOWN = 0x12000, 0x12040, 0x12080, 0x3F
NAMED = "\U00012000-\U000120bf"
"""Letters that take the place of options: 64 for those named by a label, by label and text, and by their text alone.

The last of each 64 is for a label that isn't offered.
"""

LATIN = "A-Za-zÀ-ɏ"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3031-\u30ff\u3400-\u9fff\uac00-\ud7af"

_WORDS: dict[str, str] = {}
"""Patterns of words in the languages in which the benchmarks ask, by name; one may have several lines in the file."""
for _line in (resources.files(__package__) / "option_words.txt").read_text(encoding="utf-8").splitlines():
    _name, _, _part = _line.partition(": ")
    _WORDS[_name] = _WORDS.get(_name, "") + _part

NOT, BE, OR, RIGHT = _WORDS["not"], _WORDS["be"], _WORDS["or"], _WORDS["right"]
CHOOSE, PONDER, NAME = _WORDS["choose"], _WORDS["ponder"], _WORDS["name"]
LEAD = (
    r"\W*(?:(?>\b(?:(?-i:an?)|also|and|best|but|certainly|clearly|correct|das|definitely|der|die|el|final|is|it|la|likely"
    r"|most|my|only|probably|right|sino|so|sondern|that|the|therefore|to be|une?)\b|而是"
    rf"|{NAME}|(?:{RIGHT}|{CHOOSE})[^\W{NAMED}]*|{BE})\W*)*+"
)
"""Words that may stand between a statement, or the beginning of a line, and the choice."""

LIST_LEAD = re.compile(_WORDS["list_lead"], re.IGNORECASE)
"""A line behind which options are discussed, one by one."""

CLAUSE = re.compile(_WORDS["clause"], re.IGNORECASE)
"""The end of a clause."""

CALLED_RIGHT = (
    r"(?:\W{1,4}(?:(?:it|this|that|which) )?(?:is|was|(?:would|should|must) be|appears|looks|seems)(?: [\w-]+ly"
    r"| also| an?| the"
    r"| my| to be| final| single| most| best)* (?:also possible|accurate|answer|appropriate"
    r"|best|choice|correct|right|true)\b"
    r"|\s(?:fits best|makes (?:the )?most sense)"
    r"|[:,.)\s–-]{1,4}(?:correct|right)(?=\s*(?:$|[^\w\s]))"
    rf"|\s*(?:{BE}|[—–]|[が가이]|(?=[^\W\d{LATIN}])|(?=doğru|benar|betul|tepat))(?:(?!{NOT})[^\n.,;:!?。，{NAMED}]){{0,30}}?{RIGHT})"
)
IS_NOT = rf"\W*(?:{BE}|\bis)\s*{NOT}"
"""What denies the option before it: "B (soy milk) is not right"."""

_BEFORE = rf"(?<![^\W{_UNSPACED}])(?<!\w[&'’-])(?<![A-Za-z]\.)"
_AFTER = (
    r"(?:['’][dt][iıuü]r\b| (?:şıkkı|seçeneği)\w*)?(?:[번番号號项項]|[选選][项項])?"
    r"(?:\s?(?:です|でした|だ|である|になります|입니다|이다|이에요|예요|임|ครับ|ค่ะ"
    rf"|है|हैं|ہے|است|ነው|ஆகும்|වේ)(?!\w))?(?![^\W{_UNSPACED}])(?![&'’–-]\w)(?!\.[^\W\d_](?!\w))"
    rf"(?=\s*(?:$|[^\w\s]|而|{OR})|\s+(?:as|based|because|but|due|for|from|given|he"
    rf"|here|i|in|instead|it|not|over|rather|she"
    rf"|since|so|than|the|they|this|unlike|we|you|car|denn|karena|perché|porque|weil|потому)\b|{CALLED_RIGHT})"
)
_EXCEPTION = re.compile(
    rf"(?:\b(?:anything but|bukan|except|instead of|nicht|no|not|over|rather than|than|unlike|не)"
    rf"\W+(?:option\W+)?|不是)[{NAMED}]+"
    rf"(?:,? ?(?:{OR} ?)?[{NAMED}]+)*|[{NAMED}]+(?:ではなく|じゃなく|[가이] 아니라)",
    re.IGNORECASE,
)
"""Options that are named as not the choice: "B, not A"."""

_JOINED = re.compile(
    rf"[{NAMED}]+(?:[\"')\]]*,? ?[\"'(\[]*[{NAMED}]+)*?[\"')\]]*,?\s?{OR}\s?[\"'(\[]*[{NAMED}]+"
    rf"|[{NAMED}]+(?:[\"')\]]*[, ] ?[\"'(\[]*[{NAMED}]+)+",
    re.IGNORECASE,
)
"""Several options in a row."""

_NEW_QUESTION = re.compile(_WORDS["new_question"], re.IGNORECASE)
_TURN_END = re.compile(_WORDS["turn_end"], re.IGNORECASE)
_TAG = re.compile(r"</?\w[^<>\n]{0,40}>|<\|[^<>|\n]{1,40}\|>")


def plain_reply(text: str, options: Mapping[str, str]) -> str:
    """Returns a reply to its end, without marks of HTML, Markdown and LaTeX but for characters of the options."""
    kept = "".join(options.values())
    if "<" not in kept:
        text = _TAG.sub("\n", text)
    return _plain(_NEW_QUESTION.split(text, maxsplit=1)[0], kept)


def turn_of(text: str) -> str:
    """Returns a text to the end of its turn."""
    return _TURN_END.split(re.sub(rf"\A(?:\s|<s>|<bos>|{_TURN_END.pattern})+", "", text), maxsplit=1)[0].strip()


def options_of(names: str) -> set[int]:
    """Returns the numbers of the options that letters of :data:`NAMED` are for."""
    return {ord(name) & UNKNOWN for name in names}


def _plain(text: str, kept: str) -> str:
    """Returns a text without marks of Markdown and LaTeX, but for characters of the options, which are kept."""
    text = unicodedata.normalize("NFKC", text).translate(str.maketrans("‘’“”", "''\"\""))
    text = re.sub(rf"[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff{NAMED}]", "", text)
    text = re.sub(r"\\boxed\s?\{", " answer: {", text)
    text = re.sub(r"\\(?:text\w*|math\w+)(?=\{)|\\[()\[\]]|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)", "", text)
    text = "".join(mark for mark in text if mark not in "*`$#" or mark in kept)
    return re.sub(r"[^\S\n]+", " ", text).strip()


def with_names(text: str, options: Mapping[str, str]) -> str:
    """Returns a text in which one letter of :data:`NAMED` takes the place of each option that is named."""
    kept = "".join(options.values())
    labels = [label.casefold() for label in options]
    forms: dict[str, set[int]] = {}
    whole = [_plain(option, kept).strip(" .").lower() for option in options.values()]
    for texts in (whole, [re.sub(r"^(?:the|an?) ", "", option) for option in whole]):
        known = {*forms, *labels, ""}
        for index, option in enumerate(texts):
            if option not in known:
                forms.setdefault(option, set()).add(index)
    texts_pattern = "|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or r"(?!)"
    small = "|".join(map(re.escape, labels))
    are_numbers = all(label.isdecimal() for label in labels)
    if are_numbers:
        word = r"(?<!\d[-,./:])(?<![-−])\d{1,3}(?!\s?%)(?![-,./:]\d)"
    elif max(map(len, labels)) == 1:  # a small letter is a label by itself, or between marks
        word = (
            rf"(?-i:[A-Z])|(?<=[(\[\"'{{])(?:{small})(?=[)\]\"'}}])|(?<![^\n])(?:{small})(?=\s*$|[.):])"
            rf"|(?<=: )(?:{small})(?=[\s.]*$)|(?<=is )(?:{small})(?=\.)|(?<=option )(?:{small})\b"
        )
    else:
        word = small
    pattern = rf"(?:(?<!\w)|(?<=[는是為为은はือ选選]))(?P<text>{texts_pattern}){_AFTER}|{_BEFORE}(?P<label>{word})"
    pattern += rf"(?:(?:[^\w\n]{{1,4}}?|の)(?P<own>{texts_pattern})(?:{_AFTER}|(?={IS_NOT}))|{_AFTER})"

    def name(match: re.Match[str]) -> str:
        if match["text"]:
            return "".join(chr(TEXT + index) for index in forms[match["text"].lower()])
        label = str(int(match["label"])) if match["label"].isdecimal() else match["label"].casefold()
        index = labels.index(label) if label in labels else UNKNOWN
        if not match["own"]:
            return chr(LABEL + index)
        named = forms[match["own"].lower()]
        if index in named:
            named = {index}
        elif not are_numbers or len(named) > 1:  # a number may be that of a list: "1) No"
            named = named | {index}
        return "".join(chr(BOTH + index) for index in named)

    text = re.sub(pattern, name, text, flags=re.IGNORECASE | re.MULTILINE)

    def join(match: re.Match[str]) -> str:
        names = re.sub(rf"[^{NAMED}]", "", match.group())
        return "" if len(options_of(names)) == len(labels) > 1 else names  # all options are what was offered

    text = re.sub(rf"\([^()\n]*[{NAMED}]{{2,}}[^()\n]*\)", "", _JOINED.sub(join, text))
    return "\n".join(map(_without_questions, _EXCEPTION.sub("✗", text).split("\n")))


def _without_questions(line: str) -> str:
    sentences = re.findall(r"[^.!?。！？]*[.!?。！？]*", line)
    return "".join(sentence for sentence in sentences if not sentence.endswith(("?", "？"))).strip()
