"""The figures of a report: those of its benchmarks, all models on all benchmarks, and all models by countries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.tables import Figure, Panel
from culture_tasks.pages.pictures import cleaned
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE, CountryScore, ModelRow, Number, Table
from culture_tasks.report.wording import number
from culture_tasks.vocabulary import place

_MARK = " †"
"""Behind names with numbers that can't be compared."""
_MOST_IN_ORDER = 8
"""Groups beyond which the highest mean comes first, rather than the order of the benchmark."""
_MOST_SERIES, _MOST_ROWS, _MOST_PANELS = 12, 15, 24
"""Models of a panel, models one below the other, and panels."""
_MOST_MARKS = 1_500
"""Marks of dots one below the other that the panels of a figure have room for."""
_MOST_COUNTRIES = 28
_MOST_TITLES = 6
"""Panels that the description of a figure names."""


def finished(
    figures: Iterable[Figure],
    summary: Table,
    entrants: Mapping[str, ModelRow],
    countries: Sequence[CountryScore],
    beside: Sequence[str],
) -> tuple[Figure, ...]:
    """Returns the figures of a report as they are drawn: with names, the best model first, and notes.

    Args:
        figures: The figures of the benchmarks, whose series of models are named by the rows' keys.
        summary: The table of all models on all benchmarks.
        entrants: The rows.
        countries: The scores of countries.
        beside: Keys of the columns of the summary that come first, as those of the mean.
    """
    order = [row for row in summary.rows if row in entrants]  # the best mean first
    names = _unique({key: cleaned(row.label) for key, row in entrants.items()})
    looks = {key: number for number, key in enumerate(entrants)}
    first = [_overview(summary, order, beside), _countries(countries, order)]
    drawn = [_finish(figure, order, names, looks) for figure in (*first, *figures) if figure is not None]
    return tuple(figure for figure in drawn if figure.panels)


def _overview(summary: Table, order: Sequence[str], beside: Sequence[str]) -> Figure:
    """Returns the figure of all models on all scores: one panel per score, one row per model."""
    columns = sorted(summary.columns, key=lambda column: (not column.sums_up, column.key not in beside))
    rows = order[:_MOST_ROWS]
    panels: dict[str, Panel] = {}
    for column in columns:
        cells = {row: cell for row in rows if (cell := column.cells.get(row)) and cell.value is not None}
        if cells:
            panels[column.label] = {row: {row: cell} for row, cell in cells.items()}
    best = (f"{row}, {title}" for title, panel in panels.items() for row in panel if _is_first(panel[row][row]))
    return Figure(
        "overview",
        f"{'All' if len(rows) == len(order) else f'{len(rows)} of {len(order)}'} models on all benchmarks",
        panels,
        "score",
        groups="model",
        notes=(
            "Lines: 95 % intervals. Filled: no other model is significantly better. Hollow: one is, or it wasn't "
            "tested. Cross: not comparable",
        ),
        question="best",
        bold=frozenset(best),
    )


def _is_first(cell: Number) -> bool:
    return cell.rank is not None and cell.rank.first == 1


def _countries(scores: Sequence[CountryScore], order: Sequence[str]) -> Figure | None:
    """Returns the heat map of models by countries; None without a country."""
    counts: dict[str, tuple[int, int]] = {}  # of benchmarks, and of questions
    for score in scores:
        counts[score.place] = max(counts.get(score.place, (0, 0)), (len(score.means), score.cell.n))
    codes = sorted(counts, key=counts.__getitem__, reverse=True)[:_MOST_COUNTRIES]
    panel: dict[str, dict[str, Number]] = {}
    for row in order:
        cells = {
            place(score.place).name: score.cell
            for score in scores
            if (score.entrant, score.place in codes) == (row, True)
        }
        if cells and len(panel) < _MOST_ROWS:
            panel[row] = cells
    if not panel:
        return None
    notes = [
        "Bold: significantly above or below the mean of the model's other countries, by their intervals, with "
        "Holm's adjustment over all models and countries"
    ]
    if len(codes) < len(counts):
        notes.append("The countries with most benchmarks and questions; the table has all")
    if len({score.over for score in scores}) > 1:
        notes.append("Not all models have the same benchmarks; the table says which may be compared")
    return Figure(
        "countries",
        "Models by countries",
        {"Score, 0-100": panel},
        "score, 0-100",
        kind="heat",
        groups="country",
        notes=tuple(notes),
        bold=frozenset(
            f"{score.entrant}, {place(score.place).name}" for score in scores if score.beside_others is not None
        ),
    )


