"""Names from data as text of a picture: one line, no controls, in the direction of its own script."""

from __future__ import annotations

import re
import unicodedata

from culture_tasks.text import storable

_BIDI_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that set, isolate or override the direction of writing."""
_FOR_XML = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")
_LONGEST = 48
_LEFT_TO_RIGHT, _ISOLATE, _END_ISOLATE = "\u200e", "\u2068", "\u2069"
_JOINERS = "\u200c\u200d "


def cleaned(text: str) -> str:
    """Returns a text from data as one line: white space and controls are single spaces, direction marks are dropped.

    A text with right-to-left letters is isolated, so that the text beside it stays in place.
    """
    drawable = storable(text).translate(_FOR_XML)
    spaced = "".join(" " if unicodedata.category(mark) in ("Cc", "Zl", "Zp") else mark for mark in drawable)
    line = " ".join(_BIDI_CONTROLS.sub("", spaced).split())
    return f"{_ISOLATE}{line}{_END_ISOLATE}" if right_to_left(line) else line


def shown(text: str, longest: int = _LONGEST) -> str:
    """Returns a text of :func:`cleaned` parts as it is drawn: cut in its middle, and left to right as a whole.

    Names often differ at their ends, so both ends are kept. An empty text is drawn as a dash.
    """
    if len(text) > longest:
        first = (longest - 1) * 3 // 5
        last = len(text) - (longest - 1 - first)
        while last < len(text) and unicodedata.combining(text[last]):
            last += 1
        text = f"{text[:first].rstrip(_JOINERS)}…{text[last:].lstrip(_JOINERS)}"
        open_ends = text.count(_ISOLATE) - text.count(_END_ISOLATE)
        text = _ISOLATE * -open_ends + text + _END_ISOLATE * open_ends
    return _LEFT_TO_RIGHT + text if right_to_left(text) else text or "–"


def right_to_left(text: str) -> bool:
    """Tells whether the text has letters of a script that is written from right to left."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
