"""The region of each country, and its tile on a map where all countries have the same size.

Tiles were assigned with the least squared distance to the countries' places, on a map that is stretched where countries
are dense and that keeps each country on the true side of its neighbours.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Tile(NamedTuple):
    """A country on the map.

    Attributes:
        region: Its region of the United Nations.
        column: Its place from west to east, from 0; None without a tile, as for small territories.
        row: Its place from north to south, from 0; None without a tile.
    """

    region: str
    column: int | None = None
    row: int | None = None


@cache
def tiles() -> dict[str, Tile]:
    """Returns the tile of each country of ISO 3166-1, by its two letters."""
    text = files(__package__).joinpath("tiles.csv").read_text(encoding="utf-8")
    rows = csv.reader(line for line in text.splitlines()[2:])
    return {code: Tile(region, int(column), int(row)) if column else Tile(region) for code, region, column, row in rows}


def region_of(code: str) -> str:
    """Returns the region of a country; empty for a group of countries."""
    return tiles()[code].region if code in tiles() else ""
