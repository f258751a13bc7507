"""From paths to a finished report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from culture_tasks import __version__, published
from culture_tasks.benchmarks.registry import title_of
from culture_tasks.costs.prices import Prices
from culture_tasks.errors import DataError, SettingsError, hint
from culture_tasks.people.spotcheck_design import RatedDesign
from culture_tasks.report.figures import finished
from culture_tasks.report.model import Number, Report, Table
from culture_tasks.report.numbers.comparisons import comparisons, fairness, rank_units
from culture_tasks.report.numbers.contrasts import contrasts, gains
from culture_tasks.report.numbers.countries import country_scores
from culture_tasks.report.numbers.estimates import all_numbers, measure, unlike_its_file
from culture_tasks.report.numbers.findings import findings
from culture_tasks.report.numbers.other_tasks import other_units
from culture_tasks.report.numbers.overall import means
from culture_tasks.report.tables import costs, judge_panels, overview, people
from culture_tasks.report.tables.benchmark_tables import before_after, benchmark_parts
from culture_tasks.report.tables.layout import Context
from culture_tasks.results.file_samples import FileSamples
from culture_tasks.results.loading import Names, Results, in_rows, load, newest
from culture_tasks.results.runs import Run
from culture_tasks.results.trained_on import TrainingManifests, lineages


@dataclass(frozen=True, slots=True)
class Options:
    """The user's options for a report.

    Attributes:
        names: ``PATTERN=NAME`` pairs that name models.
        all_runs: Keep older runs of the same model, task and settings, each in its own row.
        compare_anyway: Rank and test also numbers that can't be compared; the flags stay.
        published: Put the papers' rows below the user's.
        min_coverage: Share of scored verdicts under which a number is flagged.
        prices: Prices of models and judges; None leaves money out.
        tables: Keys or patterns of the tables to show; none means all.
        trained: ``TRAINED=BASE`` pairs of patterns of models, to set side by side.
        trained_on: ``MODEL=DIR`` pairs: patterns of models, and folders of the preference data they were trained on.
        rated: Responses that people rated.
    """

    names: tuple[str, ...] = ()
    all_runs: bool = False
    compare_anyway: bool = False
    published: bool = False
    min_coverage: float = 0.95
    prices: Prices | None = None
    tables: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    trained_on: tuple[str, ...] = ()
    rated: tuple[RatedDesign, ...] = ()

    def rankable(self, cell: Number) -> bool:
        """Whether a number is ranked and averaged."""
        return cell.value is not None and (self.compare_anyway or cell.comparable)


def build(
    paths: Sequence[str],
    options: Options,
    now: datetime | None = None,
    progress: Callable[[Sequence[Path]], Iterable[Path]] = iter,
) -> Report:
    """Builds the report of result and sample files.

    Args:
        paths: Files, folders and glob patterns.
        options: The user's options.
        now: Time of the report; None means now.
        progress: Yields the result files that it gets, to show how many are read.

    Raises:
        DataError: If no run can be used, or a folder of preference data has no manifest.
        SettingsError: If a pair can't be read, or if a pair or a table fits nothing.
    """
    all_runs, results = _runs(paths, options, progress)
    anyway, entrants, used_runs = options.compare_anyway, results.rows, {run.key: run for run in results.runs}
    our_units = measure(results, options.min_coverage)
    all_units = [*our_units, *other_units(results)]
    rated = people.checked_units(options.rated, our_units, entrants)
    people_rated = people.corrected_by_people(our_units, rated)
    tests = tuple(comparisons(all_units, entrants, people_rated, anyway=anyway))
    rank_units(all_units, tests, options.rankable)
    scores = all_numbers(all_units, results)
    context = Context(entrants, used_runs, scores, options.published, options.rankable)
    report = Report(
        created=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        version=__version__,
        options=_in_words(options),
        entrants=entrants,
        runs=used_runs,
        numbers=scores,
        tables=(),
        fairness=tuple(fairness(scores)),
        comparisons=tests,
        contrasts=tuple(contrasts(scores, anyway=anyway)),
        gains=tuple(gains(lineages(results, options.trained), all_units, used_runs, entrants, anyway=anyway)),
        means=means(scores.units, entrants, people_rated, rankable=options.rankable),
        problems=tuple(results.problems),
        samples=FileSamples(results.runs, results.samples),
        notes=tuple(_notes(results, options)),
    )
    people_tables, checked = people.checked_by_people(options.rated, rated)
    judges = judge_panels.judge_panels(context, all_runs), judge_panels.repeated_verdicts(results, all_runs)
    report = _with_tables(report, context, [*people_tables, *judges], options)
    return replace(report, findings=findings(report, checked, paths))


def _with_tables(report: Report, context: Context, more: Sequence[Table], options: Options) -> Report:
    """Returns a report with its tables, figures and the scores of countries; more tables stand before the costs."""
    by_country = country_scores(context.scores, context.rankable)
    layouts, figures = benchmark_parts(context, report.contrasts)
    summary = overview.summary(context, list(report.units.values()), report.means)
    tables = (
        summary,
        *overview.country_tables(context, by_country),
        overview.fairness_table(context, report.units, report.fairness),
        overview.comparison_table(context, report.units, report.comparisons, report.means),
        *layouts,
        before_after(context, report.gains),
        *more,
        costs.costs_table(context.scores.results, options.prices),
        overview.runs_table(report.runs.values()),
    )
    in_mean = report.means[0].columns if report.means else ()
    return replace(
        report,
        tables=_select_tables([table for table in tables if table.rows], options.tables),
        countries=by_country.scores,
        figures=finished(figures, summary, report.entrants, by_country.scores, in_mean),
    )


def checked_scores(paths: Sequence[str], options: Options) -> list[people.CheckedUnit]:
    """Reads result and sample files, and returns the scores with responses that people rated."""
    _, results = _runs(paths, options, iter, "spotcheck")
    return people.checked_units(options.rated, measure(results, options.min_coverage), results.rows)


def _runs(
    paths: Sequence[str],
    options: Options,
    progress: Callable[[Sequence[Path]], Iterable[Path]],
    command: str = "report",
) -> tuple[Sequence[Run], Results]:
    """Returns all runs, and the results of those that are used."""
    names, trained_on = Names(options.names), TrainingManifests(options.trained_on)
    loading = load(paths, names, trained_on=trained_on, progress=progress)
    names.refuse_unfitting()
    trained_on.refuse_unfitting()
    runs = list(loading.runs)
    if not options.all_runs:
        runs_and_reasons = list(newest(loading.runs))
        runs = [run for run, reason in runs_and_reasons if reason is None]
        loading.problems.extend(reason for _, reason in runs_and_reasons if reason is not None)
    if not runs:
        problems = loading.problems
        examples = "; ".join(f"{problem.path}: {problem.kind}, {problem.detail}" for problem in problems[:3])
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        where = ", ".join(paths) or "nothing: no path is named"
        raise DataError(
            f"{command}: no run that can be used in {where}. Expected result files of lm-eval or lmms-eval, "
            f"written with --output_path, better with --log_samples.{f' Found: {examples}{more}.' if examples else ''}"
        )
    used, rows = in_rows(runs)
    return loading.runs, Results(used, loading.reader, loading.problems, rows)


def _in_words(options: Options) -> dict[str, str]:
    return {
        "names": ", ".join(options.names),
        "all_runs": str(options.all_runs).lower(),
        "compare_anyway": str(options.compare_anyway).lower(),
        "published": str(options.published).lower(),
        "min_coverage": f"{options.min_coverage:g}",
        "tables": ", ".join(options.tables),
        "rated": ", ".join(source.task for draw in options.rated for source in draw.design.populations),
        "trained": ", ".join(options.trained),
        "trained_on": ", ".join(options.trained_on),
    }


def _select_tables(tables: Sequence[Table], patterns: Sequence[str]) -> tuple[Table, ...]:
    """Returns the tables that fit the user's keys or patterns; no pattern means all."""
    keys = [table.key for table in tables]
    for pattern in patterns:
        if not any(fnmatchcase(key, pattern) for key in keys):
            raise SettingsError(f"report: --tables {pattern!r} fits nothing.{hint(pattern, keys)}")
    return tuple(
        table for table in tables if not patterns or any(fnmatchcase(table.key, pattern) for pattern in patterns)
    )


