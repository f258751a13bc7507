"""Tasks of the harnesses that aren't ours: one plain column each, from the result files.

``known_tasks.json`` lists the culture tasks among them: which metric counts, which end of it is better, the scale, what
is measured in which languages, and the paper. Of any other task the metric is the one that most of its runs have.

A harness logs a task's metrics with each sample, and doesn't say whether they are scores whose mean is the result, or
parts of some other statistic. So a sample file counts only where the mean over all of its samples is the number that
the harness worked out.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import Texts
from culture_tasks.errors import DataError, SettingsError, hint
from culture_tasks.metrics.intervals import Interval
from culture_tasks.report.model import Cell, Unit
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.numbers.observations import from_interval, is_same_number, weighted
from culture_tasks.report.numbers.scores import Measured, Scores, all_scores, flags_by_row, harness_cell
from culture_tasks.results.columns import Codebook, Columns
from culture_tasks.results.loaded_runs import EntrantRuns, LoadedRun
from culture_tasks.results.samples import samples_of

_SHARES = frozenset(("acc", "acc_norm", "acc_mutual_info", "exact_match", "anls"))
"""Metrics of the harnesses themselves that are shares. A task's own ``…_acc`` may as well be in percent."""


class Cut(NamedTuple):
    """A field of the questions by which a task's score is split into two groups, with their names."""

    field: str
    title: str
    groups: Mapping[str, str]


class KnownTasks(NamedTuple):
    """Tasks of a harness that are about culture, by patterns of their names.

    Attributes:
        metrics: Their metrics, the one that counts first, each with the end that is better.
        scale: The scale of these metrics, but for its better end.
        cut: A split of the score, where the harness logs the questions; None without one.
    """

    tasks: Sequence[str]
    about: str
    languages: str
    metrics: Mapping[str, Literal["higher", "lower"]]
    scale: Mapping[str, Any]
    paper: str
    cut: Cut | None = None


@cache
def known_tasks() -> tuple[KnownTasks, ...]:
    """Returns what is known of the harnesses' culture tasks; the first entry with a pattern that fits counts."""
    file = resources.files("culture_tasks.report").joinpath("known_tasks.json")
    entries = json.loads(file.read_text(encoding="utf-8"))
    return tuple(KnownTasks(**entry | {"cut": Cut(**entry["cut"]) if "cut" in entry else None}) for entry in entries)


def cut_of(task: str) -> Cut | None:
    """Returns how the score of a task is split; None where it isn't."""
    known = known_task(task)
    return known.cut if known else None


def known_task(task: str) -> KnownTasks | None:
    """Returns what is known of a task, or None."""
    return next((each for each in known_tasks() if any(fnmatchcase(task, name) for name in each.tasks)), None)


def other_measured(entered: Sequence[EntrantRuns], further: Sequence[str] = ()) -> list[Measured]:
    """Returns a unit for each task of a harness that isn't ours, with the samples that its score is the mean of.

    Further metrics are patterns, as ``acc_norm`` or ``mmlu:acc*``, which must fit something; they have columns beside
    the one that counts.
    """
    tasks: dict[str, dict[str, LoadedRun]] = {}
    parts: set[str] = set()
    for one in entered:
        for task, each in one.runs.items():
            if each.run.benchmark is None:
                tasks.setdefault(task, {})[one.entrant.key] = each
                parts.update(each.result.members if each.result.metrics else ())
    _refuse_unfitting(further, tasks)
    rows = {one.entrant.key: one.runs for one in entered}
    samples = _Samples()
    units: list[Measured] = []
    for task, runs in tasks.items():
        main = _main_metric(known_task(task), runs)
        for metric in _metrics(runs):
            if metric == main or any(_fits(task, metric, pattern) for pattern in further):
                unit = _unit(task, runs, metric=metric, headline=task not in parts, further=metric != main)
                means = {}
                if unit.headline and (len(runs) > 1 or cut_of(task)):
                    means = {key: samples.behind(each, unit, rows[key]) for key, each in runs.items()}
                units.append(_with_samples(unit, means))
    return units


def cut_scores(measured: Sequence[Measured]) -> Scores:
    """Works out the scores of tasks that have a cut, by its groups, as far as their samples tell these."""
    return all_scores(
        [
            replace(each, flags={key: flags - {"from_result_file"} for key, flags in each.flags.items()})
            for each in measured
            if cut_of(each.unit.key) and each.unit.headline and any(each.runs.values())
        ]
    )


