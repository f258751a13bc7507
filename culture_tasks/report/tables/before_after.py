"""Base and trained models side by side: over all benchmarks, and in the layout of each benchmark's own tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from culture_tasks.benchmarks.reporting import At
from culture_tasks.report.model import Cell, Column, Gain, Row, Table, Trial
from culture_tasks.report.numbers.gains import OVER_ALL, Training
from culture_tasks.report.numbers.scores import Scores
from culture_tasks.report.tables.benchmark_tables import Layout, column_of, layouts, row_texts
from culture_tasks.report.tables.grid import Context
from culture_tasks.report.tables.published_rows import keys_of, paper_notes, published_rows
from culture_tasks.report.wording import ITEMS_NEEDED

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
    made = [_over_all(context, training), *(_laid_out(context, scores, training, layout) for layout in layouts(scores))]
    return BeforeAfter(
        tuple(table for table, gains in made if gains), tuple(gain for _, gains in made for gain in gains)
    )


def _over_all(context: Context, training: Training) -> tuple[Table, list[Gain]]:
    units = [measured.unit for measured in training.measured.values() if measured.unit.headline]
    gains = training.gains(OVER_ALL, [At(unit.key) for unit in units])
    changed = {gain.unit for gain in gains}
    shown = [unit for unit in units if unit.key in changed]
    has_both = len({unit.benchmark is None for unit in shown}) > 1
    overs = {True: "Other tasks", False: "Benchmarks"} if has_both else {True: "", False: ""}
    metrics = "; ".join(f"{unit.title}: {unit.metric}" for unit in shown)
    table = Table(
        OVER_ALL,
        "Before and after training",
        row_headers=("Model", "Number"),
        columns=tuple(Column(unit.key, unit.title, unit.scale, over=overs[unit.benchmark is None]) for unit in shown),
        rows=tuple(line.row([At(unit.key) for unit in shown]) for line in _lines(gains)),
        notes=(f"{metrics}.", _NOTE, *_about_runs(context, gains)),
        question="changes",
    )
    return table, gains


def _laid_out(context: Context, scores: Scores, training: Training, layout: Layout) -> tuple[Table, list[Gain]]:
    """Returns a benchmark's table with the numbers before and after training, and what they differ by, as rows."""
    spec, key = layout.spec, f"{layout.spec.key}_{OVER_ALL}"
    costs = {(unit, cost.name) for unit in layout.units for cost in scores.units[unit].reported.costs}
    shown = {one.at: one for one in spec.columns if one.at is not None and (one.at.unit, one.at.statistic) not in costs}
    gains = training.gains(key, list(shown))
    headers = {"Judge": spec.headers["Judge"]} if "Judge" in spec.headers else {}
    columns = [column_of(scores, layout, column) for column in shown.values()]
    printed = [(keys_of(one.printed), column.scale) for one, column in zip(shown.values(), columns, strict=True)]
    is_own = any("own_data" in trial.cell.flags for gain in gains for trial in (gain.base, gain.trained))
    papers = layout.papers if context.published and not is_own else ()
    own = (
        line.row(list(shown), row_texts(context, scores, layout.units, line.trial.entrants[0], headers))
        for line in _lines(gains)
    )
    table = Table(
        key,
        f"{spec.title}, before and after training",
        row_headers=("Model", "Number", *headers),
        columns=tuple(columns),
        rows=(*own, *(row for paper in papers for row in published_rows(paper, printed, 2 + len(headers)))),
        reproduces=spec.source,
        benchmark=layout.benchmark,
        notes=(
            *spec.notes,
            _NOTE,
            *_about_runs(context, gains),
            *(note for paper in papers for note in paper_notes(paper)),
        ),
        question="changes",
    )
    return table, gains


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of a model: what it shows, and its cells by address."""

    label: str
    trial: Trial
    cells: Mapping[At, Cell | None]

    def row(self, columns: Sequence[At], more: Sequence[str] = ()) -> Row:
        """Returns the row with the cells of these columns, and further texts."""
        cells = tuple(self.cells.get(at) for at in columns)
        return Row((self.trial.label, self.label, *more), cells, self.trial.entrants[0])


def _lines(gains: Sequence[Gain]) -> Iterator[_Line]:
    """Yields the rows of each base once, and below it those of what was trained from it; empty ones are left out."""
    models: dict[str, dict[str, dict[At, Gain]]] = {}
    for gain in gains:
        own = models.setdefault(gain.base.label, {}).setdefault(gain.trained.label, {})
        own[At(gain.unit, gain.statistic, gain.where)] = gain
    for trained in models.values():
        every = {at: gain for own in reversed(trained.values()) for at, gain in own.items()}
        yield from _of_trial("Base", {at: gain.base for at, gain in every.items()})
        for own in trained.values():
            yield from _of_trial("Trained", {at: gain.trained for at, gain in own.items()})
            first = next(iter(own.values())).trained
            yield _Line("Gain", first, {at: gain.percent for at, gain in own.items()})
            yield _Line("Difference", first, {at: gain.difference for at, gain in own.items()})
            needed = {at: gain.test.items_needed for at, gain in own.items() if gain.test is not None}
            if any(needed.values()):
                cells = {at: Cell(float(count), ITEMS_NEEDED) for at, count in needed.items() if count is not None}
                yield _Line("Items needed", first, cells)


def _of_trial(label: str, trials: Mapping[At, Trial]) -> Iterator[_Line]:
    first = next(iter(trials.values()))
    # a place among all models would be misread as one among these two
    yield _Line(label, first, {at: replace(trial.cell, rank=None, best=False) for at, trial in trials.items()})
    if any(trial.deviation is not None for trial in trials.values()):
        yield _Line(f"{label}, SD of runs", first, {at: trial.deviation for at, trial in trials.items()})


def _about_runs(context: Context, gains: Sequence[Gain]) -> Iterator[str]:
    """Yields which runs a number is the mean of."""
    trials = [trial for gain in gains for trial in (gain.base, gain.trained) if trial.deviation is not None]
    most = {trial.label: trial for trial in sorted(trials, key=lambda trial: len(trial.entrants))}
    for label, trial in most.items():
        if len(trial.entrants) > 1:
            names = ", ".join(context.entrants[key].label for key in trial.entrants)
            runs = f"{len(trial.entrants)} runs ({names})"
        else:
            runs = f"{0 if trial.deviation is None else trial.deviation.n} repeats"
        yield (
            f"{label}: the mean of {runs}, item by item; SD of runs is the sample standard deviation of their own "
            "scores."
        )
