"""Finding the JSON objects in a judge's reply.

What stands inside an object, such as a verdict that the judge quotes in its reason, is told apart from the object's own
keys by the object's structure. An object that can't be parsed is left to be read as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

MOST_OBJECTS = 100
"""A reply with more objects than this, or with more keys in them than ten times as many, is no verdict."""

# A brace that begins an object: what follows is a key or the end.
_OPENING = re.compile(r'\{(?=\s*["}])')
# A string, a quote that opens one without an end, or a brace.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|["{}]', re.DOTALL)
# A string, or a comma after the last entry.
_LAST_COMMA = re.compile(r'("(?:[^"\\]++|\\.)*+")|,(?=\s*+[}\]])', re.DOTALL)


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
        are more than :data:`MOST_OBJECTS`.
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
        if looked_at > MOST_OBJECTS:
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