def difference(first: Cell, second: Cell) -> Cell:
    """Returns the first number less the second, which is of other items, with a 95 % interval.

    Source: Newcombe (1998), method 10, and Zou and Donner (2008): from the intervals of the two.
    """
    found = weighted([(cell.value, cell.low, cell.high) for cell in (first, second)], (1.0, -1.0))
    scale, n = scale_of_differences(first.scale), first.n + second.n
    return from_interval(Interval(*found, n=n), scale, set(first.flags), first.runs)


def _fits(task: str, metric: str, pattern: str) -> bool:
    names = (metric, _without_filter(metric))
    return any(fnmatchcase(name, pattern) for name in (*names, *(f"{task}:{name}" for name in names)))


def _refuse_unfitting(patterns: Sequence[str], tasks: Mapping[str, Mapping[str, LoadedRun]]) -> None:
    metrics = {(task, metric) for task, runs in tasks.items() for metric in _metrics(runs)}
    for pattern in patterns:
        if not any(_fits(task, metric, pattern) for task, metric in metrics):
            names = sorted({_without_filter(metric) for _, metric in metrics})
            known = hint(pattern, names) or " There is no task of the harnesses."
            raise SettingsError(f"report: --other-metrics {pattern} fits no metric.{known}")


def _with_samples(unit: Unit, means: Mapping[str, tuple[_Kind, tuple[LoadedRun, ...]]]) -> Measured:
    """Adds the samples behind the scores; all scores must be the same kind of mean, over the same tasks."""
    kinds = Counter(kind for kind, behind in means.values() if behind)
    usual = kinds.most_common(1)[0][0] if kinds else ((unit.key,), False)
    used = {key: behind for key, (kind, behind) in means.items() if kind == usual}
    flags = {key: frozenset(cell.flags) for key, cell in unit.cells.items()}
    return Measured(unit, *usual, runs={key: used.get(key, ()) for key in unit.cells}, flags=flags)


def _unit(task: str, runs: Mapping[str, LoadedRun], metric: str, *, headline: bool, further: bool) -> Unit:
    known = known_task(task)
    scale = _scale(known, metric, runs)
    flags = flags_by_row({key: [each] for key, each in runs.items()}, lambda each: each.result.expected or 0)
    cells = {key: harness_cell(each, metric, scale, set(flags[key])) for key, each in runs.items()}
    about = f"{known.about}; {known.languages}; {known.paper}" if known else "a task of the harness"
    name = f"{task}:{metric}" if further else task
    return Unit(name, name, None, metric, scale, about, headline=headline, cells=cells, further=further)


def _metrics(runs: Mapping[str, LoadedRun]) -> Counter[str]:
    """Returns the metrics that have a number, each with how many runs have it, in the order of the files."""
    return Counter(
        name for each in runs.values() for name, value in each.result.metrics.items() if not math.isnan(value)
    )


def _main_metric(known: KnownTasks | None, runs: Mapping[str, LoadedRun]) -> str | None:
    """Returns the metric that counts: the known one, else any; of several, as with filters, the one most runs have."""
    counts = _metrics(runs)
    for wanted in known.metrics if known else ():
        if found := [name for name in counts if _without_filter(name) == wanted]:
            return max(found, key=lambda name: counts[name])
    return max(counts, key=lambda name: counts[name]) if counts else None


def _without_filter(metric: str) -> str:
    return metric.partition(",")[0]


def _scale(known: KnownTasks | None, metric: str, runs: Mapping[str, LoadedRun]) -> Scale:
    """Returns the scale of a metric: the known one, else a share where it is the harnesses' own, else one without ends.

    No range is concluded from the values; one that they don't keep to isn't the right one.
    """
    name = _without_filter(metric)
    values = [each.result.metrics[metric] for each in runs.values() if metric in each.result.metrics]
    directions = (each.result.higher_is_better.get(name) for each in runs.values())
    higher = next((direction for direction in directions if direction is not None), True)
    better: Literal["higher", "lower"] = "higher" if higher else "lower"
    scales = [Scale(**known.scale, better=known.metrics[name])] if known and name in known.metrics else []
    if name in _SHARES:
        scales.append(Scale("share", 0.0, 1.0, better=better, digits=3))
    fitting = (scale for scale in scales if all(scale.allows(value) for value in values))
    return next(fitting, Scale("unknown", None, None, better=scales[0].better if scales else better))


