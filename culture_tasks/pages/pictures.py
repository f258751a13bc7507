"""How pictures look: colours of Okabe and Ito, each with a marker, a hatch and dashes, so that grey tells them apart.

matplotlib is imported when a picture is drawn, and used without its global state.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from culture_tasks.pages.fonts import choose, warn_of_gaps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from matplotlib.figure import Figure

Dashes = tuple[float, tuple[float, ...]]


class Look(NamedTuple):
    """The look of a series."""

    colour: str
    marker: str
    hatch: str
    dashes: Dashes


_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#4D4D4D")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p", "d", "h")
_HATCHES = ("", "//", "..", r"\\", "xx", "--", "++", "oo")
_DASHES: tuple[Dashes, ...] = (
    *((0, ()), (0, (5, 2)), (0, (1, 1)), (0, (6, 2, 1, 2))),
    *((0, (3, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (2, 3))),
)


def look(place: int) -> Look:
    """Returns the look of a series by its place; the first 91 differ in colour or marker, 56 in colour or hatch."""
    return Look(
        _COLOURS[place % len(_COLOURS)],
        _MARKERS[place % len(_MARKERS)],
        hatch=_HATCHES[place % len(_HATCHES)],
        dashes=_DASHES[place % len(_DASHES)],
    )


@contextmanager
def styled(texts: Iterable[str]) -> Iterator[None]:
    """Sets matplotlib up while pictures are drawn and saved: fonts for their texts, no formulas.

    One warning names the scripts that no installed font has.
    """
    import matplotlib as mpl

    names = list(texts)
    fonts = choose(names)
    warn_of_gaps(names, fonts)
    settings: Any = {
        "text.parse_math": False,
        "font.family": [*fonts.families, "sans-serif"],  # the last one for readers of SVG who have none of the others
        "font.sans-serif": fonts.families[:1],
        "font.size": 9,
        "hatch.linewidth": 0.6,
        "svg.fonttype": "none",
        "svg.hashsalt": "culture-tasks",
        "pdf.fonttype": 42,  # letters stay text, as journals ask
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes a picture as PNG and SVG, the same for the same data, and returns both paths."""
    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    figure.savefig(png, dpi=160)
    figure.savefig(svg, dpi=160, metadata={"Date": None})
    return [png, svg]
