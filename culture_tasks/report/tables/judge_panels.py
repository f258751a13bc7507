"""Several judges on the same responses: the scores of each, their common score, and how well they agree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import title_of
from culture_tasks.benchmarks.reporting import Where
from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.rater_agreement import krippendorff_alpha
from culture_tasks.report.model import Column, ModelRow, Number, Table
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.numbers.numbers import Unit, from_interval, nan_to_none, number_of
from culture_tasks.report.numbers.selection import aligned, in_order, select
from culture_tasks.report.tables.layout import ALL, ALPHA, COUNT, OWN_SCALE, Context, Values, columns_of, filled
from culture_tasks.results.comparability import differences
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import Run

_NOTES = (
    "Scores of the same responses, and the judges' common score of the responses that all of them have scored: the "
    "majority's where scores are right or wrong (halfway between the two where judges tie), the mean of their scores "
    "elsewhere. Text overlap isn't a judge, and is left out.",
    "Alpha is Krippendorff's, ordinal: 1 is perfect agreement, 0 is agreement by chance. Apart: the mean distance of "
    "two judges' scores of a response, on the score's own scale.",
)
_SHARE = Scale("share", 0.0, 1.0, better=None)
_ABOUT_REPEATS = (
    "The same responses, graded again by a judge of the same name and settings: has the model behind the name changed? "
    "Scores, difference (with its 95 % interval), the share of identical scores and Krippendorff's alpha (ordinal) are "
    "of the responses with both verdicts. Gradings are left out where most of these were kept, as in the cache."
)


def judge_panels(context: Context, runs: Sequence[Run]) -> Table:
    """Returns a row for each model, benchmark and culture that several judges have graded, as the runs say."""
    origins = _origins(runs)
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
    rows: list[tuple[tuple[str, ...], Values]] = []
    for measured, model, panel in panels:
        field = measured.reported.culture
        cultures = measured.combinations(next(iter(panel.values())), (field,)) if field else []
        for where in ((), *(cultures if len(cultures) > 1 else ())):
            cells = context.scores.cells(measured.key, where=where)
            scores = {
                f"judge_{number}": _judge_score(measured, panel[judge], cells)
                for number, judge in enumerate(judges, start=1)
                if judge in panel
            }
            culture = where[-1][1] if where else None
            values = {**scores, **_common_numbers(measured, panel.values(), where)}
            rows.append(((model, measured.title, culture or ALL), values))
    title, headers = "Several judges on the same responses", ("Model", "Benchmark", "Culture")
    return filled(Table("judges", title, headers, columns, notes=_NOTES, question="judges"), rows)


def repeated_verdicts(results: Results, runs: Sequence[Run]) -> Table:
    """Returns a row for each further time that one judge graded the same responses, beside its first verdicts."""
    origins = _origins(runs)
    gradings: dict[tuple[object, ...], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.age):
        judges = run.settings.judges
        if len(judges) == 1 and run.scored and not run.is_lexical:
            key = (run.model, run.task, origins[run.path], replace(judges[0], prompts=()))
            gradings.setdefault(key, []).append(run)
    columns = (
        *columns_of(OWN_SCALE, old="Old", new="New", difference="New - old"),
        *columns_of(_SHARE, identical="Identical"),
        *columns_of(ALPHA, alpha="Alpha"),
        *columns_of(COUNT, responses="Items"),
    )
    rows: list[tuple[tuple[str, ...], Values]] = []
    for group in gradings.values():
        firsts: list[Run] = []  # the first verdicts of each version of the judge's prompt
        for run in group:
            known = (old for old in firsts if "other_judge" not in differences(old.settings, run.settings))
            first = next(known, None)
            if first is None:
                firsts.append(run)
            elif numbers := _repeat_numbers(results, first, run):
                labels = (run.model, run.settings.judged_by, title_of(run.task), run.path.name)
                rows.append((labels, numbers))
    title, headers = "One judge's verdicts, old and new", ("Model", "Judge", "Task", "New verdicts")
    return filled(Table("judge_again", title, headers, columns, notes=(_ABOUT_REPEATS,), question="judges"), rows)


def _share_kept(loaded: Run) -> float:
    """Returns the share of the verdicts, by their tokens, that weren't asked for, such as those that the cache had."""
    spent = loaded.spent
    if spent is None or spent.judge is None or spent.judge_kept is None:
        return 0.0
    return spent.judge_kept.completion_tokens / max(spent.judge.completion_tokens, 1)


