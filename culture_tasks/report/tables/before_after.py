"""Base and trained models side by side: over all benchmarks, and in the layout of each benchmark's own tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from culture_tasks.benchmarks.reporting import At
from culture_tasks.report.gains import OVER_ALL, Training
from culture_tasks.report.model import Cell, Column, Entrant, Gain, Row, Table, Trial
from culture_tasks.report.scores import Scores
from culture_tasks.report.tables.benchmark_tables import Layout, column_of, layouts, row_texts
from culture_tasks.report.tables.grid import Context
from culture_tasks.report.tables.published_rows import keys_of, paper_notes, published_rows
from culture_tasks.report.text.wording import ITEMS_NEEDED

_NOTE = (
    "Difference: trained minus base, on the items that both have a score for, with the interval of its paired test; "
    "bold where the test tells the two apart. Test and interval are adjusted over a model's columns in this table "
    "(Holm), so with many columns the intervals are wide. Gain: how much better the trained model's score is, in "
    "percent of the base's. Items needed: how many common items would tell the two apart at this difference 4 times "
    "out of 5, after the same adjustment."
)


class BeforeAfter(NamedTuple):
    """Tables of what training changed, and their numbers."""

    tables: tuple[Table, ...]
    gains: tuple[Gain, ...]


def before_after(context: Context, scores: Scores, training: Training) -> BeforeAfter:
    """Returns the tables of what training changed: that of all benchmarks first, then one for each of theirs.

    A benchmark's table shows scores and derived statistics; what a run cost has nothing to do with training.
    """
    if not training.lineages:
        return BeforeAfter((), ())
    made = [_over_all(context, training), *(_laid_out(context, scores, training, each) for each in layouts(scores))]
    return BeforeAfter(
        tuple(table for table, gains in made if gains), tuple(gain for _, gains in made for gain in gains)
    )


def _over_all(context: Context, training: Training) -> tuple[Table, list[Gain]]:
    units = [each.unit for each in training.measured.values() if each.unit.headline]
    gains = training.gains(OVER_ALL, [At(unit.key) for unit in units])
    changed = {gain.unit for gain in gains}
    shown = [unit for unit in units if unit.key in changed]
    has_both = len({unit.benchmark is None for unit in shown}) > 1
    overs = {True: "Other tasks", False: "Benchmarks"} if has_both else {True: "", False: ""}
    columns = {
        At(unit.key): Column(unit.key, unit.title, unit.scale, over=overs[unit.benchmark is None]) for unit in shown
    }
    metrics = "; ".join(f"{unit.title}: {unit.metric}" for unit in shown)
    table = Table(
        OVER_ALL,
        "Before and after training",
        row_headers=("Model", "Number"),
        columns=tuple(columns.values()),
        rows=tuple(_rows(gains, list(columns), lambda _: ())),
        notes=(f"{metrics}.", _NOTE, *_about_runs(gains, context.entrants)),
        question="changes",
    )
    return table, gains


def _laid_out(context: Context, scores: Scores, training: Training, layout: Layout) -> tuple[Table, list[Gain]]:
    """Returns a benchmark's table with the numbers before and after training, and what they differ by, as rows."""
    spec, key = layout.spec, f"{layout.spec.key}_{OVER_ALL}"
    shown = {column.at: column for column in spec.columns if column.at is not None and not _is_cost(scores, column.at)}
    gains = training.gains(key, list(shown))
    headers = {"Judge": spec.headers["Judge"]} if "Judge" in spec.headers else {}
    columns = [column_of(scores, layout, column) for column in shown.values()]
    printed = [(keys_of(one.printed), column.scale) for one, column in zip(shown.values(), columns, strict=True)]
    is_own = any("own_data" in trial.cell.flags for gain in gains for trial in (gain.base, gain.trained))
    papers = layout.papers if context.published and not is_own else ()
    row_headers = ("Model", "Number", *headers)
    own = _rows(gains, list(shown), lambda trial: row_texts(context, scores, layout.units, trial.entrants[0], headers))
    table = Table(
        key,
        f"{spec.title}, before and after training",
        row_headers=row_headers,
        columns=tuple(columns),
        rows=(*own, *(row for paper in papers for row in published_rows(paper, printed, len(row_headers)))),
        reproduces=spec.source,
        benchmark=layout.benchmark,
        notes=(
            *spec.notes,
            _NOTE,
            *_about_runs(gains, context.entrants),
            *(note for paper in papers for note in paper_notes(paper)),
        ),
        question="changes",
    )
    return table, gains


