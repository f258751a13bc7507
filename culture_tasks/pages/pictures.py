"""How pictures look: names from data, fonts for names of any script, and the colours and marks of series.

A name is drawn on one line, without controls, in the direction of its own script. matplotlib takes each letter from the
first family of a list that has it, and Latin ones from its own, so they look the same on every machine. The colours are
those of Okabe and Ito, each with a marker and dashes, so that grey tells them apart. matplotlib is imported when a
picture is drawn, and used without its global state.
"""

from __future__ import annotations

import logging
import re
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from culture_tasks.text import inert, storable

_logger = logging.getLogger(__name__)

# Names

_FOR_XML = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")
_LONGEST_NAME = 48
_LEFT_TO_RIGHT, _ISOLATE, _END_ISOLATE = "\u200e", "\u2068", "\u2069"
_JOINERS = "\u200c\u200d "


def cleaned(text: str) -> str:
    """Returns a text from data as one line: white space and controls are single spaces, direction marks are dropped.

    A text with right-to-left letters is isolated, so that the text beside it stays in place.
    """
    drawable = storable(text).translate(_FOR_XML)
    spaced = "".join(" " if unicodedata.category(mark) in ("Cc", "Zl", "Zp") else mark for mark in drawable)
    line = " ".join(inert(spaced).split())
    return f"{_ISOLATE}{line}{_END_ISOLATE}" if is_right_to_left(line) else line


def shown(text: str, longest: int = _LONGEST_NAME) -> str:
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
    return _LEFT_TO_RIGHT + text if is_right_to_left(text) else text or "–"


def is_right_to_left(text: str) -> bool:
    """Tells whether the text has letters of a script that is written from right to left."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


# Fonts

_BASE = "DejaVu Sans"
"""Part of matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more."""
_MISSING = "Glyph .* missing from"
"""How matplotlib warns of a letter that no font has."""
_FAMILIES = (
    *("Noto Sans", "Noto Sans Arabic", "Noto Naskh Arabic", "Noto Sans Devanagari", "Noto Sans Bengali"),
    *("Noto Sans Tamil", "Noto Sans Thai", "Noto Sans Ethiopic", "Noto Sans Hebrew"),
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR", "Source Han Sans"),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "IPAexGothic", "Lohit Devanagari", "Mukta"),
    *("PingFang SC", "Hiragino Sans", "Geeza Pro", "Kohinoor Devanagari", "Arial Unicode MS"),
    *("Microsoft YaHei", "Yu Gothic", "Meiryo", "SimHei", "Nirmala UI", "Segoe UI", "Malgun Gothic"),
)
"""Families of free fonts, of macOS and of Windows, in order of preference."""


@cache
def _installed() -> tuple[str, ...]:
    from matplotlib.font_manager import fontManager

    names = set(fontManager.get_font_names())
    return (_BASE, *(family for family in _FAMILIES if family in names))


# Colours and marks

Dashes = tuple[float, tuple[float, ...]]


class Look(NamedTuple):
    """The look of a series."""

    colour: str
    marker: str
    dashes: Dashes


_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#4D4D4D")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p", "d", "h")
_DASHES: tuple[Dashes, ...] = (
    *((0, ()), (0, (5, 2)), (0, (1, 1)), (0, (6, 2, 1, 2))),
    *((0, (3, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (2, 3))),
)


def look(place: int) -> Look:
    """Returns the look of a series by its place; the first 91 differ in colour or marker."""
    return Look(_COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)], _DASHES[place % len(_DASHES)])


@contextmanager
def styled() -> Iterator[None]:
    """Sets matplotlib up while pictures are drawn and saved: fonts of many scripts, no formulas.

    One warning says how many letters no installed font has.
    """
    import matplotlib as mpl

    settings: Any = {
        "text.parse_math": False,
        "font.family": [*_installed(), "sans-serif"],  # the last one for readers of SVG who have none of the others
        "font.sans-serif": [_BASE],
        "font.size": 9,
        "svg.fonttype": "none",
        "svg.hashsalt": "culture-tasks",
        "pdf.fonttype": 42,  # letters stay text, as journals ask
    }
    with mpl.rc_context(settings), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message=_MISSING, category=UserWarning)
        yield
    missing = {str(each.message).split()[1] for each in caught if re.match(_MISSING, str(each.message))}
    if missing:
        _logger.warning(
            "figures: no installed font has %d of the characters in names: PNG and PDF files have boxes in their "
            "place. Install fonts for them (Debian: fonts-noto-core and fonts-noto-cjk). SVG files are right wherever "
            "the reader has fonts.",
            len(missing),
        )
