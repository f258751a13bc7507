"""Tables over all benchmarks: summary, countries, spread over cultures, tests between models, and the runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks, title_of
from culture_tasks.report.model import Column, Comparison, CountryScore, Fairness, ModelMeans, Number, Table, Unit
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.numbers.countries import Countries, usual_units
from culture_tasks.report.numbers.overall import COMMON, shared_sources, why_no_mean
from culture_tasks.report.tables.layout import COUNT, OWN_SCALE, Context, Values, columns_of, filled
from culture_tasks.report.wording import ITEMS_NEEDED, P_VALUE, why_no_interval
from culture_tasks.results.runs import Run
from culture_tasks.vocabulary import place

_COVERAGE = Scale("share", 0.0, 1.0, better=None, digits=3)


def summary(context: Context, units: Sequence[Unit], means: Sequence[ModelMeans]) -> Table:
    """Returns every headline score on its own scale, and the means over common columns."""
    headline = [unit for unit in units if unit.headline]
    inside = {column for mean in means for column in mean.columns}
    columns: list[Column] = []
    for unit in sorted(headline, key=lambda unit: unit.key not in inside):
        scale, header = unit.scale, "" if unit.key in inside or not inside else "In no mean"
        ends = f" ({scale.low:g}-{scale.high:g})" if scale.ends else ""
        label = unit.title + (" (%)" if ends and scale.unit == "percent" else ends)
        not_run = {key: Number(None, scale, note="not run") for key in context.entrants if key not in unit.cells}
        columns.append(Column(unit.key, label, scale, {**not_run, **unit.cells}, over=header))
    columns += [Column(mean.key, mean.title, COMMON, mean.cells, sums_up=True) for mean in reversed(means)]
    notes = ["; ".join(f"{unit.title}: {unit.measure}" for unit in headline) + "."]
    if means:
        notes.append("For a mean each metric's range is mapped to 0-100, 100 being its better end.")
    titles = {unit.key: unit.title for unit in headline}
    notes += [note for mean in means for note in _mean_notes(context, mean, titles)]
    joint = (shared_sources(unit for unit in headline if unit.key in mean.columns) for mean in means)
    notes += dict.fromkeys(filter(None, joint))
    if any(unit.standing.ranked for unit in headline):
        notes.append(
            "A rank (#) is the places that the tests leave a model; the first is 1 plus the number of models that are "
            "significantly better. Bold: no other model is significantly better; where no two are significantly "
            "different, none is bold."
        )
    notes += _notes_on_intervals(context, headline)
    if any("corrected" in cell.flags for unit in headline for cell in unit.cells.values()):
        notes.append(
            "Scores, ranks and differences are corrected by people's ratings on each benchmark where all models have "
            "enough of them, and are the judge's elsewhere; scores of cultures are always the judge's."
        )
    is_graded = not any("unjudged" in cell.flags for unit in headline for cell in unit.cells.values())
    models = {entrant.model for entrant in context.entrants.values()}
    if not means and len(headline) > 1 and len(models) > 1 and is_graded:
        notes.append(f"The models can't be ranked by a mean: {why_no_mean(headline)}.")
    order = [key for mean in means for key in sorted(mean.cells, key=lambda key: -(mean.cells[key].value or 0.0))]
    rows = {key: (context.entrants[key].label,) for key in (*order, *context.entrants)} if columns else {}
    return Table("summary", "Scores", columns=tuple(columns), rows=rows, notes=tuple(notes), question="best")


def _notes_on_intervals(context: Context, units: Sequence[Unit]) -> Iterator[str]:
    """Yields each reason for which scores have no interval, with the first six of them."""
    reasons: dict[str, list[str]] = {}
    for unit in units:
        for key, cell in unit.cells.items():
            if reason := why_no_interval(cell):
                reasons.setdefault(reason, []).append(f"{unit.title} of {context.entrants[key].label}")
    for reason, names in reasons.items():
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        yield f"{reason[0].upper()}{reason[1:]}, for {'; '.join(names[:6])}{more}."


def _mean_notes(context: Context, mean: ModelMeans, titles: Mapping[str, str]) -> Iterator[str]:
    count, total = (len({context.entrants[key].model for key in keys}) for keys in (mean.cells, context.entrants))
    part = f"{count} of {total}" if count < total else f"all {total}"
    shared = f", which {part} models share" if total > 1 else ""
    yield (
        f"{mean.title}: over {'; '.join(titles[key] for key in mean.columns)}{shared}. Every benchmark weighs the "
        "same, and so do the columns of one benchmark."
    )
    yield from _notes_by_reason("Outside the mean", mean.beside, titles)


def _notes_by_reason(subject: str, reasons: Mapping[str, str], titles: Mapping[str, str]) -> Iterator[str]:
    for reason in dict.fromkeys(reasons.values()):
        yield f"{subject} ({reason}): {'; '.join(titles[key] for key in reasons if reasons[key] == reason)}."


def fairness_table(context: Context, units: Mapping[str, Unit], spreads: Sequence[Fairness]) -> Table:
    """Returns how evenly each score spreads over cultures, on the score's own scale."""
    columns = (
        *columns_of(OWN_SCALE, best="Best", worst="Worst"),
        Column("gap", "Gap", Scale("the score's own", 0.0, None, better="lower", neutral=0.0)),
        Column("variance", "Variance", Scale("the score's own, squared", 0.0, None, better="lower", neutral=0.0)),
        Column("groups", "Groups", COUNT),
    )
    rows: list[tuple[tuple[str, ...], Values]] = []
    for spread in (spread for spread in spreads if units[spread.unit].headline):
        unit, points = units[spread.unit], spread.scale
        squared = Scale(f"squared {points.unit}", 0.0, None, better="lower", neutral=0.0, digits=points.digits + 1)
        flags = unit.cells[spread.entrant].flags
        values: Values = {
            "best": Number(spread.best_value, points, flags=flags),
            "worst": Number(spread.worst_value, points, flags=flags),
            "gap": Number(spread.gap, points, flags=flags),
            "variance": None if spread.variance is None else Number(spread.variance, squared, flags=flags),
            "groups": spread.groups,
        }
        groups = (spread.best or "all equal", spread.worst or "all equal")
        rows.append(((unit.title, context.entrants[spread.entrant].label, *groups), values))
    note = (
        "Worst is the worst-group score. Gap is best less worst; variance is over the groups' scores. 0 would be no "
        "difference, but groups of few items differ by chance alone: see their intervals."
    )
    headers = ("Benchmark", "Model", "Best group", "Worst group")
    return filled(Table("fairness", "Spread over cultures", headers, columns, notes=(note,)), rows)


