"""Fonts for names of any script: what is installed is looked up, nothing is assumed.

matplotlib takes each character from the first family of a list that has it. The list is chosen from the characters
that a report really shows, so that a report in Latin letters looks the same on every machine.
"""

from __future__ import annotations

import functools
import logging
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.font_manager import FontEntry

_logger = logging.getLogger(__name__)

_BASE = "DejaVu Sans"
"""Ships with matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more."""
_PREFERRED = (
    *("Noto Sans", "Noto Sans Arabic", "Noto Naskh Arabic", "Noto Sans Devanagari", "Noto Sans Bengali"),
    *("Noto Sans Tamil", "Noto Sans Thai", "Noto Sans Ethiopic", "Noto Sans Hebrew"),
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR", "Source Han Sans"),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAexGothic", "Lohit Devanagari", "Mukta"),
    *("PingFang SC", "Hiragino Sans", "Geeza Pro", "Kohinoor Devanagari", "Arial Unicode MS"),
    *("Microsoft YaHei", "Yu Gothic", "Meiryo", "SimHei", "Nirmala UI", "Segoe UI", "Malgun Gothic"),
)
"""Families of free fonts, of macOS and of Windows, tried in this order before all others."""
_SHAPES_SINCE = (3, 11)
_JOINING = ("ARABIC", "SYRIAC", "DEVANAGARI", "BENGALI", "TAMIL", "TELUGU", "KHMER", "MYANMAR", "SINHALA", "TIBETAN")


class Fonts(NamedTuple):
    """Families that together draw a text.

    Attributes:
        families: Names of installed families, the preferred first.
        missing: Characters that no installed font has, sorted.
    """

    families: tuple[str, ...]
    missing: str


def choose(texts: Iterable[str]) -> Fonts:
    """Chooses installed families that have every character of the texts, as far as there are any."""
    families = [_BASE]
    needed = _visible(texts) - _characters(_base_file())
    for entry in _candidates() if needed else ():
        found = needed & _characters(entry.fname)
        if found and entry.name not in families:
            families.append(entry.name)
            needed -= found
        if not needed:
            break
    return Fonts(tuple(families), "".join(sorted(needed)))


def warn_of_gaps(texts: Iterable[str], fonts: Fonts) -> None:
    """Logs one warning for characters without a font, and one where this matplotlib can't join letters."""
    if fonts.missing:
        scripts = ", ".join(sorted({_script(character) for character in fonts.missing}))
        _logger.warning(
            "figures: no installed font has %d of the characters in names (%s): PNG and PDF files have the script's "
            "name in their place. Install fonts for them (Debian: fonts-noto-core and fonts-noto-cjk). SVG files are "
            "right wherever the reader has fonts.",
            len(fonts.missing),
            scripts,
        )
    joining = {script for script in map(_script, _visible(texts)) if script in _JOINING}
    if joining and not joins_letters():
        _logger.warning(
            "figures: this matplotlib doesn't join letters (%s): PNG files show them apart. Install matplotlib 3.11 or "
            "newer. SVG files and the HTML page are right.",
            ", ".join(sorted(joining)),
        )


def joins_letters() -> bool:
    """Whether this matplotlib draws letters as their neighbours ask for, as Arabic and Devanagari need it."""
    import matplotlib as mpl

    return mpl.__version_info__[:2] >= _SHAPES_SINCE


def _visible(texts: Iterable[str]) -> set[str]:
    characters = set().union(*texts)
    return {character for character in characters if unicodedata.category(character) not in ("Cc", "Cf", "Zs", "Cn")}


def _script(character: str) -> str:
    return unicodedata.name(character, "unnamed").split(" ")[0]


def _base_file() -> str:
    from matplotlib.font_manager import FontProperties, fontManager

    return str(fontManager.findfont(FontProperties(family=_BASE)))


def _candidates() -> Iterator[FontEntry]:
    """Yields regular upright faces: preferred families first, then all others by name."""
    _know_new_files()
    from matplotlib.font_manager import fontManager

    upright = [
        entry
        for entry in fontManager.ttflist
        if entry.style == "normal" and entry.weight in (400, "normal") and not _is_last_resort(entry.name)
    ]
    order = {name: place for place, name in enumerate(_PREFERRED)}
    yield from sorted(upright, key=lambda entry: (order.get(entry.name, len(order)), entry.name, entry.fname))


def _is_last_resort(family: str) -> bool:
    """Whether a family has a box for every character, and so a letter for none."""
    return "lastresort" in family.replace(" ", "").replace(".", "").casefold()


class InWords:
    """Puts the name of a script in place of letters that no font has, such as ``[Devanagari]``.

    Texts that would look alike then are numbered.
    """

    def __init__(self, missing: str) -> None:
        """Takes the characters that no font has."""
        letter = f"[{re.escape(missing)}]"
        self._lost = re.compile(rf"{letter}(?:\s*{letter})*")  # words of such letters, with the spaces between them
        self._alike: dict[str, list[str]] = {}

    def __call__(self, text: str) -> str:
        """Returns a text that can be drawn."""
        drawn = self._lost.sub(_in_words, text)
        alike = self._alike.setdefault(drawn, [])
        if text not in alike:
            alike.append(text)
        place = alike.index(text) + 1
        return drawn if place == 1 else f"{drawn} ({place})"


def _in_words(found: re.Match[str]) -> str:
    scripts = dict.fromkeys(_script(letter) for letter in found.group() if not letter.isspace())
    return f"[{', '.join(script if len(script) <= _ABBREVIATED else script.title() for script in scripts)}]"


_ABBREVIATED = 3
"""Longest name of a script that is an abbreviation, as CJK is."""


@functools.cache
def _know_new_files() -> None:
    """Adds fonts that were installed after matplotlib wrote its list of fonts."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    known = {entry.fname for entry in fontManager.ttflist}
    for path in sorted(set(findSystemFonts()) - known):
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError, ValueError):
            _logger.debug("figures: matplotlib can't read the font %s", path)


@functools.cache
def _characters(path: str) -> frozenset[str]:
    from matplotlib.ft2font import FT2Font

    if not Path(path).is_file():
        return frozenset()
    try:
        codes = FT2Font(path).get_charmap()
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(map(chr, codes))
