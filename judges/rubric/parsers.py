r"""Reading a judge's reply: which rating it states, if it states one without doubt.

A statement is a word for a rating, what links it to a value (``=``, ``:``,
``is``), and the value with what belongs to it (``/10``, ``out of 10``); or ``[[7]]``, ``\boxed{7}``, ``I give it a 7``;
or the value of a key such as ``score`` in a JSON object. A reply is a verdict if all ratings that it states have the
same offered value and at least one of them is not merely spoken of: quoted, denied, supposed, or said by another.
A fraction, a range or a value that is not on offer differs from every other; a rating of a single criterion counts for
nothing. So a reply that quotes a rating which the candidate forged, or that corrects itself, is no verdict and is asked
again, and so is one that was cut off in an object.

Replies are hostile text: a long one, or one with more than a hundred statements or objects, is no verdict, and every
repetition in a pattern is bounded.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from itertools import filterfalse, islice
from typing import Any, Literal, NamedTuple

from culture_tasks.text import without_reasoning

# The value of a statement that is no value of the scale: a fraction, a range, another scale's value, ….
NOT_OFFERED = -1
_MOST_STATEMENTS = 100


class OfferedScale(NamedTuple):
    """What a prompt offers."""

    lowest: int  # lowest rating
    highest: int  # highest rating
    label: Literal["rating", "score"]  # the word that the prompt asks for before the rating


class Reading(NamedTuple):
    """A reply that was understood."""

    rating: int  # on the scale that the prompt offers
    rationale: str  # the reply without the verdict


class Statement(NamedTuple):
    """A place that states a rating."""

    start: int
    end: int
    value: int  # the rating, or :data:`NOT_OFFERED`
    mentioned: bool = False  # whether the rating is merely spoken of


def read_rating(reply: str, scale: OfferedScale) -> Reading | None:
    """Reads a rating in the format that the prompt asked for or a plain variant; None where one would ask again."""
    original = without_reasoning(reply)
    if plain := _plain_reading(original, scale):
        return plain
    text = folded(original)
    objects = _objects_in(text, original)
    if objects is None:
        return None
    prose = _without(objects, text)
    statements = [statement for json_object in objects for statement in _object_statements(json_object, text, scale)]
    statements += _statements_in(prose, scale)
    if not statements and (alone := _number_alone(prose, scale)):
        statements.append(alone)
    verdicts = [statement for statement in statements if not statement.mentioned]
    values = {statement.value for statement in statements}
    if not verdicts or len(values) > 1 or NOT_OFFERED in values or len(statements) > _MOST_STATEMENTS:
        return None
    reasons = (
        content.strip()
        for json_object in objects
        for key, content in json_object.entries()
        if key in ("reason", "rationale", "explanation") and isinstance(content, str)
    )
    return Reading(verdicts[0].value, next(reasons, "") or _without(verdicts, original, "").strip())


# The form that prompts ask for, as a last line: "rating=2" or "Rating: [[7]]".
_LAST_LINE = re.compile(
    r"(?:rating|score) ?[=:] ?(?:(?P<number>[0-9]{1,2})|\[\[(?P<bracketed>[0-9]{1,2})\]\])", re.IGNORECASE
)
# Reasons of words and plain punctuation, without a digit, a bracket, a quotation mark or another script.
_PLAIN_REASONS = re.compile(r"[-A-Za-z \n.,;:!?'()*#_/]*+")


def _plain_reading(reply: str, scale: OfferedScale) -> Reading | None:
    """Reads most replies, in a tenth of the time: the form asked for after reasons that can't state a rating."""
    reasons, _, line = reply.rstrip().rpartition("\n")
    match = _LAST_LINE.fullmatch(line)
    if match is None or not _PLAIN_REASONS.fullmatch(reasons) or reasons.rstrip(" \n*_").endswith(":"):
        return None
    words = reasons.lower()
    if any(label in words for label in ("rating", "score", "bewertung")):
        return None
    if any(number in words for number in _ENGLISH) and not _NUMBERS.keys().isdisjoint(_WORD.findall(words)):
        return None
    value = int(match["number"] or match["bracketed"])
    return Reading(value, reasons.strip()) if scale.lowest <= value <= scale.highest else None