def _repeat_numbers(results: Results, first: Run, loaded: Run) -> Values | None:
    """Returns both scores of the responses with both verdicts, their mean difference, and how well they agree.

    None where most of these verdicts were kept, as those are that ``--failed-only`` doesn't ask for.
    """
    observed = [in_order(select(results, [run], [run.task])) for run in (first, loaded)]
    old, new = aligned(*observed)
    if 2.0 * _share_kept(loaded) * np.count_nonzero(~np.isnan(observed[1].scores)) > old.n:
        return None
    if first.kind is None or not old.n:
        return {"responses": 0.0}
    scale, gap = first.kind.scale, new.scores - old.scores
    alpha = krippendorff_alpha(np.stack([old.scores, new.scores]))
    return {
        "old": Number(float(old.scores.mean()), scale),
        "new": Number(float(new.scores.mean()), scale),
        "difference": from_interval(mean_interval(gap, new.shared_clusters), scale_of_differences(scale), set(), ()),
        "identical": float(np.mean(gap == 0.0)),
        "alpha": Number(nan_to_none(alpha.value), ALPHA, note=alpha.reason or ""),
        "responses": gap.size,
    }


def _origins(runs: Sequence[Run]) -> dict[Path, Path]:
    """Returns the file with the responses of each result file: of new gradings, the file that was graded first."""
    origins = sources = {loaded.path: loaded.graded_from or loaded.path for loaded in runs}
    for _ in sources:  # a chain of gradings is no longer than there are files
        origins = {path: sources.get(origin, origin) for path, origin in origins.items()}
    return origins


def _judge_score(measured: Unit, entrant: str, cells: Mapping[str, Number]) -> Number | None:
    """Returns a judge's score, without the correction by people's ratings."""
    cell = cells.get(entrant)
    if cell is None or "corrected" not in cell.flags:
        return cell
    flags = tuple(flag for flag in cell.flags if flag != "corrected")
    observed = measured.select(entrant, cell.where)
    return number_of(observed, measured.scale, flags, cell.where, min_coverage=measured.min_coverage)


def _panels(
    measured: Unit, entrants: Mapping[str, ModelRow], origins: Mapping[Path, Path]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields each model with the entrants, by judge, whose responses are the same and whose judges differ."""
    panels: dict[tuple[object, ...], dict[str, str]] = {}
    for key, runs in measured.runs.items():
        judges = {judge.label for loaded in runs for judge in loaded.settings.judges}
        is_whole = len(runs) >= len(measured.tasks) and all(loaded.scored and not loaded.is_lexical for loaded in runs)
        if len(judges) == 1 and is_whole:
            responses = tuple((loaded.task, origins[loaded.path]) for loaded in runs)
            panels.setdefault((entrants[key].model, responses), {}).setdefault(judges.pop(), key)
    for (model, _), panel in panels.items():
        if len(panel) > 1:
            yield str(model), panel


def _common_numbers(measured: Unit, entrants: Collection[str], where: Where) -> Values:
    """Returns the judges' common score, their agreement, the mean distance of two, and the number of common items."""
    observed = [in_order(measured.select(key, where)) for key in entrants]
    common = [reduce(lambda scores, peer: aligned(scores, peer)[0], observed, judge) for judge in observed]
    table = np.stack([judge.scores for judge in common])
    if not table.shape[1]:
        return {"responses": 0.0}
    scale = measured.scale
    scores = np.concatenate([measured.select(key).scores for key in entrants])
    is_vote = scale.ends is not None and bool(np.isin(scores[~np.isnan(scores)], scale.ends).all())
    consensus = replace(common[0], scores=np.median(table, axis=0) if is_vote else table.mean(axis=0))
    shared_flags = frozenset.intersection(*(measured.flags[key] for key in entrants))
    alpha = krippendorff_alpha(table)
    distances = [np.abs(first - second) for row, first in enumerate(table) for second in table[row + 1 :]]
    return {
        "together": replace(number_of(consensus, scale, tuple(shared_flags), where), runs=()),
        "alpha": Number(nan_to_none(alpha.value), ALPHA, note=alpha.reason or ""),
        "apart": Number(float(np.mean(distances)), Scale(scale.unit, 0.0, None, better=None, digits=scale.digits)),
        "responses": table.shape[1],
    }
