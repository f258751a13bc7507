"""Fonts for names of any script: matplotlib takes each letter from the first family of a list that has it.

The list is chosen from the letters that a figure shows, so figures in Latin letters look the same on every machine.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

_logger = logging.getLogger(__name__)

_BASE = "DejaVu Sans"
"""Part of matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more."""
_FAMILIES = (
    *("Noto Sans", "Noto Sans Arabic", "Noto Naskh Arabic", "Noto Sans Devanagari", "Noto Sans Bengali"),
    *("Noto Sans Tamil", "Noto Sans Thai", "Noto Sans Ethiopic", "Noto Sans Hebrew"),
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR", "Source Han Sans"),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "IPAexGothic", "Lohit Devanagari", "Mukta"),
    *("PingFang SC", "Hiragino Sans", "Geeza Pro", "Kohinoor Devanagari", "Arial Unicode MS"),
    *("Microsoft YaHei", "Yu Gothic", "Meiryo", "SimHei", "Nirmala UI", "Segoe UI", "Malgun Gothic"),
)
"""Families of free fonts, of macOS and of Windows, in order of preference."""
_JOINING = ("ARABIC", "SYRIAC", "DEVANAGARI", "BENGALI", "TAMIL", "TELUGU", "KHMER", "MYANMAR", "SINHALA", "TIBETAN")


class Fonts(NamedTuple):
    """Installed families that together draw a text, in order of preference, and the letters that none has, sorted."""

    families: tuple[str, ...]
    missing: str


def choose(texts: Iterable[str]) -> Fonts:
    """Chooses installed families that have every letter of the texts, as far as there are any."""
    families = [_BASE]
    needed = _letters(texts) - _letters_of(_BASE)
    for family in _FAMILIES if needed else ():
        if needed & _letters_of(family):
            families.append(family)
            needed -= _letters_of(family)
    return Fonts(tuple(families), "".join(sorted(needed)))


def warn_of_gaps(texts: Iterable[str], fonts: Fonts) -> None:
    """Logs one warning for letters without a font, and one where this matplotlib can't join letters."""
    if fonts.missing:
        _logger.warning(
            "figures: no installed font has %d of the characters in names (%s): PNG and PDF files have boxes in their "
            "place. Install fonts for them (Debian: fonts-noto-core and fonts-noto-cjk). SVG files are right wherever "
            "the reader has fonts.",
            len(fonts.missing),
            ", ".join(sorted(set(map(_script, fonts.missing)))),
        )
    joining = set(map(_script, _letters(texts))) & set(_JOINING)
    if joining and not joins_letters():
        _logger.warning(
            "figures: this matplotlib doesn't join letters (%s): PNG files show them apart. Install matplotlib 3.11 or "
            "newer. SVG files and the HTML page are right.",
            ", ".join(sorted(joining)),
        )


def joins_letters() -> bool:
    """Whether this matplotlib joins letters as Arabic and Devanagari need it."""
    import matplotlib as mpl

    return mpl.__version_info__[:2] >= (3, 11)


def _letters(texts: Iterable[str]) -> set[str]:
    return {mark for mark in set().union(*texts) if unicodedata.category(mark) not in ("Cc", "Cf", "Zs", "Cn")}


def _script(letter: str) -> str:
    return unicodedata.name(letter, "unnamed").split(" ")[0]


@cache
def _letters_of(family: str) -> frozenset[str]:
    """Returns the letters of a family; none where it isn't installed."""
    from matplotlib.font_manager import findfont, get_font

    if family != _BASE and family not in _installed():
        return frozenset()
    return frozenset(map(chr, get_font(findfont(family)).get_charmap()))


@cache
def _installed() -> frozenset[str]:
    """Returns the names of all families, those of files that are newer than matplotlib's list among them."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    for path in sorted(set(findSystemFonts()) - {entry.fname for entry in fontManager.ttflist}):
        with suppress(OSError, RuntimeError, ValueError):  # a font that matplotlib can't read
            fontManager.addfont(path)
    return frozenset(fontManager.get_font_names())