def comparison_table(
    context: Context, units: Mapping[str, Unit], tests: Sequence[Comparison], means: Sequence[ModelMeans]
) -> Table:
    """Returns every test between two entrants: on a benchmark, and of their means."""
    columns = (
        Column("difference", "B - A", OWN_SCALE),
        *columns_of(OWN_SCALE, judge="Judge's B - A"),
        *columns_of(COUNT, rated="Rated items"),
        *columns_of(P_VALUE, p="p", p_holm="p (Holm)"),
        *columns_of(COUNT, n="Common items"),
        *columns_of(ITEMS_NEEDED, needed="Items needed"),
    )
    listed = [(test, units[test.unit].title, units[test.unit].scale) for test in tests]
    listed += [(test, mean.title, COMMON) for mean in means for test in mean.comparisons]
    count = len(listed)
    p_values = [math.inf if test.p is None else test.p for test, _, _ in listed]
    by_p = sorted(range(count), key=p_values.__getitem__)
    listed = [listed[index] for index in sorted(by_p[:_MOST_TESTS])]
    rows = (_test_row(context, *entry) for entry in listed)
    note = (
        "On the items that both answered. Holm's adjustment is over all pairs of a benchmark, or of a mean. The "
        "interval has the same adjustment; it is Student's t, and where it disagrees with p about 0, p decides; "
        "of one draw of questions, it is for all of them. "
        "Fragile: one grossly wrong answer that these items missed could undo it. Items needed: how many common items "
        "would make this difference significant 4 times out of 5, after the same adjustment."
    )
    is_corrected = any(test.is_corrected for test, _, _ in listed)
    cut = f"These are the {_MOST_TESTS:,} of {count:,} tests with the smallest p; report.json has all of them."
    notes = (note, *([_ABOUT_CORRECTIONS] if is_corrected else []), *([cut] if count > _MOST_TESTS else []))
    headers, title = ("Benchmark", "A", "B", "Verdict", "Test"), "Differences between models"
    return filled(Table("comparisons", title, headers, columns, notes=notes, question="best"), rows)


