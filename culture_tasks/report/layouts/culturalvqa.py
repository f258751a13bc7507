"""CulturalVQA: accuracy per country and per facet."""

from __future__ import annotations

from collections.abc import Iterator

from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS
from culture_tasks.report.layouts.grid import Context, Place, cell_in, grid, with_judge
from culture_tasks.report.model import Column, Table
from culture_tasks.report.units import Measured


def tables(context: Context, measured: Measured) -> Iterator[Table]:
    """Yields the tables of one task."""
    yield _table(context, measured, "country", COUNTRIES, "country")
    yield _table(context, measured, "facet", FACETS, "facet")


def _table(context: Context, measured: Measured, field: str, groups: tuple[str, ...], per: str) -> Table:
    key, scale = measured.unit.key, measured.unit.scale
    places = [
        Place(Column(group, group.title() if group != "usa" else "USA", scale), cell_in(measured, ((field, group),)))
        for group in groups
    ]
    places.append(Place(Column("all", "All", scale), measured.unit.cells.get))
    title = f"{key}: share of answers that the judge calls correct, per {per}"
    table = Table(f"{key}_by_{field}", title, ("Model", "Judge"), (), (), "CulturalVQA, section 5", "culturalvqa")
    return grid(context, table, places, measured.unit.cells, with_judge(context, measured))
