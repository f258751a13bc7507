"""Several judges on the same responses: the scores of each, their common score, and how well they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import At, Where
from culture_tasks.metrics.rater_agreement import krippendorff_alpha
from culture_tasks.report.model import Cell, Column, Entrant, Row, Table
from culture_tasks.report.numbers.observations import Observations, aligned, cell_of, in_order, known
from culture_tasks.report.numbers.scores import Measured, Scores
from culture_tasks.report.tables.grid import ALL, COUNT, OWN_SCALE
from culture_tasks.results.loaded_runs import LoadedRun

ALPHA = Scale("agreement", None, 1.0, better=None, digits=3)

_NOTES = (
    "Scores of the same responses, and the score that the judges give together to the responses that all of them have "
    "scored: the majority's where scores are right or wrong (halfway between the two where judges tie), the mean of "
    "their scores elsewhere. Text overlap isn't a judge, and is left out.",
    "Alpha is Krippendorff's, ordinal: 1 is perfect agreement, 0 what chance gives. Apart: how far the scores of two "
    "judges of a response are from each other, on average, on the score's own scale.",
)


class _Panel(NamedTuple):
    """The rows of one model on a unit that have the same responses and different judges.

    Attributes:
        model: The model.
        entrants: Key of the entrant of each judge, by the judge's name.
    """

    model: str
    entrants: Mapping[str, str]


def judge_panels(scores: Scores, entrants: Mapping[str, Entrant], origins: Mapping[Path, Path]) -> Table:
    """Returns a row for each model, benchmark and culture that several judges have graded.

    Args:
        scores: Every number of our benchmarks.
        entrants: The rows of the report.
        origins: The result file that the responses of each result file come from.
    """
    found = [
        (measured, panel, where)
        for measured in scores.units.values()
        for panel in _panels(measured, entrants, origins)
        for where in ((), *cultures_of(measured, next(iter(panel.entrants.values()))))
    ]
    judges = list(dict.fromkeys(judge for _, panel, _ in found for judge in panel.entrants))
    columns = [
        *(Column(f"judge_{number}", judge, OWN_SCALE) for number, judge in enumerate(judges, start=1)),
        Column("together", "Majority or mean", OWN_SCALE, sums_up=True),
        Column("alpha", "Alpha", ALPHA),
        Column("apart", "Apart", OWN_SCALE),
        Column("responses", "Items", COUNT),
    ]
    rows = [
        Row(
            (panel.model, measured.unit.title, where[-1][1] if where else ALL),
            (
                *(scores.at(At(measured.unit.key, where=where)).get(panel.entrants.get(judge, "")) for judge in judges),
                *_together(measured, panel, where),
            ),
        )
        for measured, panel, where in found
    ]
    return Table(
        "judges",
        "Several judges on the same responses",
        row_headers=("Model", "Benchmark", "Culture"),
        columns=tuple(columns),
        rows=tuple(rows),
        notes=_NOTES,
        question="judges",
    )


def origins_of(runs: Sequence[LoadedRun]) -> dict[Path, Path]:
    """Returns the result file whose responses each result file has: its own but for new gradings."""
    before = {each.result.path: each.result.graded_from for each in runs}
    found: dict[Path, Path] = {}
    for path in before:
        found[path] = path
        for _ in before:  # a chain of gradings is no longer than there are files
            found[path] = before.get(found[path]) or found[path]
    return found


def cultures_of(measured: Measured, entrant: str) -> list[Where]:
    """Returns the cultures that an entrant has samples of, where there are several."""
    field = measured.reported.culture
    found = measured.combinations(entrant, (field,)) if field else []
    return found if len(found) > 1 else []


def _panels(measured: Measured, entrants: Mapping[str, Entrant], origins: Mapping[Path, Path]) -> Iterator[_Panel]:
    """Yields the panels of a unit: entrants of one model, with the same responses, each with another judge."""
    alike: dict[tuple[object, ...], dict[str, str]] = {}
    for key, runs in measured.runs.items():
        judges = {judge.label for each in runs for judge in each.run.settings.judges}
        if len(judges) != 1 or len(runs) < len(measured.tasks) or any(each.lexical for each in runs):
            continue
        if not all(each.run.scored for each in runs):
            continue
        responses = tuple((each.run.task, origins[each.result.path]) for each in runs)
        alike.setdefault((entrants[key].model, responses), {}).setdefault(judges.pop(), key)
    for (model, _), of_judges in alike.items():
        if len(of_judges) > 1:
            yield _Panel(str(model), of_judges)


def _together(measured: Measured, panel: _Panel, where: Where) -> tuple[Cell | None, ...]:
    """Returns the judges' common score, their agreement, the mean distance of two, and the number of common items."""
    judges = _common(measured, panel, where)
    table = np.stack([each.scores for each in judges])
    if not table.shape[1]:
        return None, None, None, Cell(0.0, COUNT)
    scale, vote = measured.unit.scale, _is_right_or_wrong(measured, panel)
    together = replace(judges[0], scores=np.median(table, axis=0) if vote else table.mean(axis=0))
    shared = frozenset.intersection(*(measured.flags[key] for key in panel.entrants.values()))
    alpha = krippendorff_alpha(table)
    distances = [np.abs(one - other) for at, one in enumerate(table) for other in table[at + 1 :]]
    return (
        replace(cell_of(together, scale, tuple(shared), where), runs=()),
        Cell(known(alpha.value), ALPHA, note=alpha.reason or ""),
        Cell(float(np.mean(distances)), Scale(scale.unit, 0.0, None, better=None, digits=scale.digits)),
        Cell(float(table.shape[1]), COUNT),
    )


def _common(measured: Measured, panel: _Panel, where: Where) -> list[Observations]:
    """Returns each judge's scores of the items that all of them have scored, in one order."""
    judges = [in_order(measured.observe(key, where)) for key in panel.entrants.values()]
    return [reduce(lambda one, other: aligned(one, other)[0], judges, own) for own in judges]


def _is_right_or_wrong(measured: Measured, panel: _Panel) -> bool:
    scale = measured.unit.scale
    if scale.low is None or scale.high is None:
        return False
    scores = np.concatenate([measured.observe(key).scores for key in panel.entrants.values()])
    return bool(np.isin(scores[~np.isnan(scores)], (scale.low, scale.high)).all())