def _notes(results: Results, options: Options) -> Iterator[str]:
    yield "Intervals are 95 % intervals; they count items that share an image, a scene or a scenario as one cluster."
    if any(row.variation for row in results.rows.values()):
        yield "A row with brackets is a model once more, under the settings in the brackets."
    trained: dict[str, dict[str, str]] = {}
    for run in results.runs:
        if unlike := unlike_its_file(run, results):
            yield (
                f"{run.model} on {title_of(run.task)}: {unlike}. The two files aren't of one run, or one was changed: "
                "the scores are marked, and neither ranked, tested nor averaged unless --compare-anyway is given."
            )
        if run.trained_on:
            share = f"{run.trained_on} of {run.items}" if run.items else str(run.trained_on)
            trained.setdefault(run.model, {})[run.task] = f"{title_of(run.task)} ({share})"
    for model, shares in trained.items():
        yield (
            f"{model} was trained on items of {', '.join(shares.values())}, as the manifest of its training data says. "
            "Its scores there are marked, and neither ranked, tested nor averaged unless --compare-anyway is given."
        )
    if own_data := [
        f"{title_of(run.task)} ({run.own_data.partition('; ')[0]})" for run in results.runs if run.own_data
    ]:
        tasks = "; ".join(dict.fromkeys(own_data))
        yield f"Own data, not the benchmark's release: {tasks}."
    if options.compare_anyway:
        yield "By --compare-anyway, numbers are ranked and tested even if settings differ; they stay marked."
    if options.published:
        yield f"Published rows come from {len(published.names())} tables of papers or their authors, with their judges."
