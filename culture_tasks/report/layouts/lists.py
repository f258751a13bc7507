"""Lists over all benchmarks: scores on their own scales, spread over cultures, tests, and the runs themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from culture_tasks.report.layouts.grid import Context, Place, grid
from culture_tasks.report.model import Cell, Column, Comparison, Fairness, Row, Run, Scale, Table, Unit

_COUNT = Scale("count", 0.0, None, better=None, digits=0)
_P = Scale("probability", 0.0, 1.0, better=None, digits=4)
_COVERAGE = Scale("share", 0.0, 1.0, better=None, digits=3)


def scores(context: Context, units: Sequence[Unit]) -> Table:
    """Every headline score on its own scale."""
    places = [
        Place(Column(unit.key, unit.title, unit.scale, _over(unit)), unit.cells.get) for unit in units if unit.headline
    ]
    table = Table("scores", "Scores, each on its own scale", ("Model",), (), ())
    return grid(context, table, places, context.entrants, lambda key: (context.entrants[key].label,))


def details(context: Context, units: Sequence[Unit]) -> Table:
    """Every headline score with its items, its coverage and who graded, one row each."""
    columns = (
        Column("score", "Score", Scale("the score's own")),
        Column("items", "Scored items", _COUNT),
        Column("coverage", "Coverage", _COVERAGE),
        Column("rank", "Rank", _COUNT),
    )
    rows = [_detail(context, unit, key, cell) for unit in units if unit.headline for key, cell in unit.cells.items()]
    headers = ("Benchmark", "Metric", "Model", "Judge")
    return Table("details", "Scores in detail", headers, columns, tuple(rows))


def _detail(context: Context, unit: Unit, key: str, cell: Cell) -> Row:
    judges = dict.fromkeys(judge for run in cell.runs if (judge := _judges(context.runs[run])))
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
    rows = [
        Row(
            (units[each.unit].title, context.entrants[each.entrant].label, each.best, each.worst),
            (
                Cell(each.best_value, each.scale),
                Cell(each.worst_value, each.scale),
                Cell(each.gap, each.scale),
                None if each.variance is None else Cell(each.variance, _squared(each.scale)),
                Cell(float(each.groups), _COUNT),
            ),
            each.entrant,
        )
        for each in spreads
        if units[each.unit].headline
    ]
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
    return Table("fairness", "Spread over cultures", headers, columns, tuple(rows), notes=(note,))


def _squared(scale: Scale) -> Scale:
    return Scale(f"squared {scale.unit}", 0.0, None, better="lower", neutral=0.0, digits=scale.digits + 1)


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
    return Table("comparisons", "Differences between models", headers, columns, tuple(rows), notes=(note,))


def _comparison_row(context: Context, units: Mapping[str, Unit], each: Comparison) -> Row:
    unit = units[each.unit]
    scale = Scale(unit.scale.unit, None, None, better=None, neutral=0.0, digits=unit.scale.digits)

    def count(value: int | None) -> Cell | None:
        return None if value is None else Cell(float(value), _COUNT)

    labels = (context.entrants[each.first].label, context.entrants[each.second].label)
    return Row(
        (unit.title, *labels, each.verdict, each.test),
        (
            Cell(each.difference, scale, each.low, each.high, each.n, flags=each.flags),
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
    rows = tuple(
        Row(
            (run.model, run.task, run.harness.replace("_", "-"), _asked(run), run.settings.task_version, run.date),
            (
                Cell(float(run.items), _COUNT),
                Cell(float(run.scored), _COUNT),
                None if run.coverage is None else Cell(run.coverage, _COVERAGE),
            ),
        )
        for run in runs
    )
    headers = ("Model", "Task", "Harness", "Judge", "Version", "Date")
    return Table("runs", "Runs", headers, columns, rows)


def _judges(run: Run) -> str:
    return " + ".join(judge.label for judge in run.settings.judges)


def _asked(run: Run) -> str:
    return f"{_judges(run)} at {', '.join(run.endpoints)}" if run.endpoints else _judges(run)