def _without(places: list[Any], text: str, instead: str = " ") -> str:
    """Returns the text without these places, each of its characters replaced."""
    parts, position = [], 0
    for place in sorted(places, key=lambda place: place.start):
        if place.start >= position:
            parts += [text[position : place.start], instead * (place.end - place.start)]
            position = place.end
    return "".join([*parts, text[position:]])


# Folding


class _Folding(dict[int, str]):
    """Maps each character to one of its kind: compatibility forms and digits of any script to ASCII, to lower case.

    Marks of direction and other invisible characters become spaces.
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
# Commands of LaTeX that only set type; \boxed{ is left.
_TYPESETTING = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm|it)?|bf|large|quad|,|;)(?![a-z])")


def folded(reply: str) -> str:
    """Returns the reply in lower case, with ASCII digits and punctuation, as long as it was."""
    text = reply.lower() if reply.isascii() else reply.translate(_FOLDING)
    return _TYPESETTING.sub(lambda command: " " * len(command.group()), text) if "\\" in text else text


# Objects


class _Object(NamedTuple):
    """An outermost JSON object: where it begins and ends, and its content."""

    start: int
    end: int
    content: dict[str, Any]

    def entries(self) -> Iterator[tuple[str, Any]]:
        """Yields all keys with their values, also of nested objects."""
        waiting: list[Any] = [self.content]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                yield from value.items()
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value


# A brace that begins an object: what follows is a key or the end.
_OPENING = re.compile(r'\{(?=\s{0,40}["}])')


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("an object has a key twice")
    return content


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, strict=False)


def _objects_in(text: str, original: str) -> list[_Object] | None:
    """Finds the outermost JSON objects; None where one was cut off, or where there are too many.

    What opens like an object and is no JSON is left to be read as prose.
    """
    objects: list[_Object] = []
    position = 0
    for _ in range(_MOST_STATEMENTS + 1):
        opening = _OPENING.search(text, position)
        if opening is None:
            return objects
        start = opening.start()
        position = start + 1
        for source in dict.fromkeys((original, text)):
            with suppress(ValueError, RecursionError):
                content, position = _DECODER.raw_decode(source, start)
                objects.append(_Object(start, position, content))
                break
        else:
            if "}" not in text[start:]:
                return None
    return None


def _object_statements(json_object: _Object, text: str, scale: OfferedScale) -> Iterator[Statement]:
    """Yields the ratings under the keys of an object, and corrections in its texts ("the score should be 4")."""
    mentioned = _is_mentioned(text, json_object.start, json_object.end)
    for key, content in json_object.entries():
        words = _WORD.findall(key.lower())
        is_rating = bool(words) and words[-1] in _RATING_KEYS and all(word in _OWN_WORDS for word in words[:-1])
        value = _value_of(content, scale) if is_rating else None
        if value is not None:
            yield Statement(json_object.start, json_object.end, value, mentioned)
        elif isinstance(content, str):
            inside = _statements_in(folded(content), scale)
            yield from (statement._replace(mentioned=True) for statement in inside if not statement.mentioned)


def _value_of(content: Any, scale: OfferedScale) -> int | None:
    """Returns the rating that a JSON value is, :data:`NOT_OFFERED`, or None where it is no number at all."""
    if isinstance(content, str):
        text = folded(content)
        match = _ALONE.match(text)
        value, end = _value(text, match, scale) if match else (None, 0)
        return value if _LINE_ENDS.match(text, end) else None
    if isinstance(content, bool) or not isinstance(content, int | float):
        return None
    return int(content) if content in range(scale.lowest, scale.highest + 1) else NOT_OFFERED


# Prose

_WORD = re.compile(r"[^\W\d_]+")
_RATINGS = (
    "rating|score|评分|得分|分数|打分|评级|評分|評級|分數|評価|評点|スコア|採点|点数|التقييم|تقييم|الدرجة|التصنيف|점수|평점|"
    "puntuación|calificación|bewertung|оценка|रेटिंग|अंक|امتیاز"
)
_RATING_KEYS = frozenset((*_RATINGS.split("|"), "verdict", "grade"))
_OWN_WORDS = frozenset(("final", "overall", "my", "the", "total", "numerical", "semantic", "similarity", "judge"))
_ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: number for number, word in enumerate(_ENGLISH)}
_NUMBERS |= {word: number for number, word in enumerate("零一二三四五六七八九十")}
# Digits with any decimals, or a number word that ends its line or sentence.
_NUMBER = (
    rf"(?P<number>[-+]?\d{{1,6}}(?:[.,]\d{{1,6}}){{0,3}}|"
    rf"(?:{'|'.join(_NUMBERS)})(?=[\])}}*_`'\"’” ]{{0,6}}(?:[.,;/)。\n]|out of|$)))"
)
_OPEN = r"(?P<open>[\s*_`'\"‘’“”\[({<$\\「『]{0,10}(?:\\boxed\{[ {]{0,3})?)"
# What makes a number less than a plain value.
_ABOUT = (
    r"(?P<about>[~≈≤≥±<>]|(?:about|around|approximately|roughly|nearly|almost|at least|at most|less than|more than|"
    r"under|over|up to|below|above|between|not|either|maybe|perhaps|probably)\s)?\s?"
)
# What a rating is of, or on which scale: "(1-10)", "for this response", "out of 10", "final" after its noun.
_SCOPE = (
    r"(?P<scope>[*_]{0,3}[ \t]?\([^()\n]{1,60}\)|[ \t](?:for|of|on|out of|from)[ \t][^\n:=.!?()\[\]]{1,60}"
    r"(?=[*_]{0,3}(?:[:=]|[ \t]is[ \t]))|[ \t](?:here|final|global|general|النهائي|النهائية|الإجمالي|العام))?"
)
# What links the word to the number: a mark, a line break under a heading, a verb, or a mere space.
_LINK = (
    r"(?:(?: is| as follows)?[ \t*_`'\"‘’“”\])}]{0,6}(?::=|={1,3}|[:|→⇒]|(?<=<rating)>|(?<=<score)>|->|=>|"
    r"[-–—](?=\s)|[是为為は]|هو|هي)\s{0,4}"
    r"|(?P<heading>[*_#: \t]{0,6}\n(?:[=-]{2,40}\n)?\s{0,4})"
    r"|(?P<verb>[*_]{0,3}\s{1,3}(?:is|as|of|at|to|equals|(?:should|would|will) be|de|es|est|ist|mit)\s{1,3}"
    r"(?:(?:a|an|the|thus|therefore|clearly|only|just|exactly|set|at|to|solid|strong)\s){0,3})"
    r"|[*_]{0,3}[ \t](?=[\[(*_]{0,4}\d))"
)
_AFTER_LABEL = re.compile(_SCOPE + _LINK + _OPEN + _ABOUT + _NUMBER)
_AFTER_BRACKET = re.compile(_OPEN + _ABOUT + _NUMBER)
_BRACKETS = ("[[", "\\boxed{")
# What a statement begins with: brackets or a word for a rating, in ASCII after no letter. Words may overlap: 得分数.
_FOREIGN_RATINGS = "|".join(filterfalse(str.isascii, _RATINGS.split("|")))
_LABEL = re.compile(rf"(?=((?<![a-z])(?:\[\[|\\boxed\{{|{_RATINGS})|{_FOREIGN_RATINGS}))")
# "I would give this response a 7", "it deserves 7": a verdict in prose, between giver and number no other number.
_GIVEN = re.compile(
    r"(?:\b(?:i(?:['’]d| would|['’]ll| will| must)? (?:[a-z]{3,12}ly )?(?:rate|give|score|assign|award|grade|put)|"
    r"correction|actually|make (?:it|that)|on second thought|ich (?:bewerte|gebe)|je donne|doy|otorgo|asigno|dou|"
    r"(?:answer|response|it|candidate) (?:deserves|earns|merits|warrants|receives|gets))\b|我会?[给給打]|应得)"
    rf"(?P<what>[^.!?\n\d]{{0,60}}?)(?<![a-z])(?P<open>[\s*_`'\"“‘\[]{{0,6}}){_ABOUT}{_NUMBER}"
)
# A number as all there is on a line, in any decoration.
_ALONE = re.compile(
    rf"[\s*_`'\"‘’“”\[({{<$\\「『#>-]{{0,12}}(?P<open>\\boxed\{{[ {{]{{0,3}})?(?P<about>[~≈±+])?{_NUMBER}"
)
_LINE_ENDS = re.compile(r"[\])}*_`'\"‘’“”$ \t>|.!。」』\\]{0,20}(?:\n|$)")

# What may follow a number: a unit, brackets, the end of its scale, another number, a doubt.
_CLOSE = re.compile(r"[\])}*_`'\"‘’“”$ \t>|\\」』]{0,10}")
_OUT_OF = re.compile(
    r"\s?[\[(]?(?:/|out of|von|sur|من|满分|중)\s?(?:the |a )?[\[(*_{]{0,3}"
    r"(?P<full>\d{1,6}|two|three|five|ten)(?:\s?[分点點점]|\s(?:points?|punkten?|puntos|pontos)\b)?"
)
_RANGE = re.compile(
    r"(?:[,،]\s?|、)\d{1,3}(?=[,、]? ?(?:[,،、/]|or\b|and\b|或|または|أو|o\b|ou\b|oder\b|[. ]{0,2}(?:\n|$)))"
    r"|(?:[ \t]\d{1,2}){1,9}[. ]{0,2}(?:\n|$)"
    r"|,?\s?(?:[-–~|]|—(?!\s)|\.{2,3}|\b(?:to|or|and|through|perhaps|maybe|or even)\b|至|到|或|または|から|أو|إلى)"
    r"\s?[\[(*_'\"]{0,3}\d{1,6}"
)
_ATTACHED = re.compile(r"[%+±]|-(?![\s\w])|[a-z]")
_DOUBT = re.compile(
    r"\s?(?:[?±]|\+/?-|(?:of|thirds?|halves|quarters?)\b|的?程度|"
    r",?\s?(?:at (?:best|most|least)|or (?:so|more|less|higher|lower)|ish|stars?)\b)"
)
# What ends the clause of a number in prose.
_CLAUSE_ENDS = re.compile(r"[\])}*_`'\"’” ]{0,6}(?:[.,;:!?)\n(。]|$|out of|/|because|since|as\b|for\b|[分点點])")
# The aspects that the rubrics have commented on, which some judges rate one by one.
_CRITERION = re.compile(
    r"\b(?:accura|depth|relevan|comprehensive|textual|cultural)|准确|深度|相关|正確|深さ|関連|الدقة|العمق|الصلة"
)
# Words after which a rating in the same clause is spoken of: quoted, denied, supposed, or another's.
_SPOKEN_OF = re.compile(
    r"\b(?:sa(?:y|ys|id|ying)|claim\w{0,3}|stat(?:es?|ed|ing)|writ(?:es?|ten|ing)|wrote|contain\w{0,3}|includ\w{1,3}|"
    r"ask\w{0,3}|demand\w{0,3}|requests|instruct\w{0,4}|tell\w{0,3}|told|inject\w{0,4}|quot\w{1,4}|output\w{0,4}|"
    r"return\w{0,3}|reads?|ends? (?:with|in)|begins? with|string|text|itself|another|previous|"
    r"(?:candidate|user|assistant|response|reference|answer)(?:['’]s)?(?: answer| response)?(?=\W{0,4}$)|"
    r"not|never|cannot|nor|no|without|than|refuse\w{0,3}|too|unless|would (?:it )?be|could|might|were|suppose|perhaps|"
    r"maybe|to (?:get|earn|reach|receive|deserve)|between|either|tentative\w{0,2}|provisional|preliminary|draft|"
    r"dice|afirma|según|dit|selon|sagt|laut|говорит)\b|n['’]t\b|"
    r"写道|声称|说|要求|例如|如果|初步|書いて|述べ|例えば|もし|يقول|تقول|يدعي|كتب|يطلب|مثال|لو\b|라고"
)
# Beginnings of a sentence that make all of it a supposition, an example or a first thought.
_SUPPOSED = re.compile(r"\W{0,4}(?:if|had|suppose|provided|for (?:example|instance)|e\.g|initially|at first)\b")
# What follows a rating that is spoken of: "is what it wants", "would be right if", "as instructed".
_SPOKEN_OF_AFTER = re.compile(
    r"[\])}*_`'\"‘’“” ]{0,8},?\s?(?:(?:would|could|might|needs?|requires?|if|unless|said|was|is what|is an?|has no|"
    r"is too)\b|as (?:claimed|requested|demanded|instructed|told)|と書|という)"
)
# A line of text that isn't marked as a quotation.
_UNMARKED = re.compile(r"^[ \t]*+(?!>)\S", re.MULTILINE)
_SENTENCE_ENDS = re.compile(r"[.!?](?<!e\.g.)(?<!i\.e.)(?<!\bvs.)['\"’”)*_\]»`]{0,4}\s|[。！？؟।]")
_CLAUSE = re.compile(r"([,;:(—–→،؛、]|\s-\s)")
_LOOK_BACK = 300


def _statements_in(text: str, scale: OfferedScale) -> list[Statement]:
    """Finds every statement of a rating in a folded text; of far too many labels, a value that isn't offered."""
    labels = list(islice(_LABEL.finditer(text), 10 * _MOST_STATEMENTS + 1))
    if len(labels) > 10 * _MOST_STATEMENTS:
        return [Statement(0, 0, NOT_OFFERED)]
    statements: list[Statement] = []
    position = 0
    for label in labels:
        start, is_bracket = label.start(), label[1] in _BRACKETS
        match = (_AFTER_BRACKET if is_bracket else _AFTER_LABEL).match(text, label.end(1))
        if match is None or start < position:
            continue
        value, end = _value(text, match, scale)
        if value is None:
            continue
        position = end
        mentioned = _is_mentioned(text, start, end)
        if not is_bracket:
            subject = " ".join((*_WORD.findall(_lead(text, start))[-4:], match["scope"] or ""))
            if _CRITERION.search(subject) or (mentioned and match["verb"]):
                continue
        statements.append(Statement(start, end, value, mentioned))
    unlabelled = [
        rating
        for rating in _unlabelled_ratings(text, scale)
        if all(rating.end <= statement.start or statement.end <= rating.start for statement in statements)
    ]
    return statements + unlabelled


