r"""The reader of the option that a reply chooses, in any of the languages in which the benchmarks ask.

A reply names an option by its label (a letter, a number, or a word such as ``True``) or by its text. It chooses it by

* being the option's text, before anything is stripped;
* a statement, a clause that calls it the answer without denial or doubt: ``The answer is B``, ``B is correct``,
  ``{"answer_choice": "B"}``, ``\boxed{B}``, ``正确答案是B``;
* a line that is the option, whatever other lines explain: ``B``, ``B. soy milk``, ``Jawaban: B``;
* a line that begins with it, where that is no item of a list: ``No, he was rude``;
* being one short line without denial that names it alone, at its end: ``Definitely B.``.

Lines that name options in their order are a list and choose none. A reply ends with its turn, or where a new question
begins. Two different choices are none; nor is a label that isn't offered, or a letter with another option's text.
Of 1,455 replies of five models to CulturalBench Easy and WorldCuisines, 1,303 are read: 477 by their lines alone, 10 by
beginnings, 1 by a statement. Of 1,229 written in 40 languages, these are 372, 77 and 35; single lines are 51.

A letter or number is a label where it stands alone: behind it the clause ends, or goes on as it does behind an answer
("B because", "B or C", "B is correct"). So "A bowl of rice" and "3 people" name nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from importlib import resources

from culture_tasks.text import answer_in

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

_ANSWER = re.compile(f"{RIGHT}|{CHOOSE}", re.IGNORECASE)
_SAY = r"going? with|hence|I(?:['’ ]\w+){0,2} (?:believe|say|think)|leav(?:es|ing)|opt for|so|therefore|thus"
_LINK = re.compile(rf"(?:{BE}|[:=—–]|\b(?:answer|choose|pick|select|{_SAY})\b){LEAD}\Z", re.IGNORECASE)
_SUBJECT = re.compile(
    rf"\b(?:best|claim|I|it|letter|one|option|right|statement|that|this|{_SAY})\b|^\W*(?:is|es|ist)\b", re.IGNORECASE
)
_DENIED = re.compile(rf"{NOT}|\bor (?:\w+ )?\Z", re.IGNORECASE)
_IS_CALLED_RIGHT = re.compile(CALLED_RIGHT, re.IGNORECASE)
_OPTION = re.compile(f"[{NAMED}]+")
_ITEM = re.compile(rf"\n|(?<=[.;!]) (?=(?:{NAME} )?[{chr(BOTH)}-{chr(TEXT - 1)}])", re.IGNORECASE)
_IS_NOT = re.compile(rf"(?:\s*\(?[^()\n]*\))?{IS_NOT}", re.IGNORECASE)
_FIRST = re.compile(rf"(?:\W*\d+[.)] )?(?P<lead>{LEAD})(?P<option>[{NAMED}]+)(?P<rest>.*)", re.IGNORECASE)


def read_choice(reply: str, options: Mapping[str, str]) -> str | None:
    """Returns the label of the option that a reply chooses, or None where that isn't certain.

    Args:
        reply: The reply, which may hold reasoning blocks.
        options: Texts of the options by label, such as ``{"A": "tea", "B": "milk"}``; an empty text is none.

    Examples:
        >>> drinks = {"A": "tea", "B": "soy milk"}
        >>> read_choice("{'answer_choice': 'B'}", drinks), read_choice("A cup of tea", drinks)
        ('B', None)
        >>> read_choice("This is false.", {"True": "", "False": ""})
        'False'
    """
    text = re.sub(rf"\A(?:\s|<s>|<bos>|{_TURN_END.pattern})+", "", answer_in(reply))
    text = _TURN_END.split(text, maxsplit=1)[0].strip()
    same = [label for label, option in options.items() if option.strip().casefold() == text.casefold() != ""]
    if len(same) == 1 and text.casefold() not in map(str.casefold, options):
        return same[0]
    kept, labels = "".join(options.values()), list(options)
    text = _NEW_QUESTION.split(text if "<" in kept else _TAG.sub("\n", text), maxsplit=1)[0]
    text = _plain(text, kept)
    chosen = _chosen(_with_names(text, options), text, labels)
    return labels[chosen.pop()] if len(chosen) == 1 and UNKNOWN not in chosen else None


def _chosen(text: str, plain: str, labels: Sequence[str]) -> set[int]:
    """Returns the options that a reply chooses."""
    chosen: set[int] = set()
    items: list[tuple[int, bool, bool]] = []  # an option that begins a line; is it a mere label; may it be chosen
    lines = [line for line in map(str.strip, _ITEM.split(text)) if line]
    for before, line in zip(["", *lines], lines, strict=False):
        chosen |= _stated(line)
        *others, last = re.split(r"[.!。！]+", line.rstrip(".!。！ "))
        if others and line[-1] in ".!。)" and re.fullmatch(rf"\W*[{NAMED}]+\W*", last):
            chosen |= _options_of("".join(_OPTION.findall(last)))
        name, _, value = line.partition(":")
        match = _FIRST.match(value)
        if match and not _OPTION.search(name) and not _DENIED.search(name) and not re.search(r"\w", match["rest"]):
            chosen |= _options_of(match["option"])
        elif match := _FIRST.match(line):
            options, rest = _options_of(match["option"]), match["rest"]
            is_word = match["option"] >= chr(TEXT) or len(labels[0]) > 1
            is_list = LIST_LEAD.match(before) is not None
            if not re.search(r"\w", rest):
                if len(options) > 1 or not re.fullmatch(rf"\W*{NAME}?\W*", match["lead"], re.IGNORECASE):
                    chosen |= options
                else:
                    is_lone = match["option"] < chr(BOTH)
                    items.append((min(options), is_lone, is_lone or is_word or not is_list))
            elif len(options) == 1 and not _IS_NOT.match(rest):
                has_text = chr(BOTH) <= match["option"] < chr(TEXT)
                is_first = not items and not chosen and (not before or (before.endswith(":") and not is_list))
                is_item = not is_word and re.match(r"\W*[.:)\]-]", rest) is not None
                may_be = is_first and (has_text or not labels[0].isdecimal()) if is_item else True
                items.append(
                    (min(options), False, may_be and (has_text or not re.match(rf"\s*{OR}", rest, re.IGNORECASE)))
                )
    runs: list[list[tuple[int, bool, bool]]] = []
    for item in items:
        last = runs[-1][-1] if runs else item
        is_next = item[0] == last[0] + 1 or (item[0] > last[0] and not item[1])
        if is_next and (not last[1] or len(runs[-1]) > 1):
            runs[-1].append(item)
        else:
            runs.append([item])
    chosen |= {run[0][0] for run in runs if len(run) == 1 and run[0][2]}
    return chosen if chosen or items or len(lines) != 1 else _only(lines[0], plain, labels)


def _stated(line: str) -> set[int]:
    """Returns the options that a line states to be the answer."""
    stated: set[int] = set()
    start = 0
    for clause in [*CLAUSE.finditer(line), None]:
        end = clause.start() if clause else len(line)
        for option in _OPTION.finditer(line, start, end):
            before, after = line[max(start, option.start() - 120) : option.start()], line[option.end() : end]
            is_linked = _LINK.search(before) is not None
            is_answer = _ANSWER.search(before) is not None and (is_linked or option.group() < chr(TEXT))
            is_right = len(_options_of(option.group())) == 1 and _IS_CALLED_RIGHT.match(line, option.end()) is not None
            is_stated = is_answer or is_right or (is_linked and _SUBJECT.search(before) is not None)
            if is_stated and not _DENIED.search(before) and not re.search(r"\bif\b", after, re.IGNORECASE):
                stated |= _options_of(option.group()) | ({UNKNOWN} if re.match(r"\W*or\b", after) else set())
        start = clause.end() if clause else end
    return stated


def _only(line: str, plain: str, labels: Sequence[str]) -> set[int]:
    """Returns the one option that a short line names, at its end or in a script other than Latin."""
    if len(line) > 150 or re.search(f"{NOT}|{PONDER}", line, re.IGNORECASE) or "?" in plain:
        return set()
    if re.fullmatch(rf"[A-Za-z]+ [{NAMED}]\W*", line) and not _ANSWER.search(line):  # "Vitamin D"
        return set()
    names = "".join(_OPTION.findall(line))
    if len(_options_of(names)) == 1 and re.search(rf"[{NAMED}]\W*\Z", line):
        is_linked = _LINK.search(line[: line.rindex(names[-1])])
        return _options_of(names) if names[0] < chr(TEXT) or is_linked else set()
    alone = set(re.findall(rf"(?<![{LATIN}\d'’-])[A-Z](?![{LATIN}\d'’-])", plain))
    if len(alone) == 1 and len(labels[0]) == 1 and not re.search(f"[{LATIN}]{{2}}", plain):
        return {labels.index(label) if label in labels else UNKNOWN for label in alone}
    return set()


# Where a reply names an option


def _options_of(names: str) -> set[int]:
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


def _with_names(text: str, options: Mapping[str, str]) -> str:
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
        return "" if len(_options_of(names)) == len(labels) > 1 else names  # all options are what was offered

    text = re.sub(rf"\([^()\n]*[{NAMED}]{{2,}}[^()\n]*\)", "", _JOINED.sub(join, text))
    return "\n".join(map(_without_questions, _EXCEPTION.sub("✗", text).split("\n")))


def _without_questions(line: str) -> str:
    sentences = re.findall(r"[^.!?。！？]*[.!?。！？]*", line)
    return "".join(sentence for sentence in sentences if not sentence.endswith(("?", "？"))).strip()
