"""Tables over all benchmarks: summary, cultures, scores, their spread, tests between models, and the runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import CULTURES, At
from culture_tasks.report.model import Cell, Column, Comparison, Fairness, ModelMeans, Row, Table, Unit
from culture_tasks.report.numbers.comparisons import scale_of_differences, with_best
from culture_tasks.report.numbers.overall import COMMON, mean_cell, to_common, weights
from culture_tasks.report.numbers.scores import Scores
from culture_tasks.report.tables.grid import COUNT, OWN_SCALE, Context, Place, cell_with, grid
from culture_tasks.report.wording import ITEMS_NEEDED, P_VALUE
from culture_tasks.results.runs import Run

_RANK = Scale("rank", 1.0, None, better=None)
_COVERAGE = Scale("share", 0.0, 1.0, better=None, digits=3)


_ABOUT_RANKS = (
    "A rank (#) is the places that the tests leave a model; the first is 1 plus the number of models that are "
    "significantly better. Bold: no other model is significantly better; where the tests tell none apart, none is bold."
)


def summary(context: Context, units: Sequence[Unit], means: Sequence[ModelMeans]) -> Table:
    """Every headline score on its own scale, and the means over common columns."""
    headline = [unit for unit in units if unit.headline]
    inside = {column for mean in means for column in mean.columns}
    places: list[Place] = []
    for unit in sorted(headline, key=lambda unit: unit.key not in inside):
        over = "" if unit.key in inside or not inside else "In no mean"
        label = " ".join(part for part in (unit.title, _range(unit.scale)) if part)
        missing = {key: Cell(None, unit.scale, note="not run") for key in context.entrants if key not in unit.cells}
        places.append(Place(Column(unit.key, label, unit.scale, over), {**missing, **unit.cells}))
    for mean in reversed(means):
        if mean.mean_ranks:
            label = mean.title.replace("Mean", "Mean rank").rpartition(" of ")[0]
            places.append(Place(Column(mean.key.replace("mean", "mean_rank"), label, _RANK), mean.mean_ranks))
        places.append(Place(Column(mean.key, mean.title, COMMON, sums_up=True), mean.cells))
    table = Table(
        "summary",
        "Scores",
        row_headers=("Model",),
        columns=(),
        rows=(),
        notes=(
            "; ".join(f"{unit.title}: {unit.metric}" for unit in headline) + ".",
            *(["For a mean each metric's own range is mapped to 0-100, 100 being its better end."] if means else []),
            *(note for mean in means for note in _about_mean(context, mean)),
            *([_ABOUT_RANKS] if any(unit.standing.ranked for unit in headline) else []),
            *([] if means or len(headline) < 2 else ["There is no mean: no two models share two of these columns."]),
        ),
        question="best",
    )
    order = [key for mean in means for key in sorted(mean.cells, key=lambda key: -(mean.cells[key].value or 0.0))]
    rows = dict.fromkeys((*order, *context.entrants))
    return grid(context, table, places=places, rows=rows, labels=lambda key: (context.entrants[key].label,))


def _range(scale: Scale) -> str:
    """Returns the ends of a metric's range, for a header."""
    if scale.low is None or scale.high is None:
        return ""
    return "(%)" if scale.unit == "percent" else f"({scale.low:g}-{scale.high:g})"


def _about_mean(context: Context, mean: ModelMeans) -> Iterator[str]:
    """Yields the columns of a mean, the models without one, and the columns that are not in it."""
    having, every = (len({context.entrants[key].model for key in keys}) for keys in (mean.cells, context.entrants))
    part = f"{having} of {every}" if having < every else f"all {every}"
    shared = f", which {part} models share" if every > 1 else ""
    yield (
        f"{mean.title}: over {', '.join(mean.columns)}{shared}. Every benchmark weighs the same, and so do the columns "
        "of one benchmark."
    )
    reasons: dict[str, list[str]] = {}
    for column, why in mean.beside.items():
        reasons.setdefault(why, []).append(column)
    if reasons:
        listed = "; ".join(f"{', '.join(columns)} ({why})" for why, columns in reasons.items())
        yield f"Not in it: {listed}."