def _unlabelled_ratings(text: str, scale: OfferedScale) -> Iterator[Statement]:
    """Yields ratings without a word for one, as in "I give it a 7"; a denied or supposed one says nothing."""
    for match in islice(_GIVEN.finditer(text), _MOST_STATEMENTS):
        value, end = _value(text, match, scale)
        aside = _CRITERION.search(match["what"]) or not _CLAUSE_ENDS.match(text, end)
        if value is not None and not aside and not _is_mentioned(text, match.start(), end):
            yield Statement(match.start(), end, value)


def _number_alone(text: str, scale: OfferedScale) -> Statement | None:
    """Reads a number that is all there is, or alone on the first or the last line, and on no other line."""
    lines = [line for line in re.finditer(r"[^\n]+", text) if line.group().strip("`*_#->| \t")]
    numbers = [(line, value) for line in lines if (value := _value_of(line.group(), scale)) is not None]
    if len(numbers) != 1 or numbers[0][0] not in (lines[0], lines[-1]):
        return None
    [(line, value)] = numbers
    return Statement(line.start(), line.end(), value, _is_mentioned(text, line.start(), line.end()))


def _lead(text: str, start: int) -> str:
    """Returns the beginning of a statement's sentence, at most a line."""
    before = text[max(text.rfind("\n", 0, start) + 1, start - _LOOK_BACK) : start]
    ends = [match.end() for match in _SENTENCE_ENDS.finditer(before)]
    return before[ends[-1] :] if ends else before