def _finish(figure: Figure, order: Sequence[str], names: Mapping[str, str], looks: Mapping[str, int]) -> Figure:
    """Returns a figure as it is drawn, with as many models and panels as it has room for."""
    panels = {title: panel for title, panel in figure.panels.items() if any(panel.values())}
    is_of_models = figure.series == "model"
    labels = {name: cleaned(name) for panel in panels.values() for name in panel}
    if is_of_models:
        marked = {
            row
            for panel in panels.values()
            for row, series in panel.items()
            if not all(cell.comparable for cell in series.values())
        }
        labels = {row: f"{names[row]}{_MARK if row in marked else ''}" for row in labels}
        most = _MOST_ROWS if figure.key in ("overview", "countries") else _MOST_SERIES
        panels = {
            title: {row: panel[row] for row in [row for row in order if row in panel][:most]}
            for title, panel in panels.items()
        }
    shown = dict(_room(figure, panels))
    left_out = len(shown) < len(figure.panels) and len(shown) < len(panels)
    is_cut = left_out or any(len(panel) < len(figure.panels[title]) for title, panel in shown.items())
    cells = [cell for panel in shown.values() for series in panel.values() for cell in series.values()]
    named: dict[str, Panel] = {
        cleaned(title): {
            labels[name]: {labels.get(group) or cleaned(group): cell for group, cell in series.items()}
            for name, series in panel.items()
        }
        for title, panel in shown.items()
    }
    bold = None
    if figure.bold is not None:
        parts = (text.partition(", ") for text in figure.bold)
        bold = frozenset(f"{labels.get(row) or row}, {cleaned(group)}" for row, _, group in parts)
    return replace(
        figure,
        panels=named,
        bold=bold,
        notes=(*figure.notes, *_notes(figure, cells), *(["The table has the others"] if is_cut else [])),
        looks={labels[row]: looks[row] for row in labels} if is_of_models else {},
    )


def _room(figure: Figure, panels: Mapping[str, Panel]) -> Iterator[tuple[str, Panel]]:
    """Yields the panels that one figure has room for."""
    marks = 0
    for index, (title, panel) in enumerate(panels.items()):
        marks += sum(map(len, panel.values())) if figure.kind == "dots" else 0
        if index and (index >= _MOST_PANELS or marks > _MOST_MARKS):
            return
        yield title, panel


def groups_of(figure: Figure, panel: Panel) -> list[str]:
    """Returns the groups of a panel: many by their means over the models, the highest first."""
    is_of_models = figure.groups == "model"  # the same rows in all panels
    lines = [each for one in figure.panels.values() for each in one.values()] if is_of_models else panel.values()
    groups: list[str] = []
    for series in lines:
        names = list(series)
        for index, name in enumerate(names):
            if name not in groups:
                behind = next((other for other in names[index:] if other in groups), None)
                groups.insert(len(groups) if behind is None else groups.index(behind), name)
    if len(groups) > _MOST_IN_ORDER and figure.series == "model" and not is_of_models:
        values = {group: [series[group].value or 0.0 for series in lines if group in series] for group in groups}
        groups.sort(key=lambda group: -sum(values[group]) / len(values[group]))
    return groups


def _notes(figure: Figure, cells: Sequence[Number]) -> Iterator[str]:
    """Yields the notes on a figure's numbers, one line each."""
    flags = {flag for cell in cells for flag in cell.flags}
    if figure.groups != "model" and any(cell.low is not None for cell in cells):
        yield "Paler: a wider interval" if figure.kind == "heat" else "Lines: 95 % intervals"
    if any(is_ratio(cell.scale) and cell.value == 0 for cell in cells):
        yield "The axis is logarithmic: 0 is at its edge"
    if reasons := "; ".join(text for flag, text in FLAG_TEXT.items() if flag in flags & NOT_COMPARABLE):
        yield f"{_MARK.strip()} in part not comparable: {reasons}"
    yield from (FLAG_TEXT[flag] for flag in ("own_data", "lexical_judge") if flag in flags)


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Numbers equal names, so that no row is drawn as part of another."""
    unique_names: dict[str, str] = {}
    for key, name in names.items():
        numbered = (name if number == 1 else f"{name} ({number})" for number in count(1))
        unique_names[key] = next(text for text in numbered if text not in unique_names.values())
    return unique_names


def is_ratio(scale: Scale) -> bool:
    """Whether numbers are ratios: from 0 without an end, and neutral in between, so that 1/2 is as far off as 2."""
    return scale.low == 0.0 and scale.high is None and scale.neutral is not None and scale.neutral > 0.0


def description_of(figure: Figure) -> str:
    """Returns the words for a reader who doesn't see a figure; its numbers are in a table."""
    titles = list(figure.panels)
    more = f" and {len(titles) - _MOST_TITLES} more" if len(titles) > _MOST_TITLES else ""
    panels = f"{len(titles)} panels: {'; '.join(titles[:_MOST_TITLES])}{more}" if len(titles) > 1 else "One panel"
    text = f"{figure.title}. {panels}. {figure.value} by {figure.groups}, one {figure.series} a series."
    values = [
        (cell.value if cell.value is not None else math.nan, f"{name}, {group}", cell.scale)
        for panel in figure.panels.values()
        for name, series in panel.items()
        for group, cell in series.items()
    ]
    if len({scale for *_, scale in values}) > 1:
        return text
    (low, low_name, scale), (high, high_name, _) = min(values, key=lambda v: v[0]), max(values, key=lambda v: v[0])
    return f"{text} Lowest {number(low, scale)} ({low_name}), highest {number(high, scale)} ({high_name})."


def texts_of(figure: Figure) -> Iterator[str]:
    """Yields every text that is drawn."""
    yield from (figure.title, figure.groups, figure.series, figure.value, *figure.notes)
    for title, panel in figure.panels.items():
        yield from (title, *panel, *groups_of(figure, panel))