def _is_cost(scores: Scores, address: At) -> bool:
    measured = scores.units.get(address.unit)
    return measured is not None and any(each.name == address.statistic for each in measured.reported.costs)


class _Line(NamedTuple):
    """A row of a model: what it shows, and its cells by column."""

    label: str
    trial: Trial
    cells: Mapping[At, Cell | None]


def _rows(gains: Sequence[Gain], columns: Sequence[At], more: Callable[[Trial], tuple[str, ...]]) -> list[Row]:
    """Returns the rows of each base once, and below it those of what was trained from it.

    Args:
        gains: The numbers.
        columns: Where the numbers of each column are.
        more: Gives further texts of a model's rows.
    """
    models: dict[str, dict[str, dict[At, Gain]]] = {}
    for gain in gains:
        own = models.setdefault(gain.base.label, {}).setdefault(gain.trained.label, {})
        own[At(gain.unit, gain.statistic, gain.where)] = gain
    lines: list[_Line] = []
    for trained in models.values():
        every = {at: gain for own in reversed(trained.values()) for at, gain in own.items()}
        lines += _of_trial("Base", {at: gain.base for at, gain in every.items()})
        for own in trained.values():
            lines += _of_trial("Trained", {at: gain.trained for at, gain in own.items()})
            lines += _of_change(own)
    return [
        Row(
            (line.trial.label, line.label, *more(line.trial)),
            tuple(line.cells.get(at) for at in columns),
            line.trial.entrants[0],
        )
        for line in lines
        if any(cell is not None for cell in line.cells.values())
    ]


def _of_trial(label: str, trials: Mapping[At, Trial]) -> Iterator[_Line]:
    first = next(iter(trials.values()))
    # a place among all models would be misread as one among these two
    yield _Line(label, first, {at: replace(each.cell, rank=None, best=False) for at, each in trials.items()})
    yield _Line(f"{label}, SD of runs", first, {at: each.deviation for at, each in trials.items()})


def _of_change(gains: Mapping[At, Gain]) -> Iterator[_Line]:
    first = next(iter(gains.values())).trained
    yield _Line("Gain", first, {at: gain.percent for at, gain in gains.items()})
    yield _Line("Difference", first, {at: gain.difference for at, gain in gains.items()})
    needed = {at: None if gain.test is None else gain.test.items_needed for at, gain in gains.items()}
    cells = {at: None if count is None else Cell(float(count), ITEMS_NEEDED) for at, count in needed.items()}
    yield _Line("Items needed", first, cells)


def _about_runs(gains: Sequence[Gain], entrants: Mapping[str, Entrant]) -> Iterator[str]:
    """Yields which runs a number is the mean of."""
    trials = [trial for gain in gains for trial in (gain.base, gain.trained) if trial.deviation is not None]
    most = {trial.label: trial for trial in sorted(trials, key=lambda trial: len(trial.entrants))}
    for label, trial in most.items():
        if len(trial.entrants) > 1:
            names = ", ".join(entrants[key].label for key in trial.entrants)
            runs = f"{len(trial.entrants)} runs ({names})"
        else:
            runs = f"{0 if trial.deviation is None else trial.deviation.n} repeats"
        yield (
            f"{label}: the mean of {runs}, item by item; SD of runs is the sample standard deviation of their own "
            "scores."
        )
