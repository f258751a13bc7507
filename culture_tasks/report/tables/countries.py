"""Tables of countries: the score of each model for each, and the benchmarks' own means behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.report.model import Column, CountryScore, Table
from culture_tasks.report.numbers.countries import Countries, usual_units
from culture_tasks.report.numbers.overall import COMMON, shared_sources
from culture_tasks.report.tables.grid import COUNT, Context, row_of
from culture_tasks.report.tiles import region_of
from culture_tasks.vocabulary import place


def country_tables(context: Context, countries: Countries) -> tuple[Table, ...]:
    """Returns the table of countries by models, and that of their benchmarks; none without a country."""
    if not countries.scores:
        return ()
    return _by_model(context, countries), _by_benchmark(context, countries.scores)


def _by_model(context: Context, countries: Countries) -> Table:
    scores = {(score.place, score.entrant): score for score in countries.scores}
    models = [key for key in context.entrants if key in {score.entrant for score in countries.scores}]
    columns = [Column("n", "Questions", COUNT), *(Column(key, context.entrants[key].label, COMMON) for key in models)]
    rows = []
    for code in _in_order(countries.scores):
        known = {key: scores[code, key] for key in models if (code, key) in scores}
        owners = [context.scores.units[unit].unit.benchmark or unit for score in known.values() for unit in score.means]
        titles = dict.fromkeys(benchmarks()[name].title if name in benchmarks() else name for name in owners)
        texts = (place(code).name, region_of(code) or "several countries", ", ".join(titles))
        questions = max(score.cell.n for score in known.values())
        cells = (known[key].cell if key in known else None for key in models)
        rows.append(row_of(texts, (questions, *cells), columns))
    headers, notes = ("Country", "Region", "Benchmarks"), tuple(_notes(context, countries))
    return Table("countries", "Countries", headers, tuple(columns), tuple(rows), notes=notes)


def _by_benchmark(context: Context, scores: Sequence[CountryScore]) -> Table:
    units = [key for key in context.scores.units if any(key in score.over for score in scores)]
    columns = [Column("pooled", "Score", COMMON), Column("raw", "Mean", COMMON), Column("n", "Questions", COUNT)]
    columns += [Column(key, context.scores.units[key].unit.title, COMMON, "Means of benchmarks") for key in units]
    order = {code: at for at, code in enumerate(_in_order(scores))}
    rows = [
        row_of(
            (place(score.place).name, context.entrants[score.entrant].label),
            (score.cell, score.raw, score.cell.n, *(score.means.get(key) for key in units)),
            columns,
            score.entrant,
        )
        for score in sorted(scores, key=lambda score: order[score.place])
    ]
    note = (
        "Score: with partial pooling, as in the table of countries. Mean: without; each benchmark that asks about the "
        "country weighs the same. All numbers are on the common scale of 0-100."
    )
    title, headers = "Countries, with the means of the benchmarks", ("Country", "Model")
    return Table("countries_by_benchmark", title, headers, tuple(columns), tuple(rows), notes=(note,))


def _in_order(scores: Sequence[CountryScore]) -> list[str]:
    """Returns the countries by region and name; groups of countries are the last."""
    codes = dict.fromkeys(score.place for score in scores)
    return sorted(codes, key=lambda code: (not region_of(code), region_of(code), place(code).name))


def _notes(context: Context, countries: Countries) -> Iterator[str]:
    usual = usual_units(countries.scores)
    yield (
        "The score of a country is the mean over all benchmarks of the model, had each of them asked about it; each "
        "benchmark weighs the same, and so do its tasks. It is estimated from all answers of the model: the fewer "
        "questions there are about a country, the closer it is to what the benchmarks' difficulty and the model's "
        "other countries suggest. Each metric's own range is mapped to 0-100, 100 being its better end. "
        "Questions that share an image or a scene, and one in several languages or tasks, count once."
    )
    models: dict[tuple[str, ...], list[str]] = {}
    for entrant, over in {score.entrant: score.over for score in countries.scores}.items():
        models.setdefault(over, []).append(context.entrants[entrant].label)
    for over, labels in models.items():
        whose = f"The benchmarks of {', '.join(labels)}" if len(models) > 1 else "The benchmarks"
        yield f"{whose}: {_titles(context, over)}."
    if len(models) > 1:
        yield "Scores over different benchmarks can't be compared."
    if any(score.cell.best for score in countries.scores):
        of_these = f" of {', '.join(models[usual])}" if len(models) > 1 else ""
        yield (
            f"Bold: no other model{of_these} is significantly better for this country, and one is significantly worse "
            "than the best. Each is tested against the best by their intervals, as if these were independent, with "
            "Bonferroni's adjustment over all pairs of models."
        )
    if countries.parts:
        listed = ", ".join(f"{name} for {place(country).name}" for name, country in countries.parts.items())
        yield f"A part of a country counts for it: {listed}."
    if shared := shared_sources(context.scores.units[key].unit for key in usual):
        yield shared
    reasons: dict[str, list[str]] = {}
    for unit, why in countries.beside.items():
        reasons.setdefault(why, []).append(unit)
    for why, units in reasons.items():
        yield f"Not included ({why}): {_titles(context, units)}."


def _titles(context: Context, units: Sequence[str]) -> str:
    return "; ".join(context.scores.units[unit].unit.title for unit in units)
