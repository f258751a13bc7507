"""Tables over all benchmarks: summary, cultures, scores, their spread, tests between models, and the runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import CULTURES, At, Floats
from culture_tasks.metrics.rankings import mean_rank
from culture_tasks.report.model import Cell, Column, Comparison, Fairness, Row, Table, Unit
from culture_tasks.report.runs import Run
from culture_tasks.report.scores import Scores
from culture_tasks.report.tables.grid import Context, Place, grid

COMMON = Scale("points of 100", 0.0, 100.0)
"""The scale of the summary: each benchmark's own range mapped to 0-100."""

_RANK = Scale("rank", 1.0, None, better="lower")
_COUNT = Scale("count", 0.0, None, better=None, digits=0)
_P = Scale("probability", 0.0, 1.0, better=None, digits=4)
_COVERAGE = Scale("share", 0.0, 1.0, better=None, digits=3)


def to_common(cell: Cell) -> Cell | None:
    """Maps a number from its own range to 0-100, or returns None where the range has no ends or there is no number."""
    scale = cell.scale
    if cell.value is None or scale.low is None or scale.high is None:
        return None
    low, width = scale.low, scale.high - scale.low

    def mapped(value: float | None) -> float | None:
        if value is None:
            return None
        place = 100.0 * (value - low) / width
        return 100.0 - place if scale.better == "lower" else place

    ends = (mapped(cell.low), mapped(cell.high))
    first, last = ends if scale.better != "lower" else (ends[1], ends[0])
    return Cell(
        mapped(cell.value),
        COMMON,
        low=first,
        high=last,
        n=cell.n,
        coverage=cell.coverage,
        flags=cell.flags,
        runs=cell.runs,
        where=cell.where,
        note=cell.note,
    )


def summary(context: Context, units: Sequence[Unit]) -> Table:
    """Every headline score on the common scale, with the mean, the mean rank, and what is missing."""
    headline = [unit for unit in units if unit.headline]
    placed = [unit for unit in headline if unit.scale.low is not None and unit.scale.high is not None]
    cells = {unit.key: _on_common(unit.cells) for unit in placed}
    places = [Place(Column(unit.key, unit.title, COMMON), cells[unit.key]) for unit in placed]
    weights = _weights(placed)
    means = {key: _mean([cells[unit.key].get(key) for unit in placed], weights, context) for key in context.entrants}
    ranks = _mean_ranks(context, placed, cells)
    places += [
        Place(Column("mean", "Mean", COMMON), {key: cell for key, cell in means.items() if cell is not None}),
        Place(Column("mean_rank", "Mean rank", _RANK), ranks),
        Place(
            Column("missing", "Missing or not comparable", _COUNT),
            {key: _missing(cells, key, context) for key in context.entrants},
        ),
    ]
    notes = [
        "Each score's own range is mapped to 0-100. In the mean every benchmark weighs the same, and so do the columns "
        "of one benchmark; it is marked incomplete, and not ranked, where a column is missing or can't be compared.",
        "The mean rank is over the columns in which every model with a score can be compared.",
        *_left_out(headline, placed),
    ]
    table = Table(
        "summary",
        "Summary over benchmarks, on a common scale of 0-100",
        row_headers=("Model",),
        columns=(),
        rows=(),
        notes=tuple(notes),
    )
    return grid(context, table, places=places, rows=context.entrants, labels=lambda key: (context.entrants[key].label,))


def _left_out(headline: Sequence[Unit], placed: Sequence[Unit]) -> Iterator[str]:
    names = [unit.title for unit in headline if unit not in placed]
    if names:
        yield f"Not on the common scale, since the range of their metric isn't known: {', '.join(names)}."


def _weights(units: Sequence[Unit]) -> list[float]:
    """Returns what each column counts: every benchmark the same, and its columns the same among themselves."""
    benchmarks = [unit.benchmark or unit.key for unit in units]
    columns = Counter(benchmarks)
    return [1.0 / columns[benchmark] for benchmark in benchmarks]


def _mean(cells: Sequence[Cell | None], weights: Sequence[float], context: Context) -> Cell | None:
    """Weighted mean of columns, with an interval that adds up those of the columns as independent ones."""
    pairs = zip(cells, weights, strict=True)
    there = [(cell, weight) for cell, weight in pairs if cell is not None and cell.value is not None]
    if not there:
        return None
    used = [cell for cell, _ in there]
    shares = np.array([weight for _, weight in there]) / sum(weight for _, weight in there)
    complete = len(used) == len(cells) and all(context.rankable(cell) for cell in used)
    mean = float(shares @ np.array([cell.value for cell in used], dtype=np.float64))
    below = _reach(shares, [(cell.value, cell.low) for cell in used])
    above = _reach(shares, [(cell.value, cell.high) for cell in used])
    return Cell(
        mean,
        COMMON,
        low=None if below is None else mean - below,
        high=None if above is None else mean + above,
        n=sum(cell.n for cell in used),
        flags=() if complete else ("incomplete",),
        runs=tuple(run for cell in used for run in cell.runs),
        note="" if len(used) == len(cells) else f"over {len(used)} of {len(cells)} columns",
    )


