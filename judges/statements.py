r"""Finding the places of a reply that state a rating.

A statement is a word for a rating, what links it to a value (``=``, ``:``, ``is``), and the value with what belongs
to it (``/10``, ``out of 10``); or ``[[7]]``, ``\boxed{7}``, ``I give it 7 out of 10``. Whose it is,
:mod:`culture_tasks.judges.standing` tells.

The patterns know the words for it in the languages in which judges answer; digits, brackets and colons of every script
count. Each repetition is bounded, so that reading takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from culture_tasks.judges.standing import (
    CRITERION,
    DENIED,
    LINE_ENDS,
    LOOK_BACK,
    OWN_WORDS,
    POLITE,
    SPOKEN,
    WORD,
    Layout,
    Standing,
    is_supposed,
    layout_of,
    lead_of,
    standing_of,
)

NOT_OFFERED = -1
"""The value of a statement that is no value of the scale: a fraction, a range, another scale's value, …."""

MOST_LABELS = 1_000
"""A text with more words for a rating, or for giving one, than this states none without doubt."""


class Scale(NamedTuple):
    """What a prompt offers.

    Attributes:
        lowest: Lowest rating.
        highest: Highest rating.
        label: The word that the prompt asks for before the rating.
    """

    lowest: int
    highest: int
    label: Literal["rating", "score"]


class Statement(NamedTuple):
    """A place that states a rating.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        value: The rating, or :data:`NOT_OFFERED`.
        standing: Whether it is the judge's ``own``, a rating is ``mentioned``, or nothing follows from it (``aside``).
    """

    start: int
    end: int
    value: int
    standing: Standing


class _Folding(dict[int, str]):
    """Maps each character to one of its kind: compatibility forms and digits of any script to ASCII, to lower case.

    One character stays one character, so that places in the folded text are places in the reply. Marks of direction
    and other invisible characters become spaces.
    """

    def __missing__(self, code: int) -> str:
        mark = chr(code)
        plain = unicodedata.normalize("NFKC", mark)
        if (digit := unicodedata.decimal(mark, None)) is not None:
            plain = str(digit)
        elif unicodedata.category(mark) in ("Cf", "Zs", "Zl", "Zp"):
            plain = " "
        lower = plain.lower()
        self[code] = lower if len(lower) == 1 else mark
        return self[code]


_FOLDING = _Folding({ord("【"): "[", ord("】"): "]", ord("٫"): ".", ord("‑"): "-", ord("−"): "-"})
# Commands of LaTeX that only set type; blanked, and \boxed{ left to be found.
_TYPESETTING = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm|it)?|bf|large|quad|,|;)(?![a-z])")


# Tags of HTML that begin a line, others that only set type, and a model's own marks between its channels.
_HTML = re.compile(
    r"</?(?:(?P<block>p|div|br|h[1-6]|li|ul|ol|tr|table|pre)|b|i|em|strong|span|u|code|td|th)(?: [^<>\n]{0,80})?/?>"
    r"|(?P<channel><\|[a-z_]{1,20}\|>)"
)


# A judge's own role, which begins the reply of a model that writes out the chat format.
_ROLE = re.compile(
    r"[\s*_#\[]{0,20}(?:assistant|judge|evaluator|grader|ai|助手|アシスタント|المساعد|"
    r"asistente)\s?[*_\]]{0,3}[:\n][*_]{0,3}"
)


def folded(reply: str) -> str:
    """Returns the reply in lower case, with ASCII digits and punctuation, no tags and no role before it.

    One character stays one character.
    """
    text = reply.lower() if reply.isascii() else reply.translate(_FOLDING)
    if "<" in text:
        text = _HTML.sub(lambda tag: ("\n" if tag["block"] or tag["channel"] else " ").ljust(len(tag.group())), text)
    if role := _ROLE.match(text):
        text = " " * role.end() + text[role.end() :]
    return _TYPESETTING.sub(lambda found: " " * len(found.group()), text) if "\\" in text else text


