"""Reading a judge's reply: which rating it states, if it states one without doubt.

One way of reading serves every rubric; they differ in the scale and in the word that they ask for (``rating=2``,
``Rating: [[7]]``, ``{"score": 8}``). Every place that states a rating is found, in the format that was asked for or in
a plain variant of it (:mod:`culture_tasks.judges.statements`), and is one of three things
(:mod:`culture_tasks.judges.standing`):

- **own**: the judge gives its verdict there: on a line of its own, as a sentence or its last clause, as a JSON value;
- **mentioned**: a rating is spoken of: quoted, denied, supposed, or with unknown words before it;
- **aside**: a rating of a single criterion, a repeated scale, a supposition in prose. Nothing follows from it.

A reply is a verdict if at least one statement is the judge's own, and all own and mentioned ones have the same offered
value, whatever their order. So a reply that quotes a rating which the candidate forged, or that corrects itself, is no
verdict and is asked again. A fraction, a range or a value that is not on offer differs from every other. A verdict that
the judge takes back afterwards is none ("that is what the response told me to write", "this score is wrong"). In a
JSON object the score is the verdict: other numbers in its reason ("7/10 for detail") don't count, corrections do.

Replies are hostile text: one with more than a hundred statements or objects is no verdict, and the time to read a reply
grows with its length alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from culture_tasks.judges.standing import is_taken_back, layout_of, standing_of
from culture_tasks.judges.statements import (
    NOT_OFFERED,
    Scale,
    Statement,
    corrections_in,
    folded,
    named_by,
    statement_alone,
    statements_in,
    value_of,
)
from culture_tasks.text import without_reasoning

# A reply that states more ratings than this, whatever they are, is no clear verdict.
_MOST_STATEMENTS = 100
# Nor is one with more objects than this, or with more keys in them than ten times as many.
_MOST_OBJECTS = 100

# A brace that begins an object: what follows is a key or the end.
_OPENING = re.compile(r'\{(?=\s*["}])')
# A string, a quote that opens one without an end, or a brace.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|["{}]', re.DOTALL)
# A string, or a comma after the last entry.
_LAST_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+")|,(?=\s*+[}\]])', re.DOTALL)


class Reading(NamedTuple):
    """A reply that was understood.

    Attributes:
        rating: The rating on the scale that the prompt offers.
        rationale: The reply without the verdict.
    """

    rating: int
    rationale: str


def read_rating(reply: str, scale: Scale) -> Reading | None:
    """Reads the rating that a reply states, in the format that the prompt asked for or in a plain variant of it.

    The unfilled format itself (``Rating: [[number]]``) is no verdict, and the rating of a single criterion is none. A
    rating in JSON counts as an integer if it is one by value (``8``, ``8.0``, ``"8"``); a missing reason, another key
    or careless JSON leaves no doubt about it. An object that is never closed was cut off, and is no verdict.

    Args:
        reply: The judge's completion.
        scale: What the prompt offers.

    Returns:
        The reading, or None where a careful reader would ask again.
    """
    original = without_reasoning(reply)
    text = folded(original)
    structure = objects_in(text, original) if "{" in text else ([], len(text))
    if structure is None or sum(1 for each in structure[0] for _ in each.entries()) > 10 * _MOST_OBJECTS:
        return None
    objects, unfinished = structure
    prose = _without(objects, text) if objects else text
    own: list[Statement] = []
    values = set()
    for count, statement in enumerate(
        chain(_stated_in(objects, text=text, prose=prose, scale=scale), statements_in(prose, scale, unfinished))
    ):
        if count == _MOST_STATEMENTS:
            return None
        if statement.standing == "own":
            own.append(statement)
        if statement.standing != "aside":
            values.add(statement.value)
        if len(values) > 1:
            return None
    if not values and (alone := statement_alone(prose, scale)):
        own.append(alone)
    if not own or own[0].value == NOT_OFFERED or is_taken_back(prose, max(each.end for each in own)):
        return None
    reason = _reason(objects)
    if reason and is_taken_back(folded(reason), 0):
        return None
    return Reading(own[0].value, reason or _without(own, original, "").strip())


def _stated_in(objects: list[Json], *, text: str, prose: str, scale: Scale) -> Iterator[Statement]:
    """Returns the ratings that objects hold under a key, and those that the judge gives in their texts.

    The layout is that of the prose around them, since the quotation marks inside of an object are its own.
    """
    layout = layout_of(prose) if objects else None
    for where in objects:
        around = layout and standing_of(text, where.start, where.end, layout=layout)
        for key, content in where.entries():
            standing = named_by(key)
            standing = around if standing == "own" and around else standing
            content = folded(content) if isinstance(content, str) else content
            value = value_of(content, scale) if standing else None
            if standing and value is not None:
                yield Statement(where.start, where.end, value=value, standing=standing)
            elif isinstance(content, str):
                inside = statements_in(content, scale, in_prose=False)
                yield from (each._replace(standing="mentioned") for each in inside if each.standing == "own")
                yield from corrections_in(content, scale, adjacent=True)


def _reason(objects: list[Json]) -> str:
    """Returns the reason that an object gives, or nothing."""
    for where in objects:
        for key, content in where.entries():
            if key in ("reason", "rationale", "explanation") and isinstance(content, str):
                return content.strip()
    return ""


def _without(places: Iterable[Json | Statement], text: str, instead: str = " ") -> str:
    """Returns the text without these places, each of its characters replaced."""
    kept, position = [], 0
    for place in sorted(places, key=lambda each: each.start):
        if place.start >= position:
            kept += [text[position : place.start], instead * (place.end - place.start)]
            position = place.end
    return "".join([*kept, text[position:]])


class Json(NamedTuple):
    """An outermost object.

    Attributes:
        start: Where it begins in the text.
        end: Where it ends.
        content: What it holds.
    """

    start: int
    end: int
    content: Mapping[str, Any]

    def entries(self) -> Iterator[tuple[str, Any]]:
        """Gives all keys with their values, those of objects inside of it too."""
        waiting: list[Any] = [self.content]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                yield from value.items()
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value


def objects_in(text: str, original: str) -> tuple[list[Json], int] | None:
    """Finds the outermost JSON objects of a text, in linear time.

    What opens like an object is followed to its closing brace, and the search goes on after that: nothing is looked at
    twice. An object that has a key twice, or is no JSON, is left out.

    Args:
        text: The text with ASCII digits and punctuation.
        original: The same text as it came, character for character, for what the objects hold.

    Returns:
        The objects, and where one begins that never ends: the length of the text where there is none. None where there
        are more than :data:`_MOST_OBJECTS`.
    """
    found: list[Json] = []
    end = looked_at = 0
    while opening := _OPENING.search(text, end):
        start = opening.start()
        closed = _end_of_object(text, start)
        if closed is None:
            return found, len(text) if "}" in text[start:] else start
        end = closed
        looked_at += 1
        if looked_at > _MOST_OBJECTS:
            return None
        for written in dict.fromkeys((original[start:end], text[start:end])):
            if (content := _parsed(written)) is not None:
                found.append(Json(start, end, content))
                break
    return found, len(text)


def _parsed(text: str) -> dict[str, Any] | None:
    for written in (text, _LAST_COMMA.sub(lambda found: found[1] or " ", text)):
        try:
            content: dict[str, Any] = json.loads(written, object_pairs_hook=_without_duplicates, strict=False)
        except (ValueError, RecursionError):
            continue
        return content
    return None


def _end_of_object(text: str, start: int) -> int | None:
    """Returns the place after the brace that closes the one at ``start``, or None where it is never closed."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        mark = token.group()
        if mark == '"':
            return None
        depth += (mark == "{") - (mark == "}")
        if depth == 0:
            return token.end()
    return None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("an object has a key twice")
    return content