def _reach(shares: Floats, ends: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Root of the sum of squared half widths, each times its share; None where a column has no interval."""
    widths = [value - end for value, end in ends if value is not None and end is not None]
    return math.hypot(*(shares * np.array(widths))) if len(widths) == len(ends) else None


def _mean_ranks(context: Context, placed: Sequence[Unit], cells: Mapping[str, Mapping[str, Cell]]) -> dict[str, Cell]:
    keys = list(context.entrants)
    if not placed:
        return {}
    rows = [[_rankable_value(cells[unit.key].get(key), context) for unit in placed] for key in keys]
    anywhere = [at for at, row in enumerate(rows) if not np.isnan(row).all()]
    if not anywhere:
        return {}
    found = mean_rank([rows[at] for at in anywhere])
    return {
        keys[at]: Cell(each.rank, _RANK, n=each.counted, note=f"over {each.counted} of {each.columns} columns")
        for at, each in zip(anywhere, found, strict=True)
        if not math.isnan(each.rank)
    }


def _rankable_value(cell: Cell | None, context: Context) -> float:
    return cell.value if cell is not None and cell.value is not None and context.rankable(cell) else math.nan


def _missing(cells: Mapping[str, Mapping[str, Cell]], key: str, context: Context) -> Cell:
    names = [unit for unit, column in cells.items() if (cell := column.get(key)) is None or not context.rankable(cell)]
    return Cell(float(len(names)), _COUNT, n=len(cells), note=", ".join(names))


def cultures(context: Context, scores: Scores) -> Table:
    """One profile per culture over the benchmarks that have it, on the common scale."""
    places: list[Place] = []
    for culture, addresses in _shared_cultures(scores).items():
        units = [scores.units[address.unit].unit for address in addresses]
        if len({unit.benchmark for unit in units}) > 1:
            columns = [
                Place(
                    Column(f"{culture} {unit.key}", unit.title, scale=COMMON, over=culture),
                    _on_common(scores.at(address)),
                )
                for unit, address in zip(units, addresses, strict=True)
            ]
            places += [*columns, _culture_mean(culture, columns, weights=_weights(units), context=context)]
    note = (
        "Only cultures that two of the benchmarks here share. In the mean every benchmark weighs the same, and so do "
        "the columns of one benchmark."
    )
    table = Table(
        "cultures",
        "Cultures over benchmarks, on a common scale of 0-100",
        row_headers=("Model",),
        columns=(),
        rows=(),
        notes=(note,),
    )
    return grid(context, table, places=places, rows=context.entrants, labels=lambda key: (context.entrants[key].label,))


def _shared_cultures(scores: Scores) -> dict[str, list[At]]:
    """Returns where the numbers of each culture are, of those that were run: known cultures first."""
    found: dict[str, list[At]] = {culture: [] for culture in CULTURES}
    for key, each in scores.units.items():
        field = each.reported.field_named(each.reported.culture)
        for group, culture in field.cultures.items() if each.unit.headline else ():
            address = At(key, where=((field.name, group),))
            if scores.at(address):
                found.setdefault(culture, []).append(address)
    return found


def _on_common(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    mapped = {key: to_common(cell) for key, cell in cells.items()}
    return {key: cell for key, cell in mapped.items() if cell is not None}


def _culture_mean(culture: str, columns: Sequence[Place], weights: Sequence[float], context: Context) -> Place:
    means = {key: _mean([place.cells.get(key) for place in columns], weights, context) for key in context.entrants}
    cells = {key: cell for key, cell in means.items() if cell is not None}
    return Place(Column(f"{culture} mean", "Mean", scale=COMMON, over=culture), cells)


def scores_table(context: Context, units: Sequence[Unit]) -> Table:
    """Every headline score on its own scale."""
    places = [
        Place(Column(unit.key, unit.title, scale=unit.scale, over=_over(unit)), unit.cells)
        for unit in units
        if unit.headline
    ]
    table = Table("scores", "Scores, each on its own scale", row_headers=("Model",), columns=(), rows=())
    return grid(context, table, places=places, rows=context.entrants, labels=lambda key: (context.entrants[key].label,))


def details(context: Context, units: Sequence[Unit]) -> Table:
    """Every headline score with its items, its coverage and who graded, one row each."""
    columns = (
        Column("score", "Score", Scale("the score's own")),
        Column("items", "Scored items", _COUNT),
        Column("coverage", "Coverage", _COVERAGE),
        Column("rank", "Rank", _COUNT),
    )
    rows = [
        _detail(context, unit, key=key, cell=cell)
        for unit in units
        if unit.headline
        for key, cell in unit.cells.items()
    ]
    headers = ("Benchmark", "Metric", "Model", "Judge")
    return Table("details", "Scores in detail", row_headers=headers, columns=columns, rows=tuple(rows))


def _detail(context: Context, unit: Unit, key: str, cell: Cell) -> Row:
    judges = dict.fromkeys(judge for run in cell.runs if (judge := context.runs[run].settings.judged_by))
    return Row(
        (unit.title, _over(unit), context.entrants[key].label, " + ".join(judges)),
        (
            replace(cell, rank=None),
            Cell(float(cell.n), _COUNT),
            None if cell.coverage is None else Cell(cell.coverage, _COVERAGE),
            None if cell.rank is None else Cell(float(cell.rank), _COUNT),
        ),
        key,
    )


def _over(unit: Unit) -> str:
    scale = unit.scale
    ends = "" if scale.low is None or scale.high is None else f", {scale.low:g}-{scale.high:g}"
    return f"{unit.metric}{ends}"


def fairness_table(context: Context, units: Mapping[str, Unit], spreads: Sequence[Fairness]) -> Table:
    """How evenly each score spreads over cultures, on the score's own scale."""
    rows: list[Row] = []
    for each in (each for each in spreads if units[each.unit].headline):
        unit, digits = f"squared {each.scale.unit}", each.scale.digits + 1
        squared = Scale(unit, 0.0, None, better="lower", neutral=0.0, digits=digits)
        cells = (
            Cell(each.best_value, each.scale),
            Cell(each.worst_value, each.scale),
            Cell(each.gap, each.scale),
            None if each.variance is None else Cell(each.variance, squared),
            Cell(float(each.groups), _COUNT),
        )
        texts = (units[each.unit].title, context.entrants[each.entrant].label, each.best, each.worst)
        rows.append(Row(texts, cells, each.entrant))
    own = Scale("the score's own")
    columns = (
        Column("best", "Best", own),
        Column("worst", "Worst", own),
        Column("gap", "Gap", Scale("the score's own", 0.0, None, better="lower", neutral=0.0)),
        Column("variance", "Variance", Scale("the score's own, squared", 0.0, None, better="lower", neutral=0.0)),
        Column("groups", "Groups", _COUNT),
    )
    note = (
        "Worst is the worst-group score. Gap is best less worst, variance that of the groups' scores; 0 would be no "
        "difference, but groups of few items differ by chance alone: see their intervals."
    )
    headers = ("Benchmark", "Model", "Best group", "Worst group")
    return Table(
        "fairness", "Spread over cultures", row_headers=headers, columns=columns, rows=tuple(rows), notes=(note,)
    )


def comparison_table(context: Context, units: Mapping[str, Unit], tests: Sequence[Comparison]) -> Table:
    """Every test between two entrants."""
    columns = (
        Column("difference", "B - A", Scale("the score's own")),
        Column("p", "p", _P),
        Column("p_holm", "p (Holm)", _P),
        Column("n", "Common items", _COUNT),
        Column("needed", "Items needed", _COUNT),
    )
    rows = [_comparison_row(context, units, each) for each in tests]
    note = (
        "On the items that both answered. Holm's adjustment is over all pairs of a benchmark. Items needed: common "
        "items that would tell the two apart at this difference 4 times out of 5, at the level of 0.05. Tasks that "
        "aren't of these benchmarks are not tested: of them the result files alone are read."
    )
    headers = ("Benchmark", "A", "B", "Verdict", "Test")
    return Table(
        "comparisons",
        "Differences between models",
        row_headers=headers,
        columns=columns,
        rows=tuple(rows),
        notes=(note,),
    )


def _comparison_row(context: Context, units: Mapping[str, Unit], each: Comparison) -> Row:
    unit = units[each.unit]
    scale = Scale(unit.scale.unit, None, None, better=None, neutral=0.0, digits=unit.scale.digits)

    def count(value: int | None) -> Cell | None:
        return None if value is None else Cell(float(value), _COUNT)

    labels = (context.entrants[each.first].label, context.entrants[each.second].label)
    return Row(
        (unit.title, *labels, each.verdict, each.test),
        (
            Cell(each.difference, scale, low=each.low, high=each.high, n=each.n, flags=each.flags),
            None if each.p is None else Cell(each.p, _P),
            None if each.p_holm is None else Cell(each.p_holm, _P),
            count(each.n),
            count(each.items_needed),
        ),
    )


def runs_table(runs: Iterable[Run]) -> Table:
    """Every run in use, with what decides whether it can be compared."""
    columns = (
        Column("items", "Items", _COUNT),
        Column("scored", "Scored", _COUNT),
        Column("coverage", "Coverage", _COVERAGE),
    )
    rows: list[Row] = []
    for run in runs:
        judge = " at ".join((run.settings.judged_by, *([", ".join(run.endpoints)] if run.endpoints else [])))
        cells = (
            Cell(float(run.items), _COUNT),
            Cell(float(run.scored), _COUNT),
            None if run.coverage is None else Cell(run.coverage, _COVERAGE),
        )
        texts = (run.model, run.task, run.harness.replace("_", "-"), judge, run.settings.task_version, run.date)
        rows.append(Row(texts, cells))
    headers = ("Model", "Task", "Harness", "Judge", "Version", "Date")
    return Table("runs", "Runs", row_headers=headers, columns=columns, rows=tuple(rows))