# Words for a rating. The first group is what prompts ask for; the last ones count where the judge gives its verdict.
_STRONG = (
    "rating|评分|得分|分数|打分|评级|評分|評級|分數|評価|評点|スコア|採点|点数|التقييم|تقييم|الدرجة|التصنيف|점수|평점|"
    "puntuación|calificación|bewertung|оценка|रेटिंग|अंक|امتیاز"
)
_WEAK = (
    "score|grade|verdict|evaluation|assessment|judge?ment|decision|conclusion|final answer|overall|final|total|"
    "note|nota|总体|总评|结论|النتيجة|結論|判定"
)
# Markdown, quotation marks and closing brackets after a word for a rating.
_DECORATION = r"[ \t*_`'\"‘’“”\])}]{0,6}"
# Adjectives that follow their noun.
_QUALIFIER_AFTER = r"(?:\s(?:النهائي|النهائية|الإجمالي|العام|final|global|general|correcta|adecuada|justa))?"
# What a rating is of, or on which scale, between its word and the link: "(1-10)", "for this response", "out of 10".
_SCOPE = (
    r"(?:(?P<scope>[*_]{0,3}[ \t]?\([^()\n]{1,60}\)|[ \t](?:for|of|on|out of|from)[ \t][^\n:=.!?()\[\]]{1,60}"
    r"(?=[*_]{0,3}(?:[:=]|[ \t]is[ \t]))|[ \t](?:here|aquí|ici|hier)(?=[ \t]))?)"
)
# Words between "is" and the number: "is a solid 7".
_FILLER = (
    r"(?:(?:a|an|the|thus|therefore|hence|clearly|definitely|still|only|just|exactly|set|at|to|solid|strong)\s){0,3}"
)
# What links a word for a rating to its value: a mark, a line break under a heading, a verb, or a mere space.
_LINK = (
    rf"(?:(?P<mark>{_DECORATION}(?::=|={{1,3}}|[:>|→⇒]|->|=>|[-–—](?=\s)|[是为為は]|هو|هي)\s{{0,4}})"
    rf"|(?P<heading>[*_#: \t]{{0,6}}\n(?:[=-]{{2,40}}\n)?\s{{0,4}})"
    rf"|(?P<verb>[*_]{{0,3}}\s{{1,3}}(?:is|was|are|as|of|at|to|equals|(?:should|would|will) be|set to|"
    rf"de|es|est|ist|mit)\s{{1,3}}{_FILLER})"
    rf"|(?P<gap>[*_]{{0,3}}(?:[ \t]|\][ \t]?)))"
)
# What may open before a number: decoration, quotation marks, brackets, \boxed{.
_OPEN = r"(?P<open>[\s*_`'\"‘’“”\[({<$\\「『]{0,10}(?:\\boxed\{[ {]{0,3})?)"
# What makes a number less than a plain value.
_ABOUT = (
    r"(?P<about>[~≈≤≥±>]|(?:about|around|approximately|roughly|nearly|almost|at least|at most|less than|more than|"
    r"under|over|up to|below|above|close to|between|somewhere|not|either|maybe|perhaps|probably)\s)?\s?"
)
_ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORDS = {word: number for number, word in enumerate(_ENGLISH)}
_WORDS |= {word: number for number, word in enumerate("零一二三四五六七八九十")} | {"两": 2, "〇": 0}
_NUMBER_WORDS = "|".join(_WORDS)
# Digits with any decimals or thousands, or a number word.
_NUMBER = rf"(?P<number>[-+]?\d{{1,6}}(?:[.,]\d{{1,6}}){{0,3}}|(?:{_NUMBER_WORDS})(?![^\W_]))"
# What follows a word for a rating, or "[[" and "\\boxed{", up to the number.
_AFTER_LABEL = re.compile(_QUALIFIER_AFTER + _SCOPE + _LINK + _OPEN + _ABOUT + _NUMBER)
_AFTER_BRACKET = re.compile(_OPEN + _ABOUT + _NUMBER)
_BRACKETS = ("[[", "\\boxed{")
_LABELS = (*_BRACKETS, *_STRONG.split("|"), *_WEAK.replace("judge?ment", "judgment|judgement").split("|"))
_ASCII_LABELS = tuple(label for label in _LABELS if label.isascii())
_DIGIT = re.compile(r"[0-9]")
_PRIMARY = frozenset(_STRONG.split("|"))
# "I would give this response a 7", "it deserves 7": a verdict in prose, between giver and number no other number.
_GIVEN = re.compile(
    r"(?=[a-z我])(?:\b|(?=我))"
    r"(?:(?:我(?:会|將|将)?[给給打]|i(?:['’]d| would|['’]ll| will| can| must)? (?:[a-z]{3,12}ly |rather )?"
    r"(?:rate|give|score|assign|award|grade|say|place|put)\b"
    r"|ich (?:bewerte|gebe|vergebe)\b|je (?:donne|mets)\b|(?:le |yo )?(?:doy|otorgo|asigno)\b|dou\b)"
    r"(?P<what>[^.!?\n\d]{0,60}?)|(?:deserves?|earns?|merits?|receives?|gets?|scores?|rates?|warrants?|"
    r"(?:it|this|(?:the |this )?(?:candidate|answer|response))(?:['’]s| is| should be| must be) (?:rated|scored|graded)"
    r"(?: as| at| with)?)"
    rf"(?: only| just)?(?: an?)?(?: (?:rating|score) of)?)[\s*_`'\"“‘\[]{{0,6}}(?<![a-z]){_ABOUT}{_NUMBER}"
)
# "10点満点で7点", "满分10分，给7分".
_OUT_OF_FULL = re.compile(
    rf"(?:(?P<full>\d{{1,3}})[点點]満点(?:で|中|のうち)|满分(?:为|是)?(?P<full_marks>\d{{1,3}})分?[，,])"
    rf"[、,，]?\s?(?:给予|给|得|打)?\s?{_NUMBER}(?=[点點分])"
)
# "Correction: 7", "actually, make that 7": a number that takes the place of an earlier one, and ends its clause.
_CORRECTED = re.compile(
    r"\b(?:correction|actually|scratch that|wait|make (?:it|that)|i mean|on (?:second thought|reflection)|change[ds]? "
    rf"(?:it|this|my \w{{1,12}}) to|revised?(?: to)?)\b(?P<between>[^\n.\d]{{0,30}}?)\b{_NUMBER}"
    r"(?=[\])*_\s]{0,4}(?:[.!;,\n]|$))"
)

