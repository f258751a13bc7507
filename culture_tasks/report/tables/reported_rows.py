"""Scores that others report in logs of Every Eval Ever: rows below the user's, where task and metric are the same.

Like papers' rows they are added after all ranks, tests and means, and take no part in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import At
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.metrics.intervals import Interval
from culture_tasks.report.model import Cell, Flag, Row, Table, Unit
from culture_tasks.report.numbers.observations import SCORE, from_interval
from culture_tasks.report.numbers.scores import Scores
from culture_tasks.report.wording import counted
from culture_tasks.results.eval_logs import EvalLog, ReportedMetric, ReportedScore
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.samples import parse_json

UNITS: Mapping[str, str] = {"share": "proportion"}
"""Units that Every Eval Ever calls by other names."""

_WHOLES: Mapping[str, float] = {"proportion": 1.0, "percent": 100.0}


class ReportedRow(NamedTuple):
    """A log's model, who reports it, the judge, and the scores by their addresses in the report."""

    model: str
    reporter: str
    judge: str
    cells: Mapping[At, Cell]
    note: str


def reported_rows(
    logs: Mapping[str, EvalLog], units: Mapping[str, Unit], scores: Scores
) -> tuple[list[ReportedRow], list[UnusedFile]]:
    """Returns a row for each log that has a score of a task and metric of the report, and the other logs."""
    keys = {unit.title.casefold(): key for key, unit in units.items()} | {key.casefold(): key for key in units}
    rows: list[ReportedRow] = []
    unused: list[UnusedFile] = []
    for path, log in logs.items():
        cells: dict[At, Cell] = {}
        matches: list[ReportedScore] = []
        for score in log.scores:
            address = _address(score, keys)
            if address is not None and (cell := _cell(score, address, units, scores)) is not None:
                cells.setdefault(address, cell)
                matches.append(score)
        if not matches:
            unused.append(UnusedFile(path, "foreign", "it has no score of a task, metric and scale of this report"))
            continue
        of_all = f"{len(matches)} of {counted(len(log.scores), 'score')}"
        judges = dict.fromkeys(pair for score in matches for pair in score.judges.items())
        facts = [
            f"judge {name}, {f'prompts {prompts}' if prompts else 'of unknown prompts'}" for name, prompts in judges
        ]
        facts += [f"the model's prompts {text}" for text in dict.fromkeys(score.prompts for score in matches) if text]
        run_with = "; ".join([f"Run with {log.harness} {log.harness_version or 'unknown'}", *facts])
        note = (
            f"Reported by {log.reporter}, not measured here, and in no rank, test or mean: {log.model}, {of_all} of "
            f"{path}. {run_with}."
        )
        judge = " + ".join(dict.fromkeys(name for score in matches for name in score.judges))
        rows.append(ReportedRow(log.model, log.reporter, judge, cells, note))
    return rows, unused


def _address(score: ReportedScore, keys: Mapping[str, str]) -> At | None:
    """Returns the address that a log of ours says, or that of the whole score of a task; None for no address.

    In logs of other tools a task goes by its name or its title, however these are capitalized.
    """
    details = score.metric.additional_details
    if "task" not in details:
        return At(keys.get(score.name.casefold(), score.name))
    try:
        pairs = parse_json(str(details.get("groups", "[]")).encode())
        where = tuple((str(field), str(group)) for field, group in pairs)
    except (TypeError, ValueError):
        return None
    return At(str(details["task"]), str(details.get("statistic", SCORE)), where)


def _cell(score: ReportedScore, address: At, units: Mapping[str, Unit], scores: Scores) -> Cell | None:
    """Returns a score on the scale of the report; None where it isn't of the same metric, or its scale isn't known."""
    unit, metric = units.get(address.unit), score.metric
    if unit is None or all("own_data" in cell.flags for cell in unit.cells.values()):
        return None
    scale = unit.scale if address == At(unit.key) else scores.scale(address)
    is_score = address.statistic == SCORE
    name = unit.metric if is_score else address.statistic
    names = {metric.metric_id, metric.metric_name} - {""} or {metric.evaluation_description}
    lexical = f"{name}{LEXICAL}"
    synonyms = {ours: {ours, f"{unit.benchmark or unit.key}.{ours}"} for ours in (name, lexical)}
    synonyms[name] |= {unit.quantity} - {""} if is_score else set()
    match = next((ours for ours, theirs in synonyms.items() if names.intersection(theirs)), None)
    if scale is None or match is None or metric.lower_is_better != (scale.better == "lower"):
        return None
    ends = _ends(metric, scale)
    if ends is None:
        return None
    value, low, high = (_on_scale(number, ends, scale) for number in (score.score, *score.interval))
    if not scale.allows(value):
        return None
    lowest, highest = _bounds(scale)
    if low > highest or high < lowest:
        low = high = math.nan
    flags: set[Flag] = {"lexical_judge", "reported"} if match == lexical else {"reported"}
    interval = Interval(value, low, high, n=score.n, clusters=score.n)
    return from_interval(interval, scale, flags, (), coverage=score.coverage)


def _ends(metric: ReportedMetric, scale: Scale) -> tuple[float, float] | None:
    """Returns the ends of a metric's scale: as it says, else the report's, in its unit."""
    low, high, unit = metric.min_score, metric.max_score, UNITS.get(scale.unit, scale.unit)
    bounds = _bounds(scale)
    if low is None or high is None:
        if metric.metric_unit == unit:
            return bounds
        if not {metric.metric_unit, unit} <= _WHOLES.keys():
            return None
        low, high = (end * _WHOLES[metric.metric_unit] / _WHOLES[unit] for end in bounds)
    is_finite = all(map(math.isfinite, (high - low, *bounds))) and low < high
    return (low, high) if is_finite or (low, high) == bounds else None


def _bounds(scale: Scale) -> tuple[float, float]:
    return -math.inf if scale.low is None else scale.low, math.inf if scale.high is None else scale.high


def _on_scale(number: float, ends: tuple[float, float], scale: Scale) -> float:
    """Returns a number on another scale, end to end."""
    low, high = ends
    if scale.low is None or scale.high is None or (low, high) == (scale.low, scale.high):
        return number
    return scale.low + (number - low) / (high - low) * (scale.high - scale.low)


def with_reported(table: Table, addresses: Sequence[At | None], rows: Iterable[ReportedRow]) -> Table:
    """Returns a table with others' rows that have scores at its columns' addresses, below the user's rows."""
    below: list[Row] = []
    for row in rows:
        cells = tuple(None if address is None else row.cells.get(address) for address in addresses)
        if any(cells):
            reporter = f"reported by {row.reporter}"
            blanks = [""] * (len(table.row_headers) - 2)
            texts = (row.model, *blanks, f"{reporter} ({row.judge})" if row.judge else reporter)
            below.append(Row(texts if len(table.row_headers) > 1 else (f"{row.model}, {reporter}",), cells))
    return replace(table, rows=(*table.rows, *below))
