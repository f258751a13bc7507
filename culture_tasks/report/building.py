"""From paths to a finished report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from culture_tasks import __version__, published
from culture_tasks.errors import DataError
from culture_tasks.report.contrasts import contrasts
from culture_tasks.report.emotions import emotion_values
from culture_tasks.report.entrants import enter
from culture_tasks.report.groups import fairness, group_values
from culture_tasks.report.layouts import (
    care,
    cedar,
    crosscult,
    culturalvqa,
    diagnostic,
    lists,
    papers,
    retention,
    side_by_side,
    summary,
)
from culture_tasks.report.layouts.grid import Context
from culture_tasks.report.loading import LoadedRun, Loading, Names, load, newest
from culture_tasks.report.model import Cell, Entrant, GroupValue, Problem, Report, Table, Unit
from culture_tasks.report.other_tasks import other_units
from culture_tasks.report.pairs import comparisons
from culture_tasks.report.papers import Papers, paper_values
from culture_tasks.report.store import FileSamples
from culture_tasks.report.units import Measured, measure


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for.

    Attributes:
        names: ``PATTERN=NAME`` pairs that name models.
        all_runs: Keep older runs of the same model, task and settings, each in a row of its own.
        compare_anyway: Rank and test also what can't be compared; the flags stay.
        published: Put the papers' own rows below the user's.
        min_coverage: Share of scored verdicts under which a number is flagged.
    """

    names: tuple[str, ...] = ()
    all_runs: bool = False
    compare_anyway: bool = False
    published: bool = False
    min_coverage: float = 0.95


def build(paths: Sequence[str], options: Options, now: datetime | None = None) -> Report:
    """Reads result and sample files and works everything out.

    Args:
        paths: Files, folders and glob patterns.
        options: What the user asked for.
        now: When the report is made; None means now.

    Raises:
        DataError: If no run can be used.
        SettingsError: If a name isn't a ``PATTERN=NAME`` pair.
    """
    loading = load(paths, Names(options.names))
    runs = _chosen(loading, options)
    if not runs:
        raise DataError(_nothing(paths, loading.problems))
    entered = enter(runs)
    entrants = {one.entrant.key: one.entrant for one in entered}
    context = _context(entrants, runs, options)
    measured = measure(entered, options.min_coverage, context.rankable)
    values = (*group_values(measured), *emotion_values(measured))
    units = {unit.key: unit for unit in (*(each.unit for each in measured), *other_units(entered, context.rankable))}
    tests = comparisons(measured, entrants, anyway=options.compare_anyway)
    spreads = fairness(values, measured)
    sides = contrasts(measured, values, anyway=options.compare_anyway)
    tables = [
        *_overview(context, units, values),
        lists.fairness_table(context, units, spreads),
        lists.comparison_table(context, units, tests),
        *_layouts(context, measured, values),
        *side_by_side.tables(context, {each.unit.key: each for each in measured}, sides),
        *(papers.tables(shown=measured) if options.published else ()),
        lists.runs_table(context.runs.values()),
    ]
    rows = paper_values(measured, values) if options.published else Papers({}, ())
    return Report(
        created=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        version=__version__,
        options=_said(options),
        entrants={**entrants, **rows.entrants},
        runs=context.runs,
        units=units,
        tables=tuple(table for table in tables if table.rows),
        groups=(*values, *rows.values),
        fairness=tuple(spreads),
        comparisons=tuple(tests),
        contrasts=tuple(sides),
        problems=tuple(loading.problems),
        samples=FileSamples(runs),
        notes=tuple(_notes(entrants, options)),
    )


def _chosen(loading: Loading, options: Options) -> list[LoadedRun]:
    if options.all_runs:
        return loading.runs
    kept: list[LoadedRun] = []
    for each, reason in newest(loading.runs):
        if reason is None:
            kept.append(each)
        else:
            loading.problems.append(reason)
    return kept


def _nothing(paths: Sequence[str], problems: Sequence[Problem]) -> str:
    seen = "; ".join(f"{problem.path}: {problem.kind}, {problem.detail}" for problem in problems[:3])
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return (
        f"report: no run that can be used in {', '.join(paths)}. Needed are result files of lm-eval or lmms-eval, "
        f"written with --output_path, better with --log_samples.{f' Found: {seen}{more}.' if seen else ''}"
    )


def _context(entrants: Mapping[str, Entrant], runs: Sequence[LoadedRun], options: Options) -> Context:
    def rankable(cell: Cell) -> bool:
        return cell.value is not None and (options.compare_anyway or cell.comparable)

    return Context(entrants, {each.run.key: each.run for each in runs}, rankable, options.published)


def _overview(context: Context, units: Mapping[str, Unit], values: Sequence[GroupValue]) -> Iterator[Table]:
    yield summary.summary(context, list(units.values()))
    yield lists.scores(context, list(units.values()))
    yield lists.details(context, list(units.values()))
    yield summary.cultures(context, units, values)


def _layouts(context: Context, measured: Sequence[Measured], values: Sequence[GroupValue]) -> Iterator[Table]:
    for each in measured:
        if each.unit.benchmark == "culturalvqa":
            yield from culturalvqa.tables(context, each)
        elif each.unit.benchmark == "care":
            yield from care.tables(context, each)
        elif each.unit.key == "crosscult_diagnostic":
            yield from diagnostic.tables(context, each)
        elif each.unit.benchmark == "crosscult":
            yield from crosscult.tables(context, each)
    yield from retention.tables(context, measured)
    yield from cedar.tables(context, [each for each in measured if each.unit.benchmark == "cedar"], values)


def _said(options: Options) -> dict[str, str]:
    return {
        "names": ", ".join(options.names),
        "all_runs": str(options.all_runs).lower(),
        "compare_anyway": str(options.compare_anyway).lower(),
        "published": str(options.published).lower(),
        "min_coverage": f"{options.min_coverage:g}",
    }


def _notes(entrants: Mapping[str, Entrant], options: Options) -> Iterator[str]:
    yield "Intervals are 95 % intervals; they count items that share an image, a scene or a scenario as one cluster."
    if any(entrant.variation for entrant in entrants.values()):
        yield "A row with brackets is a model once more, under the settings in the brackets."
    if options.compare_anyway:
        yield "Asked for: numbers that can't be compared were ranked and tested all the same. Their marks say why not."
    if options.published:
        yield f"Published rows come from {len(published.names())} tables of the papers, with the papers' own judges."