# What may follow a number: a unit, brackets, the end of its scale, another number.
_UNIT = re.compile(r"[ \t]?(?:分|点|點|점|points?\b|pts\b|درجات)")
_CLOSE = re.compile(r"[\])}*_`'\"‘’“”$ \t>|\\」』]{0,10}")
# "/10", "out of ten points", "von 10 Punkten".
_OUT_OF = re.compile(
    r"\s?[\[(]?(?:/|out of|of|von|sur|de|من|满分|중)\s?(?:the |a )?[\[(*_{]{0,3}"
    rf"(\d{{1,6}}|(?:{_NUMBER_WORDS})(?![^\W_]))(?:\s?[分点點점]|\s(?:points?|punkten?|puntos|pontos)\b)?"
)
# The rest of a list or a range: "7, 8 or 9", "7 8 9", "7...9", "7-9", "7 or perhaps 8", "1 | rating: 2".
_RANGE = re.compile(
    r"(?:[,،]\s?|、)\d{1,3}(?=[,、]? ?(?:[,،、/]|or\b|and\b|and/or|或|または|أو|o\b|ou\b|oder\b)|[. ]{0,2}(?:\n|$))|"
    r"(?:[ \t]\d{1,2}){1,9}(?=[. ]{0,2}(?:\n|$))|\.{2,3}(?=\d)\d{1,3}|"
    r"(?:,?\s?(?:[-–—~]|\b(?:to|or|and|through|perhaps|maybe|possibly|almost|(?:or )?(?:even|rather))\b|"
    r"至|到|或|または|から|أو|إلى|\|)"
    rf"\s?[\[(*_'\"]{{0,3}}(?P<again>rating\s?[:=]?\s?)?(?P<other>\d{{1,6}}|(?:{_NUMBER_WORDS})(?![^\W_])))"
)
# "on a scale of 1-5", "on the 5-point scale".
_OTHER_SCALE = re.compile(
    r"[^.\n]{0,20}\bscale (?:of|from) \d{1,3}\s?(?:[-–—]|to)\s?(\d{1,3})|[^.\n]{0,12}?(\d{1,3})[- ]point"
)
# "7?", "7 at best", "7 stars", "7 or so", "2/3 of the way": less than a plain value.
_HEDGED = re.compile(
    r"\s?(?:[?±]|\+/?-|(?:of|de|des|del|du|der|von|thirds?|halves|quarters?)\b|的?程度|左右|くらい|ほど|"
    r",?\s?(?:at (?:best|most|least)|or (?:so|more|less|higher|lower|above|below)|ish|stars?)\b)"
)
# What may follow a number that ends its clause, and one that is written as a word.
_CLAUSE_ENDS = re.compile(r"[\])}*_`'\"’” ]{0,6}(?:[.,;:!?)\n(。]|$|out of|/|because|since|as\b|for\b|on\b)")
_WORD_ENDS = re.compile(r"[\])}*_ ]{0,6}(?:[.,;/)]|out of|because|since)")
# Whose rating it is: "(theirs)", "of the reference".
_ANOTHERS = re.compile(r"\b(?:theirs?|self|previous|expected|initial|reference)\b")
_OF_THE_JUDGE = re.compile(r"\b(?:my|i)\b")


