"""Reading a judge's reply that should be one JSON object.

The rules of :mod:`culture_tasks.judges.parsers` hold here too: the last verdict wins, and a last one that is malformed
or not on offer makes the reply unparsable. What stands inside an object, such as a verdict that the judge quotes in its
reason, is never a verdict of its own, even where the quoting breaks the JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any

from culture_tasks.judges.parsers import Reading
from culture_tasks.text import without_reasoning

_OPENING = re.compile(r'\{(?=\s*["}])')
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|["{}]', re.DOTALL)
_KEYS = {"score", "reason"}
_HIGHEST = 10


def read_crosscult(reply: str) -> Reading | None:
    """Reads ``{"score": n, "reason": "…"}`` with an integer n from 0 to 10 (CrossCult-KIBench, Figure 10).

    Text or a code fence around the object is passed over. The object must have exactly the two keys, each once; the
    score must be a JSON integer (neither a string, a fraction nor a truth value), and the reason must not be blank.

    Args:
        reply: The judge's completion.

    Returns:
        The reading, or None if the last object in the reply is not such a verdict, is cut off, or there is none.
    """
    content = _last_object(without_reasoning(reply))
    if content is None or content.keys() != _KEYS:
        return None
    score, reason = content["score"], content["reason"]
    if type(score) is not int or not 0 <= score <= _HIGHEST:
        return None
    return Reading(score, reason.strip()) if isinstance(reason, str) and reason.strip() else None


def _last_object(text: str) -> dict[str, Any] | None:
    """Returns the last outermost JSON object, or None where it is malformed, cut off or missing; in linear time.

    What opens like an object is followed to its closing brace, and the search goes on after that: nothing is looked at
    twice.
    """
    start, end = 0, 0
    while opening := _OPENING.search(text, end):
        closed = _end_of_object(text, opening.start())
        if closed is None:
            return None
        start, end = opening.start(), closed
    return _parsed(text[start:end])


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


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        return None
    return content


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("an object has a key twice")
    return content