def cultures(context: Context, scores: Scores, means: Sequence[ModelMeans]) -> Table:
    """One profile per culture over the benchmarks that have it, on the common scale."""
    places: list[Place] = []
    for culture, addresses in _shared_cultures(scores).items():
        units = [scores.units[address.unit].unit for address in addresses]
        if len({unit.benchmark for unit in units}) > 1:
            columns = [
                Place(
                    Column(f"{culture} {unit.key}", unit.title, scale=COMMON, over=culture),
                    {
                        key: on_common
                        for key, cell in with_best(scores, address, context.rankable).items()
                        if (on_common := to_common(cell)) is not None
                    },
                )
                for unit, address in zip(units, addresses, strict=True)
            ]
            places += columns
            for mean in means:
                inside = [(place, unit) for place, unit in zip(columns, units, strict=True) if unit.key in mean.columns]
                if len(inside) > 1:
                    places.append(_culture_mean(culture, mean, inside=inside, context=context))
    note = "Only cultures that two of the benchmarks here share."
    if means:
        note += (
            " A mean is over the columns that are in the mean of the same name over benchmarks, of models that have "
            "all of them; every benchmark weighs the same, and so do the columns of one benchmark."
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


def _culture_mean(culture: str, mean: ModelMeans, inside: Sequence[tuple[Place, Unit]], context: Context) -> Place:
    """Returns the mean of a culture's columns, of the models that have a comparable number in each of them."""
    counted = weights([unit for _, unit in inside])
    cells: dict[str, Cell] = {}
    for key in mean.cells:
        own = [cell for place, _ in inside if (cell := place.cells.get(key)) is not None and context.rankable(cell)]
        if len(own) == len(inside):
            cells[key] = mean_cell(own, counted)
    label = mean.title.rpartition(" of ")[0]
    return Place(Column(f"{culture} {mean.key}", f"{label} of {len(inside)}", scale=COMMON, over=culture), cells)


def fairness_table(context: Context, units: Mapping[str, Unit], spreads: Sequence[Fairness]) -> Table:
    """How evenly each score spreads over cultures, on the score's own scale."""
    rows: list[Row] = []
    for each in (each for each in spreads if units[each.unit].headline):
        unit, digits = f"squared {each.scale.unit}", each.scale.digits + 1
        squared = Scale(unit, 0.0, None, better="lower", neutral=0.0, digits=digits)
        flags = units[each.unit].cells[each.entrant].flags
        cells = (
            Cell(each.best_value, each.scale, flags=flags),
            Cell(each.worst_value, each.scale, flags=flags),
            Cell(each.gap, each.scale, flags=flags),
            None if each.variance is None else Cell(each.variance, squared, flags=flags),
            Cell(float(each.groups), COUNT),
        )
        groups = (each.best or "all equal", each.worst or "all equal")
        texts = (units[each.unit].title, context.entrants[each.entrant].label, *groups)
        rows.append(Row(texts, cells, each.entrant))
    columns = (
        Column("best", "Best", OWN_SCALE),
        Column("worst", "Worst", OWN_SCALE),
        Column("gap", "Gap", Scale("the score's own", 0.0, None, better="lower", neutral=0.0)),
        Column("variance", "Variance", Scale("the score's own, squared", 0.0, None, better="lower", neutral=0.0)),
        Column("groups", "Groups", COUNT),
    )
    note = (
        "Worst is the worst-group score. Gap is best less worst, variance that of the groups' scores; 0 would be no "
        "difference, but groups of few items differ by chance alone: see their intervals."
    )
    headers = ("Benchmark", "Model", "Best group", "Worst group")
    return Table(
        "fairness", "Spread over cultures", row_headers=headers, columns=columns, rows=tuple(rows), notes=(note,)
    )


def comparison_table(
    context: Context, units: Mapping[str, Unit], tests: Sequence[Comparison], means: Sequence[ModelMeans]
) -> Table:
    """Every test between two entrants: on a benchmark, and of their means."""
    columns = (
        Column("difference", "B - A", OWN_SCALE),
        Column("p", "p", P_VALUE),
        Column("p_holm", "p (Holm)", P_VALUE),
        Column("n", "Common items", COUNT),
        Column("needed", "Items needed", ITEMS_NEEDED),
    )
    rows = [
        _comparison_row(context, each, title=units[each.unit].title, scale=units[each.unit].scale) for each in tests
    ]
    rows += [
        _comparison_row(context, each, title=mean.title, scale=COMMON) for mean in means for each in mean.comparisons
    ]
    note = (
        "On the items that both answered. Holm's adjustment is over all pairs of a benchmark, or of a mean. The "
        "interval is the test's own, with the same adjustment: it leaves 0 out exactly where the two are told "
        "apart. Items needed: how many common items would tell the two apart at this difference 4 times out of 5, "
        "after the same adjustment. A task of the harnesses is tested where its samples are there and their mean is "
        "its score."
    )
    headers = ("Benchmark", "A", "B", "Verdict", "Test")
    return Table(
        "comparisons",
        "Differences between models",
        question="best",
        row_headers=headers,
        columns=columns,
        rows=tuple(rows),
        notes=(note,),
    )


def _comparison_row(context: Context, each: Comparison, title: str, scale: Scale) -> Row:
    labels = (context.entrants[each.first].label, context.entrants[each.second].label)
    return Row(
        (title, *labels, each.verdict, each.test),
        (
            Cell(
                each.difference, scale_of_differences(scale), low=each.low, high=each.high, n=each.n, flags=each.flags
            ),
            cell_with(each.p, P_VALUE),
            cell_with(each.p_holm, P_VALUE),
            cell_with(each.n, COUNT),
            cell_with(each.items_needed, ITEMS_NEEDED),
        ),
    )


def runs_table(runs: Iterable[Run]) -> Table:
    """Every run in use, with what decides whether it can be compared."""
    columns = (
        Column("items", "Items", COUNT),
        Column("scored", "Scored", COUNT),
        Column("coverage", "Coverage", _COVERAGE),
        Column("unparsed", "Unparsed", _COVERAGE),
    )
    rows: list[Row] = []
    for run in runs:
        cells = (
            cell_with(run.items, COUNT),
            cell_with(run.scored, COUNT),
            cell_with(run.coverage, _COVERAGE),
            cell_with(run.unparsed, _COVERAGE),
        )
        texts = (
            run.model,
            run.task,
            run.harness.replace("_", "-"),
            run.settings.judged_by,
            run.settings.task_version,
            run.date,
        )
        rows.append(Row(texts, cells))
    headers = ("Model", "Task", "Harness", "Judge", "Version", "Date")
    notes = ("Unparsed: the share of replies from which no answer could be read, where no judge grades.",)
    return Table("runs", "Runs", row_headers=headers, columns=columns, rows=tuple(rows), notes=notes, question="runs")