def statements_in(
    text: str, scale: Scale, unfinished: int | None = None, *, in_prose: bool = True
) -> Iterator[Statement]:
    """Finds every statement of a rating in a folded text.

    Args:
        text: The text, :func:`folded`.
        scale: What was offered.
        unfinished: Where an object begins that never ends: what stands in it was cut off, and is only mentioned.
        in_prose: Whether numbers that are given without a word for a rating count ("I give it 7").
    """
    layout = layout_of(text)
    spans: list[tuple[int, int]] = []
    last = 0
    labels = _labels_in(text)
    if len(labels) > MOST_LABELS:
        yield Statement(0, 0, value=NOT_OFFERED, standing="mentioned")
        return
    for start, label in labels:
        bracket = label in _BRACKETS
        match = (_AFTER_BRACKET if bracket else _AFTER_LABEL).match(text, start + len(label))
        if match is None or start < last or _inside_a_word(text, start, label):
            continue
        value, last = _value(text, match, scale, closes="]" if label == "[[" else "")
        if value is None:
            continue
        standing = standing_of(text, start, last, layout=layout)
        if not bracket:
            weak = label not in _PRIMARY and label != scale.label
            standing = _as_linked(text, Statement(start, last, value=value, standing=standing), match, weak=weak)
        if unfinished is not None and start >= unfinished and standing == "own":
            standing = "mentioned"
        yield Statement(start, last, value=value, standing=standing)
        spans.append((start, last))
    outside = (text[end:start] for (_, end), (start, _) in pairwise([(0, 0), *spans, (len(text), 0)]))
    if in_prose and any(_DIGIT.search(part) for part in outside):
        yield from _given(text, scale, layout)
        yield from corrections_in(text, scale)


def _labels_in(text: str) -> list[tuple[int, str]]:
    """Finds the words for a rating, in their order; of far too many, the first ones."""
    places: list[tuple[int, str]] = []
    for label in _ASCII_LABELS if text.isascii() else _LABELS:
        at = text.find(label)
        while at >= 0 and len(places) <= MOST_LABELS:
            places.append((at, label))
            at = text.find(label, at + len(label))
    return sorted(places)


