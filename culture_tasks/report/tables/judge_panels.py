"""Several judges on the same responses: the scores of each, their common score, and how well they agree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import At, Where
from culture_tasks.metrics.rater_agreement import krippendorff_alpha
from culture_tasks.report.model import Cell, Column, Entrant, Row, Table
from culture_tasks.report.numbers.observations import aligned, cell_of, in_order, nan_to_none
from culture_tasks.report.numbers.scores import Measured
from culture_tasks.report.tables.grid import ALL, COUNT, OWN_SCALE, Context, row_of
from culture_tasks.results.loaded_runs import LoadedRun

ALPHA = Scale("agreement", None, 1.0, better=None, digits=3)

_NOTES = (
    "Scores of the same responses, and the judges' common score of the responses that all of them have scored: the "
    "majority's where scores are right or wrong (halfway between the two where judges tie), the mean of their scores "
    "elsewhere. Text overlap isn't a judge, and is left out.",
    "Alpha is Krippendorff's, ordinal: 1 is perfect agreement, 0 is agreement by chance. Apart: the mean distance of "
    "two judges' scores of a response, on the score's own scale.",
)


def judge_panels(context: Context, runs: Sequence[LoadedRun]) -> Table:
    """Returns a row for each model, benchmark and culture that several judges have graded, as the runs say."""
    sources = {loaded.result.path: loaded.result.graded_from or loaded.result.path for loaded in runs}
    origins = sources  # the file with the responses: of new gradings, the file that was graded first
    for _ in sources:  # a chain of gradings is no longer than there are files
        origins = {path: sources.get(origin, origin) for path, origin in origins.items()}
    panels = [
        (measured, model, panel)
        for measured in context.scores.units.values()
        for model, panel in _panels(measured, context.entrants, origins)
    ]
    judges = list(dict.fromkeys(judge for _, _, panel in panels for judge in panel))
    columns = (
        *(Column(f"judge_{number}", judge, OWN_SCALE) for number, judge in enumerate(judges, start=1)),
        Column("together", "Majority or mean", OWN_SCALE, sums_up=True),
        Column("alpha", "Alpha", ALPHA),
        Column("apart", "Apart", OWN_SCALE),
        Column("responses", "Items", COUNT),
    )
    rows: list[Row] = []
    for measured, model, panel in panels:
        field = measured.reported.culture
        cultures = measured.combinations(next(iter(panel.values())), (field,)) if field else []
        for where in ((), *(cultures if len(cultures) > 1 else ())):
            cells = context.scores.cells_at(At(measured.unit.key, where=where))
            scores = (_judge_score(measured, panel[judge], cells) if judge in panel else None for judge in judges)
            culture = where[-1][1] if where else None
            values = (*scores, *_common_numbers(measured, panel.values(), where))
            rows.append(row_of((model, measured.unit.title, culture or ALL), values, columns))
    title, headers = "Several judges on the same responses", ("Model", "Benchmark", "Culture")
    return Table("judges", title, headers, columns, tuple(rows), notes=_NOTES, question="judges")


def _judge_score(measured: Measured, entrant: str, cells: Mapping[str, Cell]) -> Cell | None:
    """Returns a judge's score, without the correction by people's ratings."""
    cell = cells.get(entrant)
    if cell is None or "corrected" not in cell.flags:
        return cell
    flags = tuple(flag for flag in cell.flags if flag != "corrected")
    observed = measured.observe(entrant, cell.where)
    return cell_of(observed, measured.unit.scale, flags, cell.where, min_coverage=measured.min_coverage)


def _panels(
    measured: Measured, entrants: Mapping[str, Entrant], origins: Mapping[Path, Path]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields each model with the entrants, by judge, whose responses are the same and whose judges differ."""
    panels: dict[tuple[object, ...], dict[str, str]] = {}
    for key, runs in measured.runs.items():
        judges = {judge.label for loaded in runs for judge in loaded.run.settings.judges}
        is_whole = len(runs) >= len(measured.tasks) and all(loaded.run.scored and not loaded.lexical for loaded in runs)
        if len(judges) == 1 and is_whole:
            responses = tuple((loaded.run.task, origins[loaded.result.path]) for loaded in runs)
            panels.setdefault((entrants[key].model, responses), {}).setdefault(judges.pop(), key)
    for (model, _), panel in panels.items():
        if len(panel) > 1:
            yield str(model), panel


def _common_numbers(measured: Measured, entrants: Collection[str], where: Where) -> tuple[Cell | None, ...]:
    """Returns the judges' common score, their agreement, the mean distance of two, and the number of common items."""
    observed = [in_order(measured.observe(key, where)) for key in entrants]
    common = [reduce(lambda scores, peer: aligned(scores, peer)[0], observed, judge) for judge in observed]
    table = np.stack([judge.scores for judge in common])
    if not table.shape[1]:
        return None, None, None, Cell(0.0, COUNT)
    scale = measured.unit.scale
    scores = np.concatenate([measured.observe(key).scores for key in entrants])
    is_vote = scale.ends is not None and bool(np.isin(scores[~np.isnan(scores)], scale.ends).all())
    consensus = replace(common[0], scores=np.median(table, axis=0) if is_vote else table.mean(axis=0))
    shared_flags = frozenset.intersection(*(measured.flags[key] for key in entrants))
    alpha = krippendorff_alpha(table)
    distances = [np.abs(first - second) for row, first in enumerate(table) for second in table[row + 1 :]]
    return (
        replace(cell_of(consensus, scale, tuple(shared_flags), where), runs=()),
        Cell(nan_to_none(alpha.value), ALPHA, note=alpha.reason or ""),
        Cell(float(np.mean(distances)), Scale(scale.unit, 0.0, None, better=None, digits=scale.digits)),
        Cell(float(table.shape[1]), COUNT),
    )
