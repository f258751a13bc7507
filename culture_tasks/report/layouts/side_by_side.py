"""What papers set side by side, with the difference: CrossCult-KIBench's Figure 5, and CARE's Figure 6a."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.crosscult.vocabulary import LANGUAGE_NAMES, TARGETS, TOPICS
from culture_tasks.report.layouts.crosscult import with_method
from culture_tasks.report.layouts.grid import SHORT, Context, Place, grid, judge_of
from culture_tasks.report.model import Cell, Column, Contrast, Table
from culture_tasks.report.units import Measured

_Part = Literal["first", "second", "difference"]

_INSERTION: Mapping[_Part, str] = {"first": "Base", "second": "Edited", "difference": "Difference"}
_LANGUAGE: Mapping[_Part, str] = {"first": "English", "second": "Native", "difference": "Difference"}
_TOPICS = {"reliability": "All"} | {topic: topic.title() for topic in TOPICS}
_TOPICS |= {partition: LANGUAGE_NAMES[partition] for partition in TARGETS}
_PAIRED = "on the items that both have a score for, with a paired interval."


def tables(context: Context, measured: Mapping[str, Measured], contrasts: Sequence[Contrast]) -> Iterator[Table]:
    """Yields the tables that there are contrasts for.

    Args:
        context: What every layout needs.
        measured: The units, by key.
        contrasts: The contrasts.
    """
    for statistic, key, score in (
        ("score", "crosscult_insertion", "the judge's score from 0 to 10"),
        ("rouge_l", "crosscult_insertion_rouge_l", "ROUGE-L in percent"),
    ):
        found = [each for each in contrasts if (each.kind, each.statistic) == ("insertion", statistic)]
        if found:
            yield _insertion(context, measured, found, key, score)
    asked = [each for each in contrasts if each.kind == "language"]
    if asked:
        yield _language(context, measured, asked)


def _insertion(
    context: Context, measured: Mapping[str, Measured], found: Sequence[Contrast], key: str, score: str
) -> Table:
    title = f"CrossCult-KIBench: single-insert reliability without and with the insertion, {score}"
    note = f"Base: the same model with nothing inserted. Difference: edited less base, {_PAIRED}"
    source = "CrossCult-KIBench, Figure 5"
    table = Table(key, title, ("Base model", "Method", "Judge"), (), (), source, "crosscult", (note,))
    cells = {(each.entrant, each.group): each for each in found}
    rows = {each.entrant: each for each in found}
    return _filled(
        context,
        table,
        _places(cells, _TOPICS, _INSERTION),
        rows,
        lambda each: with_method(context, measured[each.unit])(each.entrant),
    )


def _language(context: Context, measured: Mapping[str, Measured], found: Sequence[Contrast]) -> Table:
    names = {"": "All"} | {name: "C. sense" if name == "commonsense" else name.title() for name in CATEGORIES}
    cells = {(_row(each), each.group if each.dimension == "category" else ""): each for each in found}
    rows = {_row(each): each for each in found}
    title = "CARE: mean rating (1 poor, 10 excellent) asked in English and in the culture's own language"
    note = f"Difference: native less English, {_PAIRED}"
    table = Table("care_languages", title, ("Model", "Judge", "Culture"), (), (), "CARE, Figure 6a", "care", (note,))

    def labels(each: Contrast) -> tuple[str, ...]:
        judge = judge_of(context, measured[each.unit], each.entrant)
        return (context.entrants[each.entrant].label, judge, SHORT[dict(each.second.where)["language"]])

    return _filled(context, table, _places(cells, names, _LANGUAGE), rows, labels)


def _row(each: Contrast) -> str:
    return f"{each.entrant} {dict(each.second.where)['language']}"


def _places(
    cells: Mapping[tuple[str, str], Contrast], groups: Mapping[str, str], parts: Mapping[_Part, str]
) -> list[Place]:
    """Returns three columns for each group that there is a contrast of."""
    places: list[Place] = []
    for group, over in groups.items():
        some = [each for (_, name), each in cells.items() if name == group]
        for part, label in parts.items() if some else ():
            column = Column(f"{group or 'all'}_{part}", label, _part(some[0], part).scale, over)
            places.append(Place(column, lambda row, at=group, part=part: _cell(cells.get((row, at)), part)))  # type: ignore[misc]
    return places


def _part(each: Contrast, part: _Part) -> Cell:
    cell: Cell = getattr(each, part)
    return cell


def _cell(each: Contrast | None, part: _Part) -> Cell | None:
    return None if each is None else _part(each, part)


def _filled(
    context: Context,
    table: Table,
    places: Sequence[Place],
    rows: Mapping[str, Contrast],
    labels: Callable[[Contrast], tuple[str, ...]],
) -> Table:
    return grid(context, table, places, rows, lambda row: labels(rows[row]), lambda row: rows[row].entrant)