# The samples behind the scores, for paired tests


_Kind = tuple[tuple[str, ...], bool]
"""The tasks that a score is the mean over, and whether they weigh the same, rather than their items."""


class _Samples:
    """Reads the samples of tasks that aren't ours, with one numbering of items for all tasks and runs."""

    def __init__(self) -> None:
        self._codes: Codebook = {}
        self._files: dict[Path, Mapping[str, Columns]] = {}

    def behind(
        self, each: LoadedRun, unit: Unit, others: Mapping[str, LoadedRun]
    ) -> tuple[_Kind, tuple[LoadedRun, ...]]:
        """Returns the kind of mean that a score is, and the runs with the samples behind it; no runs without any.

        The runs of members of groups are among the others, all of which are of the same model.
        """
        tasks = tuple(dict.fromkeys(_leaves(each.run.task, others)))
        runs = [others[task] for task in tasks if task in others]
        columns = [self._read(run).get(unit.metric) for run in runs]
        known = [own for own in columns if own is not None]
        if not runs or len(known) < len(tasks):
            return (tasks, False), ()
        score = each.result.metrics.get(unit.metric, math.nan)
        is_mean_of_items = is_same_number(score, float(np.mean(np.concatenate([own.scores for own in known]))))
        if not is_mean_of_items and not is_same_number(score, float(np.mean([own.scores.mean() for own in known]))):
            return (tasks, False), ()
        return (tasks, not is_mean_of_items), tuple(
            replace(run, columns=replace(own, scores=own.scores * unit.scale.times))
            for run, own in zip(runs, known, strict=True)
        )

    def _read(self, each: LoadedRun) -> Mapping[str, Columns]:
        path = each.result.samples_file
        if path not in self._files:
            try:
                self._files[path] = dict(_columns(each, self._codes))
            except (OSError, DataError):
                self._files[path] = {}
        return self._files[path]


def _leaves(task: str, others: Mapping[str, LoadedRun], above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yields the tasks below a group, or a task itself."""
    members: Sequence[str] = others[task].result.members if task in others else ()
    for member in members or (task,):
        if member in (task, *above) or not members:
            yield member
        else:
            yield from _leaves(member, others, above | {task})


def _columns(each: LoadedRun, codes: Codebook) -> Iterator[tuple[str, Columns]]:
    """Yields the scores of each metric; none of a metric that a sample has no number for, or an item twice."""
    metrics = {metric: metric.partition(",")[::2] for metric in each.result.metrics}
    scores: dict[str, dict[int, float]] = {metric: {} for metric in metrics}
    cut, labels = cut_of(each.run.task), {}
    for sample in (line.content for line in samples_of(each.result.samples_file)):
        # An item is known by its place in the data and by the expected answer, so that other data have other items.
        name = f"{each.run.task} {sample.get('doc_id')} {sample.get('target_hash') or sample.get('target')}"
        item = codes.setdefault(name, len(codes))
        doc = sample.get("doc")
        labels[item] = str(doc.get(cut.field)) if cut and isinstance(doc, dict) else ""
        for metric, (key, filtered) in list(metrics.items()):
            # lmms-eval's samples name no filter: they are of the only one.
            if str(sample.get("filter", filtered or "none")) != (filtered or "none"):
                continue
            value = sample.get(key)
            value = value.get("score") if isinstance(value, dict) else value  # as lmms-eval logs some
            if isinstance(value, (bool, int, float)) and math.isfinite(value) and item not in scores[metric]:
                scores[metric][item] = float(value)
            else:
                del metrics[metric]
    for metric in metrics:
        own = scores[metric]
        if own and each.result.expected in (None, len(own)):
            items, ones = np.array(list(own), dtype=np.int32), np.ones(len(own), dtype=np.int32)
            numbers, offsets = np.array(list(own.values())), np.zeros(len(own), dtype=np.int64)
            groups = {cut.field: _texts([labels[one] for one in own], cut)} if cut else {}
            yield metric, Columns(items, numbers, ones, ones, items, offsets, groups=groups, further={})


def _texts(labels: Sequence[str], cut: Cut) -> Texts:
    """Returns the groups of a cut; what is in none, such as a question that nobody has labelled, has an empty name."""
    names = (*cut.groups, "")
    codes = [names.index(label if label in cut.groups else "") for label in labels]
    return Texts(np.array(codes, dtype=np.int32), names)