def _is_mentioned(text: str, start: int, end: int) -> bool:
    """Whether a rating is merely spoken of: by its clause or what follows it, in a quotation, or introduced as one."""
    if _SPOKEN_OF_AFTER.match(text, end) or _is_quoted(text, start):
        return True
    lead = _lead(text, start)
    if not _has_words(lead):
        fenced = text.count("```", 0, start) % 2 == 1
        above = text[: text.rfind("```", 0, start) if fenced else start - len(lead)].rstrip(' \t\n`*_"“')
        lead = _lead(text, len(above)) if above.endswith(":") else ""
    *before, last = _CLAUSE.split(lead)  # clauses, and the marks between them
    if before and not _has_words(last):
        last = next(filter(_has_words, reversed(before)), "") if before[-1] == ":" else ""
    return bool(_SUPPOSED.match(lead) or _SPOKEN_OF.search(last))


def _has_words(text: str) -> bool:
    """Whether a text has words that belong to no verdict; "my final" has none."""
    return any(word not in _OWN_WORDS for word in _WORD.findall(text))


def _is_quoted(text: str, start: int) -> bool:
    """Whether a place is inside of a quotation that begins before its word, or on a line that is marked as one."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if line.lstrip().startswith(">") and _UNMARKED.search(text):
        return True
    before = text[:start]
    for opening, closing in ('""', "“”", "「」", "『』"):
        is_open = before.count(opening) % 2 if opening == closing else before.count(opening) > before.count(closing)
        if is_open and _WORD.search(before, before.rfind(opening)):
            return True
    return False


def _value(text: str, match: re.Match[str], scale: OfferedScale) -> tuple[int | None, int]:
    """Returns the value of a statement, None for a list that begins there or a repeated scale, and where it ends."""
    number, end = match["number"], match.end()
    integer, _, fraction = number.replace(",", ".").partition(".")
    value = _NUMBERS[number] if number in _NUMBERS else int(integer) if fraction in ("", "0", "00") else NOT_OFFERED
    offered = scale.lowest <= value <= scale.highest and not match["about"]
    if span := _RANGE.match(text, end) or _RANGE.match(text, _after_closing(text, end)):
        is_scale = re.findall(r"\d+", number + span.group()) == [str(scale.lowest), str(scale.highest)]
        return (None if is_scale else NOT_OFFERED), span.end()
    if full := _OUT_OF.match(text, _after_closing(text, end)):
        offered = offered and _NUMBERS.get(full["full"], full["full"]) in (scale.highest, str(scale.highest))
        end = full.end()
    after = _after_closing(text, end)
    closing = text[match.end() : after]
    unclosed = "[[" in text[max(match.start() - 2, 0) : match.start()] + (match["open"] or "") and "]" not in closing
    if _ATTACHED.match(text, end) or _DOUBT.match(text, after) or unclosed:
        offered = False
    before = text[match.start() : match.start("number")]
    if "\n" in before and not _LINE_ENDS.match(text, after):
        return None, after
    return (value if offered else NOT_OFFERED), after if closing.strip() else end


def _after_closing(text: str, end: int) -> int:
    """Returns the place after the brackets, quotation marks and blanks that follow."""
    closing = _CLOSE.match(text, end)
    return closing.end() if closing else end