def _test_row(context: Context, test: Comparison, title: str, scale: Scale) -> tuple[tuple[str, ...], Values]:
    points, correction = scale_of_differences(scale), test.correction if test.is_corrected else None
    values: dict[str, Number | float | None] = {
        "difference": Number(test.difference, points, low=test.low, high=test.high, n=test.n, flags=test.flags),
        "p": test.p,
        "p_holm": test.p_holm,
        "n": test.n,
        "needed": test.items_needed,
    }
    if correction is not None:
        values["judge"] = Number(correction.judge, points, correction.judge_low, correction.judge_high, n=test.n)
        values["rated"] = correction.rated
    labels = (context.entrants[test.first].label, context.entrants[test.second].label)
    return (title, *labels, test.verdict, test.test), values


_MOST_TESTS = 2_000
"""Most rows of the table of tests: all pairs of many models are more than a page can show."""

_ABOUT_CORRECTIONS = (
    "Where people rated responses of all models, the differences are corrected by their ratings; the judge's "
    "differences are beside them. Where a judge graded samples of responses that another judge has graded all of, it "
    "takes the place of people. Differences are those of items that were rated of both, which may be a little off the "
    "difference of the two corrected scores. The interval allows for the judge's bias."
)


def runs_table(runs: Iterable[Run]) -> Table:
    """Returns every run in use, with the settings that decide whether it can be compared."""
    columns = (
        *columns_of(COUNT, items="Items", scored="Scored"),
        *columns_of(_COVERAGE, coverage="Coverage", unparsed="Unparsed"),
    )
    rows: list[tuple[tuple[str, ...], Values]] = []
    for run in runs:
        settings, harness = run.settings, run.harness.replace("_", "-")
        texts = (run.model, title_of(run.task), harness, settings.judged_by, settings.task_version, run.date)
        scored = run.scored if run.samples else None
        values = {"items": run.items or None, "scored": scored, "coverage": run.coverage, "unparsed": run.unparsed}
        rows.append((texts, values))
    headers = ("Model", "Task", "Harness", "Judge", "Version", "Date")
    notes = ("Unparsed: the share of replies from which no answer could be read, where no judge grades.",)
    return filled(Table("runs", "Runs", headers, columns, notes=notes, question="runs"), rows)


# Countries: the score of each model for each, and the means of the benchmarks behind it


def country_tables(context: Context, countries: Countries) -> tuple[Table, ...]:
    """Returns the table of countries by models, and that of their benchmarks; none without a country."""
    if not countries.scores:
        return ()
    return _countries_by_model(context, countries), _countries_by_benchmark(context, countries.scores)


