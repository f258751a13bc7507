"""Runs of other models that make the score of a subset more certain, as control variates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from culture_tasks.benchmarks.interface import ComputedScore
from culture_tasks.benchmarks.registry import title_of
from culture_tasks.benchmarks.reporting import Floats
from culture_tasks.report.numbers.observations import items_of
from culture_tasks.report.wording import counted
from culture_tasks.results.loaded_runs import EntrantRuns, LoadedRun
from culture_tasks.results.trained_on import Lineage

FEWEST_MODELS, FEWEST_ITEMS = 3, 50
"""Fewest other models, and fewest drawn items, for a gain: see the tables of ``docs/subsets.md``."""


def with_other_models(
    entered: Sequence[EntrantRuns], lineages: Sequence[Lineage]
) -> tuple[list[EntrantRuns], list[str]]:
    """Gives each run of a subset the runs of other models on all of its questions, one of each model.

    Models that share a name, a checkpoint or a lineage count as one. A sentence for each run of a subset says which
    models help, or why none do; without a run of a subset, one sentence says so.
    """
    sentences: list[str] = []

    def with_helpers(row: EntrantRuns, run: LoadedRun) -> LoadedRun:
        if run.result.subset is None or run.columns is None:
            return run
        helpers = list(_helpers(row, run, entered, lineages))
        opening = f"{row.entrant.label} on {title_of(run.run.task)}, {run.result.subset} documents:"
        if reason := _obstacle(run, len(helpers)):
            sentences.append(f"{opening} without other models' scores, since {reason}.")
            return run
        names = ", ".join(helper.run.model for helper in helpers)
        sentences.append(f"{opening} with the scores of {len(helpers)} other models on all of them ({names}).")
        return replace(run, others=tuple(helpers))

    rows = [replace(row, runs={task: with_helpers(row, run) for task, run in row.runs.items()}) for row in entered]
    return rows, sentences or ["No run is of a subset (CULTURE_SUBSET), so --control-variates changes nothing."]


def _obstacle(run: LoadedRun, helpers: int) -> str:
    if run.whole is not None:
        return f"the verdicts of {run.whole.run.settings.judged_by} on all of them correct it already"
    if run.kind is not None and isinstance(run.kind.metrics[run.kind.metric], ComputedScore):
        return "its score is no mean of the questions' scores"
    scores = items_of(run)[1]
    if (scored := int(np.count_nonzero(~np.isnan(scores)))) < FEWEST_ITEMS:
        return f"only {counted(scored, 'question')} got a score, and {FEWEST_ITEMS} are needed"
    if not _differ(scores):
        return "its scores are all alike"
    if helpers < FEWEST_MODELS:
        models = counted(helpers, "other model")
        return f"only {models} ran all questions with scores that differ, and {FEWEST_MODELS} are needed"
    return ""


def _helpers(
    row: EntrantRuns, run: LoadedRun, entered: Sequence[EntrantRuns], lineages: Sequence[Lineage]
) -> Iterator[LoadedRun]:
    """Yields the first run of each other model on all questions that a run's subset was drawn from."""
    assert run.result.subset is not None
    size, items = run.result.subset.items, items_of(run)[0]
    kin, names = _kin(row.entrant.key, lineages), _names(run)
    for candidate in entered:
        helper = candidate.runs.get(run.run.task)
        if candidate.entrant.key in kin or helper is None or helper.columns is None or not helper.run.scored:
            continue
        if helper.result.subset is not None or helper.run.settings.data != run.run.settings.data:
            continue
        helper_items, scores, _ = items_of(helper)
        has_all = np.unique(helper_items).size == helper_items.size == size and np.isin(items, helper_items).all()
        if names.isdisjoint(_names(helper)) and has_all and _differ(scores):
            names |= {helper.run.model.casefold()}
            yield helper


def _differ(scores: Floats) -> bool:
    return np.unique(scores[~np.isnan(scores)]).size > 1


def _names(run: LoadedRun) -> set[str]:
    """Returns the names of a run's model and of its checkpoint: in full, and the last part of a path."""
    names = {run.run.model, run.result.model, run.result.pretrained} - {""}
    return {part.casefold() for name in names for part in (name, name.rstrip("/").rpartition("/")[2])}


def _kin(entrant: str, lineages: Sequence[Lineage]) -> set[str]:
    """Returns an entrant and all entrants of its lineages."""
    kin, grown = {entrant}, True
    families = [{*lineage.base.entrants, *lineage.trained.entrants} for lineage in lineages]
    while grown:
        wider = kin.union(*(family for family in families if not kin.isdisjoint(family)))
        kin, grown = wider, wider != kin
    return kin