def _as_linked(text: str, found: Statement, match: re.Match[str], *, weak: bool) -> Standing:
    """Tells a statement's standing by its wording: of one criterion, in prose, by a word that was not asked for."""
    if match["scope"] and CRITERION.search(match["scope"]):
        return "aside"
    if match["scope"] and _ANOTHERS.search(match["scope"]):
        return "mentioned"
    if weak and (found.standing != "own" or match["gap"] or not _ends_its_clause(text, found.end)):
        return "aside"
    lead, _ = lead_of(text, found.start)
    if match["mark"] and match["mark"].strip() == ">" and not lead.rstrip().endswith("<"):
        return "mentioned"  # no tag, but an inequality
    if match["verb"] and "would" in match["verb"] and not _OF_THE_JUDGE.search(lead):
        return "aside"
    in_prose = match["verb"] or match["gap"]
    if in_prose and found.standing == "mentioned" and is_supposed(text, found.start, found.end):
        return "aside"
    return found.standing


def _given(text: str, scale: Scale, layout: Layout) -> Iterator[Statement]:
    """Finds ratings that are given in prose."""
    for count, match in enumerate(_GIVEN.finditer(text)):
        if count == MOST_LABELS:
            yield Statement(match.start(), match.end(), value=NOT_OFFERED, standing="mentioned")
            return
        value, end = _value(text, match, scale)
        if value is None or not _ends_its_clause(text, end) or CRITERION.search(match["what"] or ""):
            continue
        denied = DENIED.search(POLITE.sub(" ", match["what"] or ""))
        own = match["what"] is not None or standing_of(text, match.start(), end, layout=layout) == "own"
        supposed = is_supposed(text, match.start(), end)
        yield Statement(
            match.start(), end, value=value, standing="own" if own and not supposed and not denied else "aside"
        )
    for match in _OUT_OF_FULL.finditer(text):
        value, end = _value(text, match, scale)
        if value is not None and int(match["full"] or match["full_marks"]) == scale.highest:
            yield Statement(
                match.start(), end, value=value, standing=standing_of(text, match.start(), end, layout=layout)
            )


def corrections_in(text: str, scale: Scale, *, adjacent: bool = False) -> Iterator[Statement]:
    """Finds numbers that take the place of an earlier rating.

    Args:
        text: A folded text.
        scale: What was offered.
        adjacent: Whether no word may stand between ("correction: 7").
    """
    for match in _CORRECTED.finditer(text):
        value, end = _value(text, match, scale)
        distant = WORD.search(match["between"])
        if value is not None and value != NOT_OFFERED and not (adjacent and distant):
            yield Statement(match.start(), end, value=value, standing="mentioned")


def statement_alone(text: str, scale: Scale) -> Statement | None:
    """Reads a number that is all there is, or stands on the first or the last line by itself, and on no other line.

    Args:
        text: A folded text without any other statement.
        scale: What was offered.
    """
    first = before = last = alone = None
    for line in re.finditer(r"[^\n]+", text):
        if not line.group().strip("`*_#->| \t"):
            continue
        first, before, last = first or line, last, line
        if (value := value_of(line.group(), scale)) is None:
            continue
        if alone is not None:
            return None
        alone = Statement(line.start(), line.end(), value=value, standing="own")
    if alone is None or first is None or last is None or alone.start not in (first.start(), last.start()):
        return None
    introduction = before.group().rstrip("* ") if before else ""
    if alone.start == last.start() and introduction.endswith(":") and SPOKEN.search(introduction[-LOOK_BACK:]):
        return None
    return alone


# A number as all there is on a line, in any decoration.
_ALONE = re.compile(
    rf"[\s*_`'\"‘’“”\[({{<$\\「『#>-]{{0,12}}(?:\\boxed\{{[ {{]{{0,3}})?(?P<open>)(?P<about>[~≈±+])?{_NUMBER}"
)


def value_of(content: Any, scale: Scale) -> int | None:
    """Returns the rating that a text or a JSON value is, :data:`NOT_OFFERED`, or None where it is no number at all."""
    if isinstance(content, str):
        match = _ALONE.match(content)
        value, end = _value(content, match, scale) if match else (None, 0)
        return value if value is not None and LINE_ENDS.match(content, end) and "\n" not in content.strip() else None
    if isinstance(content, bool) or not isinstance(content, int | float):
        return None
    return int(content) if content in range(scale.lowest, scale.highest + 1) else NOT_OFFERED


