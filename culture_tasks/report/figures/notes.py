"""What stands below a figure, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from culture_tasks.report.figures.charts import Kind
    from culture_tasks.report.model import Flag, GroupValue, Report

_WITH_INTERVALS: frozenset[Kind] = frozenset(("bars", "points", "lines", "pairs"))


def notes(report: Report, kind: Kind, values: Sequence[GroupValue], published: bool) -> tuple[str, ...]:
    """Returns what a reader must know of a figure's numbers.

    Args:
        report: The report.
        kind: How the figure is drawn.
        values: Its numbers.
        published: Whether rows from papers were asked for.
    """
    flags = {flag for value in values for flag in value.cell.flags}
    reasons = "; ".join(text for flag, text in FLAG_TEXT.items() if flag in flags & NOT_COMPARABLE)
    lexical = (FLAG_TEXT["lexical_judge"],) if "lexical_judge" in flags else ()
    marked = (f"† in part not comparable: {reasons}",) if reasons else ()
    known = kind in _WITH_INTERVALS and any(value.cell.low is not None for value in values)
    intervals = ("Error bars: 95 % intervals",) if known else ()
    return (*intervals, *marked, *lexical, *_of_papers(report, kind, flags, published))


def _of_papers(report: Report, kind: Kind, flags: Collection[Flag], published: bool) -> Iterator[str]:
    if "published" in flags and kind in _WITH_INTERVALS:
        yield "Hollow: published by the paper, not measured here, and without an interval"
    elif not published and any(row.published for row in report.entrants.values()):
        yield "Rows from papers are not drawn"
