"""The figures of a report: those of its benchmarks, all models on all benchmarks, and all models by countries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, count

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.tables import Figure, Panel
from culture_tasks.pages.pictures import cleaned
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE, CountryScore, ModelRow, Number, Table
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

    In the figures of the benchmarks the series of models are named by the keys of their rows; ``beside`` are the keys
    of the columns of the summary that come first, as those of the mean.
    """
    order = [row for row in summary.rows if row in entrants]  # the best mean first
    names = _unique({key: cleaned(row.label) for key, row in entrants.items()})
    looks = {key: number for number, key in enumerate(entrants)}
    all_figures = (_overview(summary, order, beside), _countries(countries, order), *figures)
    drawn = (_finish(figure, order, names, looks) for figure in all_figures)
    return tuple(figure for figure in drawn if figure.panels)


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Numbers equal names, so that no row is drawn as part of another."""
    unique_names: dict[str, str] = {}
    for key, name in names.items():
        numbered = (name if number == 1 else f"{name} ({number})" for number in count(1))
        unique_names[key] = next(text for text in numbered if text not in unique_names.values())
    return unique_names


def _overview(summary: Table, order: Sequence[str], beside: Sequence[str]) -> Figure:
    """Returns the figure of all models on all scores: one panel per score, one row per model."""
    columns = sorted(summary.columns, key=lambda column: (not column.sums_up, column.key not in beside))
    rows = order[:_MOST_ROWS]
    panels: dict[str, dict[str, dict[str, Number]]] = {}
    best: list[str] = []
    for column in columns:
        for row in rows:
            cell: Number | None = column.cells.get(row)
            if cell is not None and cell.value is not None:
                panels.setdefault(column.label, {})[row] = {row: cell}
                if cell.rank is not None and cell.rank.first == 1:
                    best.append(f"{row}, {column.label}")
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


def _countries(scores: Sequence[CountryScore], order: Sequence[str]) -> Figure:
    """Returns the heat map of models by the countries with most benchmarks and questions."""
    counts: dict[str, tuple[int, int]] = {}  # of benchmarks, and of questions
    for score in scores:
        counts[score.place] = max(counts.get(score.place, (0, 0)), (len(score.means), score.cell.n))
    codes = sorted(counts, key=counts.__getitem__, reverse=True)[:_MOST_COUNTRIES]
    panel: dict[str, dict[str, Number]] = {}
    for row in [row for row in order if any(score.entrant == row for score in scores)][:_MOST_ROWS]:
        own = [score for score in scores if score.entrant == row and score.place in codes]
        panel[row] = {place(score.place).name: score.cell for score in own}
    notes = [
        "Bold: significantly above or below the mean of the model's other countries, by their intervals, with "
        "Holm's adjustment over all models and countries"
    ]
    if len(codes) < len(counts):
        notes.append("The countries with most benchmarks and questions; the table has all")
    if len({score.over for score in scores}) > 1:
        notes.append("Not all models have the same benchmarks; the table says which may be compared")
    bold = (f"{score.entrant}, {place(score.place).name}" for score in scores if score.beside_others is not None)
    return Figure(
        "countries",
        "Models by countries",
        {"Score, 0-100": panel},
        "score, 0-100",
        kind="heat",
        groups="country",
        notes=tuple(notes),
        bold=frozenset(bold),
    )


def _finish(figure: Figure, order: Sequence[str], names: Mapping[str, str], looks: Mapping[str, int]) -> Figure:
    """Returns a figure as it is drawn, with as many models and panels as it has room for."""
    panels = {title: panel for title, panel in figure.panels.items() if any(panel.values())}
    labels = {name: cleaned(name) for panel in panels.values() for name in panel}
    if figure.series == "model":
        most = _MOST_ROWS if figure.bold is not None else _MOST_SERIES
        labels = {row: names[row] for row in labels}
        labels |= {row: f"{names[row]}{_MARK}" for row, cell in _cells(panels) if not cell.comparable}
        panels = {
            title: {row: panel[row] for row in [row for row in order if row in panel][:most]}
            for title, panel in panels.items()
        }
    shown = _fitting(panels, _MOST_MARKS if figure.kind == "dots" else None)
    cells = [cell for _, cell in _cells(shown)]
    notes = [*figure.notes, *_notes(figure, cells)]
    if len(cells) < len(list(_cells(figure.panels))):
        notes.append("The table has the others")
    bold = figure.bold
    if bold is not None:
        parts = (text.partition(", ") for text in bold)
        bold = frozenset(f"{labels.get(row) or row}, {cleaned(group)}" for row, _, group in parts)
    named: dict[str, Panel] = {
        cleaned(title): {
            labels[name]: {labels.get(group) or cleaned(group): cell for group, cell in series.items()}
            for name, series in panel.items()
        }
        for title, panel in shown.items()
    }
    own_looks = {labels[row]: looks[row] for row in labels if row in looks}
    return replace(figure, panels=named, bold=bold, notes=tuple(notes), looks=own_looks)


def _cells(panels: Mapping[str, Panel]) -> Iterator[tuple[str, Number]]:
    """Yields every number with the name of its series."""
    for panel in panels.values():
        for name, series in panel.items():
            yield from ((name, cell) for cell in series.values())


def _fitting(panels: Mapping[str, Panel], most_marks: int | None) -> dict[str, Panel]:
    """Returns the first panels that one figure has room for, at least one."""
    marks = accumulate(sum(map(len, panel.values())) for panel in panels.values())
    fits = (most_marks is None or number <= most_marks for number in marks)
    first = [*panels.items()][:_MOST_PANELS]
    return {
        title: panel for place, ((title, panel), fit) in enumerate(zip(first, fits, strict=False)) if fit or not place
    }


def groups_of(figure: Figure, panel: Panel) -> list[str]:
    """Returns the groups of a panel, as its longest series has them; many by their means, the highest first."""
    is_of_models = figure.groups == "model"  # the same rows in all panels
    lines = [each for one in figure.panels.values() for each in one.values()] if is_of_models else [*panel.values()]
    longest_first = lines if is_of_models else sorted(lines, key=len, reverse=True)
    groups = list(dict.fromkeys(group for series in longest_first for group in series))
    if len(groups) > _MOST_IN_ORDER and figure.series == "model" and not is_of_models:
        values = {group: [series[group].value or 0.0 for series in lines if group in series] for group in groups}
        groups.sort(key=lambda group: -sum(values[group]) / len(values[group]))
    return groups


def _notes(figure: Figure, cells: Sequence[Number]) -> Iterator[str]:
    """Yields the notes on a figure's numbers, one line each."""
    flags = {flag for cell in cells for flag in cell.flags}
    if figure.groups != "model" and any(cell.low is not None for cell in cells):
        yield "Paler: a wider interval" if figure.kind == "heat" else "Lines: 95 % intervals"
    if any(is_ratio(cell.scale) for cell in cells):
        yield "The axis is logarithmic, and linear next to 0"
    if reasons := "; ".join(text for flag, text in FLAG_TEXT.items() if flag in flags & NOT_COMPARABLE):
        yield f"{_MARK.strip()} in part not comparable: {reasons}"
    yield from (FLAG_TEXT[flag] for flag in ("own_data", "lexical_judge") if flag in flags)


def is_ratio(scale: Scale) -> bool:
    """Whether numbers are ratios: from 0 without an end, and neutral in between, so that 1/2 is as far off as 2."""
    return scale.low == 0.0 and scale.high is None and scale.neutral is not None and scale.neutral > 0.0


def description_of(figure: Figure) -> str:
    """Returns the words for a reader who doesn't see a figure; its numbers are in a table."""
    titles = list(figure.panels)
    more = f" and {len(titles) - _MOST_TITLES} more" if len(titles) > _MOST_TITLES else ""
    panels = f"{len(titles)} panels: {'; '.join(titles[:_MOST_TITLES])}{more}" if len(titles) > 1 else "One panel"
    return f"{figure.title}. {panels}. {figure.value} by {figure.groups}, one {figure.series} a series."
