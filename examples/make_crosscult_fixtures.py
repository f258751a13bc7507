"""Draws the pictures of the synthetic CrossCult cases again: ``python examples/make_crosscult_fixtures.py``.

Two pictures for each scenario, a few flat shapes each, named as in ``examples/data/crosscult/cases.jsonl``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from make_fixtures import DATA, Picture, Shape, write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _shape(kind: str, colour: str, *coordinates: int) -> Shape:
    return Shape(kind, coordinates, colour)  # type: ignore[arg-type]


def _clock(case: str, *, square: bool) -> list[Shape]:
    frame = "rectangle" if square else "ellipse"
    hands = [_shape("rectangle", "black", 62, 26, 66, 50), _shape("rectangle", "black", 64, 46, 86, 50)]
    return [_shape(frame, case, 24, 8, 104, 88), _shape(frame, "white", 32, 16, 96, 80), *hands]


def _glass(x: int, wine: str) -> list[Shape]:
    stem = [_shape("rectangle", "gray", x + 13, 56, x + 17, 86), _shape("rectangle", "gray", x + 4, 84, x + 26, 88)]
    return [*stem, _shape("ellipse", "lightgray", x, 16, x + 30, 60), _shape("ellipse", wine, x + 3, 30, x + 27, 58)]


def _bottle(x: int, colour: str) -> list[Shape]:
    return [_shape("rectangle", colour, x, 36, x + 22, 90), _shape("rectangle", colour, x + 7, 8, x + 15, 36)]


def _paper(lines: int, x: int) -> list[Shape]:
    rows = [_shape("rectangle", "dimgray", x + 6, 16 + 10 * row, x + 38, 19 + 10 * row) for row in range(lines)]
    return [_shape("rectangle", "white", x, 8, x + 44, 90), *rows]


def _shoe(x: int, y: int, colour: str) -> list[Shape]:
    return [_shape("rectangle", colour, x, y, x + 18, y + 24), _shape("ellipse", colour, x, y + 10, x + 44, y + 28)]


def _lantern(x: int, colour: str) -> list[Shape]:
    ends = [_shape("rectangle", "gold", x + 8, 24, x + 28, 30), _shape("rectangle", "gold", x + 8, 68, x + 28, 74)]
    return [_shape("ellipse", colour, x, 26, x + 36, 72), *ends]


def _people(colours: Sequence[str], gap: int) -> list[Shape]:
    heads = [_shape("ellipse", "peru", 8 + gap * n, 24, 24 + gap * n, 42) for n in range(len(colours))]
    bodies = [_shape("rectangle", colour, 6 + gap * n, 42, 26 + gap * n, 90) for n, colour in enumerate(colours)]
    return heads + bodies


def _cups(colour: str) -> list[Shape]:
    return [_shape("rectangle", colour, x, y, x + 28, y + 26) for x in (26, 74) for y in (14, 56)]


def _flowers(colour: str) -> list[Shape]:
    stems = [_shape("polygon", "green", 64, 94, x + 8, 40, x + 12, 40) for x in (12, 40, 68, 96)]
    return stems + [_shape("ellipse", colour, x, 20, x + 22, 42) for x in (12, 40, 68, 96)]


def _grill(colour: str, *, round_pieces: bool) -> list[Shape]:
    kind = "ellipse" if round_pieces else "rectangle"
    bars = [_shape("rectangle", "black", 8, y, 120, y + 4) for y in (20, 44, 68)]
    return bars + [_shape(kind, colour, x, 14, x + 18, 82) for x in (18, 50, 82)]


def _chair(colour: str, back: int) -> list[Shape]:
    legs = [_shape("rectangle", "saddlebrown", x, 60, x + 6, 92) for x in (42, 82)]
    return [_shape("rectangle", colour, 42, back, 50, 60), _shape("rectangle", colour, 42, 54, 88, 62), *legs]


PICTURES: Mapping[str, Picture] = {
    "clock_1": Picture("lightblue", _clock("goldenrod", square=False)),
    "clock_2": Picture("thistle", _clock("sienna", square=True)),
    "wine_1": Picture("linen", [*_glass(16, "darkred"), *_glass(76, "darkred")]),
    "wine_2": Picture("honeydew", [*_bottle(20, "darkgreen"), *_bottle(54, "maroon"), *_bottle(88, "darkgreen")]),
    "bill_1": Picture("peachpuff", _paper(7, 42)),
    "bill_2": Picture("darkseagreen", [*_paper(5, 18), _shape("ellipse", "gold", 78, 40, 110, 72)]),
    "shoes_1": Picture("wheat", [_shape("rectangle", "brown", 70, 4, 120, 92), *_shoe(10, 60, "black")]),
    "shoes_2": Picture("crimson", [*_shoe(14, 20, "navy"), *_shoe(66, 54, "navy")]),
    "lantern_1": Picture("midnightblue", _lantern(46, "red")),
    "lantern_2": Picture("black", [*_lantern(8, "orange"), *_lantern(48, "red"), *_lantern(88, "orange")]),
    "queue_1": Picture("lightgray", _people(("navy", "teal", "maroon", "olive"), 21)),
    "queue_2": Picture("lightyellow", _people(("gray", "purple", "green"), 42)),
    "four_1": Picture("mistyrose", _cups("steelblue")),
    "four_2": Picture("aliceblue", _flowers("deeppink")),
    "grill_1": Picture("gray", _grill("firebrick", round_pieces=False)),
    "grill_2": Picture("silver", _grill("chocolate", round_pieces=True)),
    "chair_1": Picture("lavender", _chair("teal", 20)),
    "chair_2": Picture("cornsilk", _chair("darkred", 4)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw all pictures into the data folder."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the synthetic CrossCult cases.")
    parser.add_argument("--data", type=Path, default=DATA, help="the data folder (default: %(default)s)")
    write(PICTURES, parser.parse_args(arguments).data / "crosscult" / "images")


if __name__ == "__main__":
    main()
