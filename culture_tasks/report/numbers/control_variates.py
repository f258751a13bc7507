"""Which runs of other models may make the score of a subset more certain, as control variates."""

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
"""Other models, and drawn items, below which nothing is gained: see the tables of ``docs/subsets.md``."""


def with_other_models(
    entered: Sequence[EntrantRuns], lineages: Sequence[Lineage]
) -> tuple[list[EntrantRuns], list[str]]:
    """Gives each run of a subset the runs of other models on all of its questions, one of each model.

    Models that share a name, a checkpoint or a lineage are the same here. A sentence for each run of a subset says
    which models help, or why none do; without any run of a subset, one sentence says so.
    """
    sentences: list[str] = []

    def helped(one: EntrantRuns, each: LoadedRun) -> LoadedRun:
        if each.result.subset is None or each.columns is None:
            return each
        others = list(_others(one, each, entered, lineages))
        about = f"{one.entrant.label} on {title_of(each.run.task)}, {each.result.subset} documents:"
        if reason := _why_not(each, len(others)):
            sentences.append(f"{about} without other models' scores, since {reason}.")
            return each
        names = ", ".join(other.run.model for other in others)
        sentences.append(f"{about} with the scores of {len(others)} other models on all of them ({names}).")
        return replace(each, others=tuple(others))

    rows = [replace(one, runs={task: helped(one, each) for task, each in one.runs.items()}) for one in entered]
    return rows, sentences or ["No run is of a subset (CULTURE_SUBSET), so --control-variates changes nothing."]


def _why_not(each: LoadedRun, others: int) -> str:
    if each.whole is not None:
        return f"the verdicts of {each.whole.run.settings.judged_by} on all of them correct it already"
    if each.kind is not None and isinstance(each.kind.metrics[each.kind.metric], ComputedScore):
        return "its score is no mean of the questions' scores"
    scores = items_of(each)[1]
    if (scored := int(np.count_nonzero(~np.isnan(scores)))) < FEWEST_ITEMS:
        return f"only {counted(scored, 'question')} got a score, and {FEWEST_ITEMS} are needed"
    if not _differ(scores):
        return "its scores are all alike"
    if others < FEWEST_MODELS:
        models = counted(others, "other model")
        return f"only {models} ran all questions with scores that differ, and {FEWEST_MODELS} are needed"
    return ""


def _others(
    one: EntrantRuns, each: LoadedRun, entered: Sequence[EntrantRuns], lineages: Sequence[Lineage]
) -> Iterator[LoadedRun]:
    """Yields the first run of each other model that has all questions of a run of a subset."""
    assert each.result.subset is not None
    size, items = each.result.subset.items, items_of(each)[0]
    kin, known = _kin(one.entrant.key, lineages), _names(each)
    for row in entered:
        other = row.runs.get(each.run.task)
        if row.entrant.key in kin or other is None or other.columns is None or not other.run.scored:
            continue
        if other.result.subset is not None or other.run.settings.data != each.run.settings.data:
            continue
        own, scores, _ = items_of(other)
        has_all = np.unique(own).size == own.size == size and np.isin(items, own).all()
        if known.isdisjoint(_names(other)) and has_all and _differ(scores):
            known |= {other.run.model.casefold()}
            yield other


def _differ(scores: Floats) -> bool:
    return np.unique(scores[~np.isnan(scores)]).size > 1


def _names(each: LoadedRun) -> set[str]:
    """Returns the names of a run's model and of its checkpoint: in full, and the last part of a path."""
    names = {each.run.model, each.result.model, each.result.pretrained} - {""}
    return {part.casefold() for name in names for part in (name, name.rstrip("/").rpartition("/")[2])}


def _kin(entrant: str, lineages: Sequence[Lineage]) -> set[str]:
    """Returns an entrant and all that were trained from the same model, or one from the other."""
    kin, grown = {entrant}, True
    families = [{*lineage.base.entrants, *lineage.trained.entrants} for lineage in lineages]
    while grown:
        found = kin.union(*(family for family in families if not kin.isdisjoint(family)))
        kin, grown = found, found != kin
    return kin