def _countries_by_model(context: Context, countries: Countries) -> Table:
    scores = {(score.place, score.entrant): score for score in countries.scores}
    models = [key for key in context.entrants if key in {score.entrant for score in countries.scores}]
    columns = (
        Column("n", "Questions", COUNT),
        *(Column(key, context.entrants[key].label, COMMON) for key in models),
    )
    rows: list[tuple[tuple[str, ...], Values]] = []
    for code in _in_order(countries.scores):
        by_model = {key: scores[code, key] for key in models if (code, key) in scores}
        units = [context.scores.units[key] for score in by_model.values() for key in score.means]
        owners = [unit.benchmark or unit.key for unit in units]
        titles = dict.fromkeys(benchmarks()[name].title if name in benchmarks() else name for name in owners)
        questions = max(score.cell.n for score in by_model.values())
        values: Values = {"n": questions, **{key: score.cell for key, score in by_model.items()}}
        rows.append(((place(code).name, ", ".join(titles)), values))
    headers, notes = ("Country", "Benchmarks"), tuple(_country_notes(context, countries))
    return filled(Table("countries", "Countries", headers, columns, notes=notes), rows)


def _countries_by_benchmark(context: Context, scores: Sequence[CountryScore]) -> Table:
    units = [key for key in context.scores.units if any(key in score.over for score in scores)]
    columns = (
        *columns_of(COMMON, pooled="Score", raw="Mean"),
        *columns_of(COUNT, n="Questions"),
        *(Column(key, context.scores.units[key].title, COMMON, over="Means of benchmarks") for key in units),
    )
    order = {code: index for index, code in enumerate(_in_order(scores))}
    rows: list[tuple[tuple[str, ...], Values]] = [
        (
            (place(score.place).name, context.entrants[score.entrant].label),
            {"pooled": score.cell, "raw": score.raw, "n": score.cell.n, **score.means},
        )
        for score in sorted(scores, key=lambda score: order[score.place])
    ]
    note = (
        "Score: with partial pooling, as in the table of countries. Mean: without; each benchmark that asks about the "
        "country weighs the same. All numbers are on the common scale of 0-100."
    )
    title, headers = "Countries, with the means of the benchmarks", ("Country", "Model")
    return filled(Table("countries_by_benchmark", title, headers, columns, notes=(note,)), rows)


def _in_order(scores: Sequence[CountryScore]) -> list[str]:
    """Returns the countries by name; groups of countries are the last."""
    codes = dict.fromkeys(score.place for score in scores)
    return sorted(codes, key=lambda code: (not place(code).country, place(code).name))


def _country_notes(context: Context, countries: Countries) -> Iterator[str]:
    usual, titles = usual_units(countries.scores), {key: unit.title for key, unit in context.scores.units.items()}
    yield (
        "The score of a country is the mean over all benchmarks of the model, had each of them asked about it; each "
        "benchmark weighs the same, and so do its tasks. It is estimated from all answers of the model: the fewer "
        "questions there are about a country, the closer it is to what the benchmarks' difficulty and the model's "
        "other countries suggest. Each metric's range is mapped to 0-100, 100 being its better end. "
        "Questions that share an image or a scene, and one in several languages or tasks, count once."
    )
    models: dict[tuple[str, ...], list[str]] = {}
    for entrant, units in {score.entrant: score.over for score in countries.scores}.items():
        models.setdefault(units, []).append(context.entrants[entrant].label)
    for units, labels in models.items():
        subject = f"The benchmarks of {', '.join(labels)}" if len(models) > 1 else "The benchmarks"
        yield f"{subject}: {'; '.join(titles[key] for key in units)}."
    if len(models) > 1:
        yield "Scores over different benchmarks can't be compared."
    if any(score.cell.best for score in countries.scores):
        scope = f" of {', '.join(models[usual])}" if len(models) > 1 else ""
        yield (
            f"Bold: no other model{scope} is significantly better for this country, and one is significantly worse "
            "than the best. Each is tested against the best by their intervals, as if these were independent, with "
            "Bonferroni's adjustment over all pairs of models."
        )
    if countries.parts:
        parts = ", ".join(f"{name} for {place(country).name}" for name, country in countries.parts.items())
        yield f"A part of a country counts for it: {parts}."
    if shared := shared_sources(context.scores.units[key] for key in usual):
        yield shared
    yield from _notes_by_reason("Not included", countries.beside, titles)
