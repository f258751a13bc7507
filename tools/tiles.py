"""Writes ``culture_tasks/report/tiles.csv`` anew: the region of each country, and its tile on the map.

python tools/tiles.py FOLDER

FOLDER has three files of public-domain data:

* ``ne_50m_admin_0_countries.json`` and ``ne_10m_admin_0_label_points.json`` of Natural Earth
  (github.com/martynafford/natural-earth-geojson): where a country is;
* ``country-codes.csv`` (github.com/datasets/country-codes, PDDL): its region of the United Nations, and whether it is
  independent.

Each country starts at the centre of its largest area, on a map that is stretched where countries are dense. Tiles are
the assignment of least squared distance to these places. It is worked out again and again; each time, a country's place
moves to the side of its neighbours on which it truly is.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import Delaunay
from scipy.stats import rankdata

Points = NDArray[np.float64]

TARGET = Path(__file__).parents[1] / "culture_tasks" / "report" / "tiles.csv"
_ACROSS, _DOWN = 28, 18
"""Tiles of the grid."""
_LEAST_PEOPLE = 250_000
"""People from which on a territory has a tile, as each independent country has."""
_EDGE = -130.0
"""Longitude at the map's edges, between the islands of the Pacific and America."""
_STRETCH = 0.4
"""Weight of a country's place among all, from west to east and from north to south, beside its coordinates."""
_ROUNDS = 60


def main(folder: Path) -> None:
    """Writes the file."""
    with (folder / "country-codes.csv").open(encoding="utf-8", newline="") as file:
        countries = sorted(csv.DictReader(file), key=lambda row: row["ISO3166-1-Alpha-2"])
    points, people = _points(folder)
    shown = [
        row["ISO3166-1-Alpha-2"]
        for row in countries
        if row["is_independent"] in ("Yes", "In contention")
        or people.get(row["ISO3166-1-Alpha-3"], 0.0) >= _LEAST_PEOPLE
    ]
    names = {row["ISO3166-1-Alpha-2"]: row["ISO3166-1-Alpha-3"] for row in countries}
    tiles = dict(zip(shown, _tiles(np.array([points[names[code]] for code in shown])), strict=True))
    with TARGET.open("w", encoding="utf-8", newline="\n") as file:
        file.write("# By tools/tiles.py from Natural Earth and datasets/country-codes, both in the public domain.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("code", "region", "column", "row"))
        for row in countries:
            region = row["Intermediate Region Name"] or row["Sub-region Name"] or "Antarctica"
            writer.writerow((row["ISO3166-1-Alpha-2"], region, *tiles.get(row["ISO3166-1-Alpha-2"], ("", ""))))


def _points(folder: Path) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """Returns the longitude and latitude of countries, and their people, by their three letters."""
    points: dict[str, tuple[float, float]] = {}
    people: dict[str, float] = {}
    for each in _features(folder / "ne_10m_admin_0_label_points.json"):
        points.setdefault(each["properties"]["sr_su_a3"], tuple(each["geometry"]["coordinates"][:2]))
    for each in _features(folder / "ne_50m_admin_0_countries.json"):
        facts, shape = each["properties"], each["geometry"]
        parts = [shape["coordinates"]] if shape["type"] == "Polygon" else shape["coordinates"]
        for code in (facts["ISO_A3_EH"], facts["ADM0_A3"]):  # France and Norway have the second alone
            points[code] = max((_centre(np.array(part[0])) for part in parts), key=lambda found: found[0])[1]
            people[code] = facts["POP_EST"]
    return points, people


def _features(path: Path) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["features"]
    return features


def _centre(ring: Points) -> tuple[float, tuple[float, float]]:
    """Returns the area and the centre of a ring of longitudes and latitudes."""
    (x, y), (after_x, after_y) = ring[:-1, :2].T, ring[1:, :2].T
    doubled = x * after_y - after_x * y
    area = doubled.sum() / 2.0
    centre = ((x + after_x) @ doubled / (6.0 * area), (y + after_y) @ doubled / (6.0 * area))
    return float(abs(area) * np.cos(np.radians(centre[1]))), centre


def _tiles(points: Points) -> list[tuple[int, int]]:
    """Returns the column and the row of each point."""
    true = np.column_stack([(points[:, 0] - _EDGE) % 360.0, -points[:, 1]])
    triangles = Delaunay(true).simplices
    first, second = np.unique(
        np.sort(np.concatenate([triangles[:, pair] for pair in ([0, 1], [1, 2], [0, 2])])), axis=0
    ).T
    near = np.hypot(*(true[first] - true[second]).T) < 30.0  # degrees: across an ocean nobody is a neighbour
    first, second = first[near], second[near]
    size = np.array([_ACROSS - 1, _DOWN - 1])
    flat = (true - true.min(0)) / np.ptp(true, 0)
    spread = (np.column_stack([rankdata(side) for side in true.T]) - 1.0) / (len(true) - 1)
    start = ((1.0 - _STRETCH) * flat + _STRETCH * spread) * size
    cells = np.stack(np.meshgrid(range(_ACROSS), range(_DOWN)), axis=-1).reshape(-1, 2)
    away = true[second] - true[first]
    away = away / np.abs(away).max(1, keepdims=True)  # a step in the true direction
    wanted, best, least = start, None, np.inf
    for _ in range(_ROUNDS):
        cost = ((wanted[:, None] - cells[None]) ** 2).sum(2)
        places = cells[linear_sum_assignment(cost)[1]].astype(float)
        wrong = _misplaced(places[second] - places[first], away)
        if wrong < least:
            best, least = places, wrong
        sums, counts = np.zeros_like(start), np.zeros(len(start))
        np.add.at(sums, second, places[first] + away)
        np.add.at(sums, first, places[second] - away)
        np.add.at(counts, first, 1.0)
        np.add.at(counts, second, 1.0)
        beside = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], places)
        wanted = 0.35 * start + 0.65 * beside
    best = best - best.min(0)
    return [(int(column), int(row)) for column, row in best]


def _misplaced(steps: Points, away: Points) -> float:
    """Returns how far neighbours are from a step in their true direction, in the mean."""
    return float(np.hypot(*(steps - away).T).mean())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
