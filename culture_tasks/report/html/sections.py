"""Parts of the page beside its tables: what holds for all, fairness, comparisons, figures, runs and files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from culture_tasks.report.html.markup import Markup, joined, name_of, paragraph, tag
from culture_tasks.report.html.numbers import NO_NUMBER, flag_words, interval, number, short_name
from culture_tasks.report.html.tables import plain_table, scrolled
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.model import Cell, Comparison, Fairness, Report, Run


def facts(report: Report) -> Markup:
    """Returns what the report is made of, in one list."""
    items = sum(run.items for run in report.runs.values())
    papers = sum(entrant.published for entrant in report.entrants.values())
    lines = {
        "Made": f"{report.created}, culture-tasks {report.version}",
        "Rows": f"{len(report.entrants) - papers} of yours, {papers} from papers",
        "Runs": f"{len(report.runs)}, with {items:,} samples",
        "Files left out": str(len(report.problems)),
        "Options": ", ".join(f"{key} {value}" for key, value in report.options.items()) or "none",
    }
    pairs = [joined([tag("dt", key), tag("dd", name_of(text))]) for key, text in lines.items()]
    return joined([tag("dl", *pairs, class_="facts"), *(paragraph(note, class_="note") for note in report.notes)])


def flag_legend(report: Report) -> Markup:
    """Returns what the flags mean that occur in the report's tables."""
    used = {flag for table in report.tables for row in table.rows for cell in row.cells if cell for flag in cell.flags}
    pairs = [
        joined([tag("dt", short_name(flag)), tag("dd", text, " (not comparable)" if flag in NOT_COMPARABLE else None)])
        for flag, text in FLAG_TEXT.items()
        if flag in used
    ]
    if not pairs:
        return Markup()
    rule = "Cells that are not comparable are neither ranked nor tested, unless the options say so."
    return tag("details", tag("summary", "What the flags mean"), tag("dl", *pairs), tag("p", rule))


def figure_section(chart: Chart, svg: bytes) -> Markup:
    """Returns a figure, with its numbers as tables for those who don't see it."""
    title = f"figure-{chart.key}"
    address = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"
    image = tag("img", src=address, alt=chart.description, loading="lazy", decoding="async")
    caption = tag("figcaption", "After ", chart.source, ". ", "; ".join(chart.notes))
    tables = [_panel_table(chart, panel, f"{title}-{place}") for place, panel in enumerate(chart.panels)]
    numbers = tag("details", tag("summary", "Numbers of this figure"), *tables)
    figure = tag("figure", tag("div", image, class_="paper"), caption, numbers)
    return tag("section", tag("h2", name_of(chart.title), id=title), figure, class_="figure")


def _panel_table(chart: Chart, panel: Panel, key: str) -> Markup:
    rows = [
        (series.label, *(_with_interval(series.cells.get(group)) for group in panel.groups)) for series in panel.series
    ]
    table = plain_table((chart.series, *panel.groups), rows, range(1, len(panel.groups) + 1))
    return joined([tag("h3", name_of(panel.title), id=key), scrolled(table, key)])


def _with_interval(cell: Cell | None) -> str:
    if cell is None:
        return NO_NUMBER
    ends = interval(cell)
    return f"{number(cell.value, cell.scale)} ({ends})" if ends else number(cell.value, cell.scale)


def fairness_section(report: Report) -> Markup:
    """Returns how evenly scores spread over groups, or nothing."""
    headers = ("model", "benchmark", "groups", "best group", "score", "worst group", "score", "gap", "variance")
    rows = [_fairness_row(report, spread) for spread in report.fairness]
    about = "Gap: best group minus worst group; 0 where all groups do equally well."
    return _listing("fairness", "Fairness across groups", about, headers, rows, (4, 6, 7, 8))


def comparison_section(report: Report) -> Markup:
    """Returns the tests between models, or nothing."""
    headers = ("A", "B", "benchmark", "result", "B minus A", "95 % interval", "p (Holm)", "items", "needed", "test")
    rows = [_comparison_row(report, comparison) for comparison in report.comparisons]
    about = "On the items that both answered. Needed: items that would tell the two apart at this difference."
    return _listing("comparisons", "Comparisons between models", about, headers, rows, (4, 6, 7, 8))


def files_section(report: Report) -> Markup:
    """Returns the files in use, and those that were left out."""
    headers = ("model", "task", "judge", "items", "scored", "date", "harness", "file", "problems")
    runs = [_run_row(run) for run in report.runs.values()]
    about = "The newest of each model, task and settings, unless the options say otherwise."
    used = _listing("runs", "Runs in use", about, headers, runs, (3, 4))
    headers = ("file", "what is wrong", "lines", "more")
    lost = [(lost.path, short_name(lost.kind), str(lost.lines or ""), lost.detail) for lost in report.problems]
    left_out = _listing("problems", "Files left out", "Named, and not counted anywhere.", headers, lost, (2,))
    return joined([used, left_out])


def _listing(
    key: str, title: str, about: str, headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Collection[int]
) -> Markup:
    if not rows:
        return Markup()
    table = scrolled(plain_table(headers, rows, numeric), key)
    return tag("section", tag("h2", title, id=key), tag("p", about, class_="source"), table)


def _fairness_row(report: Report, spread: Fairness) -> tuple[str, ...]:
    variance = NO_NUMBER if spread.variance is None else f"{spread.variance:.{spread.scale.digits}f}"
    return (
        report.entrants[spread.entrant].label,
        report.units[spread.unit].title,
        f"{spread.groups} by {spread.dimension}",
        spread.best,
        number(spread.best_value, spread.scale),
        spread.worst,
        number(spread.worst_value, spread.scale),
        number(spread.gap, spread.scale),
        variance,
    )


def _comparison_row(report: Report, comparison: Comparison) -> tuple[str, ...]:
    scale = report.units[comparison.unit].scale
    ends = NO_NUMBER
    if comparison.low is not None and comparison.high is not None:
        ends = f"{number(comparison.low, scale)} to {number(comparison.high, scale)}"
    return (
        report.entrants[comparison.first].label,
        report.entrants[comparison.second].label,
        report.units[comparison.unit].title,
        "; ".join([comparison.verdict, *flag_words(comparison.flags)]),
        number(comparison.difference, scale),
        ends,
        NO_NUMBER if comparison.p_holm is None else f"{comparison.p_holm:.3g}",
        str(comparison.n),
        NO_NUMBER if comparison.items_needed is None else str(comparison.items_needed),
        comparison.test,
    )


def _run_row(run: Run) -> tuple[str, ...]:
    return (
        run.model,
        run.task,
        ", ".join(judge.label for judge in run.settings.judges) or "none needed",
        str(run.items),
        str(run.scored),
        run.date,
        run.harness,
        run.results_file,
        "; ".join(run.problems),
    )