def named_by(key: str) -> Standing | None:
    """Returns what a rating under this key of a JSON object is, or None where the key names no rating."""
    words = WORD.findall(key.lower())
    if not words or not (words[-1] in _PRIMARY or words[-1] in ("score", "verdict", "grade")):
        return None
    if all(word in OWN_WORDS for word in words[:-1]):
        return "own"
    return "aside"


def _inside_a_word(text: str, start: int, label: str) -> bool:
    """Whether a word for a rating is the end of another word, as in ``operating``."""
    return start > 0 and label[0].isascii() and text[start - 1].isalpha() and text[start - 1].isascii()


def _value(text: str, match: re.Match[str], scale: Scale, closes: str = "") -> tuple[int | None, int]:
    """Returns the value of a statement, None for a repeated scale or a number in a list, and where it ends."""
    groups = match.groupdict()  # the patterns of statements have different groups
    opened = groups.get("open") or ""
    bracketed = "[[" in opened or bool(closes)
    plain, end = _plain_value(text, match)
    if plain is None:
        return None, end
    offered = plain in range(scale.lowest, scale.highest + 1) and not groups.get("about")
    if unit := _UNIT.match(text, end):
        end = unit.end()
    elif _is_attached(text, end):
        offered = False
    if span := _RANGE.match(text, _after_closing(text, end)) or _RANGE.match(text, end):
        if span["other"] and not span["again"] and (plain, _count(span["other"])) == (scale.lowest, scale.highest):
            return None, span.end()
        if not (bracketed and text[end : span.end()].lstrip("]*_").startswith((" ", ",", "、"))):
            return NOT_OFFERED, span.end()
    if scaled := _OUT_OF.match(text, end) or _OUT_OF.match(text, _after_closing(text, end)):
        offered = offered and _count(scaled[1]) == scale.highest
        end = scaled.end()
    after = _after_closing(text, end)
    closing = text[match.end() : after]
    unclosed = (bracketed and "]" not in closing) or ("<" in opened and ">" not in closing)
    other = _OTHER_SCALE.match(text, after)
    if _HEDGED.match(text, after) or unclosed or (other and int(other[1] or other[2]) != scale.highest):
        offered = False
    on_a_line_of_its_own = any("\n" in (groups.get(name) or "") for name in ("mark", "heading", "open"))
    if on_a_line_of_its_own and not LINE_ENDS.match(text, after):
        return None, after  # a list begins there
    return (plain if offered else NOT_OFFERED), after if text[end:after].strip() else end


def _plain_value(text: str, match: re.Match[str]) -> tuple[int | None, int]:
    """Returns the number itself, None for a word that only begins like one, and where it ends."""
    number, end = match["number"], match.end()
    if number in _WORDS:
        is_number = LINE_ENDS.match(text, end) or _WORD_ENDS.match(text, end)
        return (_WORDS[number] if is_number else None), end  # "rating: one of the best"
    whole, _, fraction = number.replace(",", ".").partition(".")
    is_whole = fraction in ("", "0", "00") and len(whole) < 3
    return (int(whole) if is_whole else NOT_OFFERED), end - number.endswith((".", ","))


def _after_closing(text: str, end: int) -> int:
    """Returns the place after the brackets, quotation marks and blanks that follow."""
    closed = _CLOSE.match(text, end)
    return closed.end() if closed else end


def _is_attached(text: str, end: int) -> bool:
    """Whether a number goes on in a way that makes it another: ``2nd``, ``7%``, ``7+``, ``1e1``, ``7-``."""
    mark, following = text[end : end + 1], text[end + 1 : end + 2]
    if mark in ("%", "+", "±"):
        return True
    if mark == "-":
        return not following.isalnum() and not following.isspace()
    return mark.isascii() and mark.isalnum()


def _count(text: str) -> int:
    return _WORDS.get(text, -1) if not text.isdigit() else int(text)


def _ends_its_clause(text: str, end: int) -> bool:
    """Whether a number in prose stands for itself, and counts nothing."""
    return bool(_CLAUSE_ENDS.match(text, end))
