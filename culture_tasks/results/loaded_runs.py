"""From files to rows: result files with their samples, names for the models, and which runs make up a row."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale, Task
from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, entries, metrics_of
from culture_tasks.errors import DataError, SettingsError, hint
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.results.columns import Columns, LoadedSamples, RecordKind, SampleReader
from culture_tasks.results.comparability import differences, other_questions, variation
from culture_tasks.results.finding import UnusedFile, find, without_copies
from culture_tasks.results.run_files import read_run
from culture_tasks.results.runs import Entrant, TaskRun
from culture_tasks.results.samples import samples_of
from culture_tasks.results.task_results import TaskResult, task_results
from culture_tasks.results.trained_on import TrainedOn


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run with its numbers, as the report and as the result file say it.

    There are no ``columns`` without usable samples, and no ``kind`` of a task that isn't ours. ``lexical`` is a score
    by text overlap, ``again`` a model's second run of the task, in the other harness. ``whole`` is another judge's
    grading of all responses that this run's were drawn from. ``others`` are other models' runs of all questions, where
    this run's are drawn from them, and their scores are to make its own more certain.
    """

    run: TaskRun
    result: TaskResult
    columns: Columns | None
    kind: RecordKind | None
    lexical: bool
    again: bool = False
    whole: LoadedRun | None = None
    others: tuple[LoadedRun, ...] = ()

    @property
    def order(self) -> tuple[str, str]:
        """Sorts runs by age."""
        return self.result.date, self.result.path.name


class Loading(NamedTuple):
    """Every run, in the order of the files, and what could not be used."""

    runs: list[LoadedRun]
    problems: list[UnusedFile]


class Names:
    """Names for models: by the user's ``PATTERN=NAME`` pairs, or the harness's, shortened where it is a path."""

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        self._pairs: list[tuple[str, str]] = []
        for text in chosen:
            pattern, _, name = text.rpartition("=")
            if not pattern.strip() or not name.strip():
                raise SettingsError(
                    f"--name {text!r} isn't PATTERN=NAME. Expected, say, --name '*/Qwen3-VL-8B*=Qwen3-VL 8B'."
                )
            self._pairs.append((pattern.strip(), name.strip()))
        self._fitting: set[str] = set()
        self._models: set[str] = set()

    def of(self, result: TaskResult) -> str:
        """Returns the name to show for the model of a result, with a method or an adapter that was added to it."""
        adapter = _short(result.adapter) if result.adapter != result.model else ""
        added = "".join(f" + {part}" for part in (dict(result.model_args).get("method"), adapter) if part)
        models = dict.fromkeys((result.model, f"{result.model}{added}"))
        self._models.update(models)
        for pattern, name in self._pairs:
            if any(fnmatch.fnmatchcase(text, pattern) for text in (*models, str(result.path))):
                self._fitting.add(pattern)
                return name
        return f"{_short(result.model)}{added}"

    def refuse_unfitting(self) -> None:
        """Raises a SettingsError for a pattern that named nothing, such as where an earlier one always fitted first."""
        for pattern, name in self._pairs:
            if self._models and pattern not in self._fitting:
                earlier = " that an earlier --name leaves" if len(self._pairs) > 1 else ""
                raise SettingsError(
                    f"--name {pattern}={name} fits no model and no result file{earlier}."
                    f"{hint(pattern, sorted(self._models))}"
                )


def _short(model: str) -> str:
    is_path = model.startswith(("/", "./", "../", "~"))
    return Path(model).name or model if is_path else model


def load(
    named: Sequence[str],
    names: Names,
    reader: SampleReader | None = None,
    prefix: str = "r",
    trained_on: TrainedOn | None = None,
    *,
    shards: bool = False,
    progress: Callable[[Sequence[Path]], Iterable[Path]] = iter,
) -> Loading:
    """Reads every run that files, folders and patterns name.

    Runs that will be compared need the same ``reader``, which numbers their items. ``prefix`` begins the runs' keys.
    ``shards`` reads parts of tasks, whose numbers aren't those of the tasks. ``progress`` yields the files it gets.
    """
    found = find(named)
    paths, copies = without_copies(found.results)
    loading = Loading([], [*found.problems, *copies])
    add = partial(
        _add, loading, names=names, reader=reader or SampleReader(), prefix=prefix, trained_on=trained_on or TrainedOn()
    )
    for path in progress(paths):
        run = read_run(path)
        results = run if isinstance(run, UnusedFile) else task_results(run)
        if isinstance(results, UnusedFile):
            loading.problems.append(results)
            continue
        if not shards and (parts := [result for result in results if result.shard is not None]):
            tasks = [result.task for result in parts if not result.members]
            of = f"{parts[0].shard} of {', '.join(tasks[:3])}{', …' if len(tasks) > 3 else ''}"
            reason = "whose numbers aren't the tasks'. Put all shards together with `culture-tasks merge`"
            loading.problems.append(UnusedFile(str(path), "partial", f"{of}, {reason}"))
            results = [result for result in results if result.shard is None]
        for result in results:
            if path not in found.only or result.task in found.only[path]:
                add(result)
    return loading


def _add(
    loading: Loading, result: TaskResult, names: Names, reader: SampleReader, prefix: str, trained_on: TrainedOn
) -> None:
    entry = entries().get(result.task)
    if entry is not None and not isinstance(entry, Task):
        return  # a group of ours is worked out again from its members
    problems = loading.problems
    kind = _of_task(entry) if entry is not None else _of_first_record(result.task, result.samples_file)
    loaded = None if kind is None else _samples(result, kind, reader=reader, problems=problems)
    run = _run(f"{prefix}{len(loading.runs) + 1}", result, model=names.of(result), kind=kind, loaded=loaded)
    is_defined = kind is not None and bool(kind.metrics)
    if loaded is not None and kind is not None and not is_defined:
        why = f"no installed package defines {kind.metric} of {kind.benchmark}: the result file counts alone"
        problems.append(UnusedFile(str(result.samples_file), "foreign", why))
    if items := trained_on.items(result, run.model, problems):
        seen = len(items.get(result.task, ()))
        if kind is not None and loaded is not None:
            # Tasks of a benchmark share their items: a task of the user's own is known by the items of its samples.
            alike = [task for task in items if task in entries() and benchmark_of(task).name == kind.benchmark]
            seen = reader.count(loaded.columns, kind.benchmark, {item for task in alike for item in items[task]})
        run = replace(run, trained_on=seen)
    columns = loaded.columns if loaded is not None and is_defined else None
    lexical = loaded.lexical if loaded else kind is not None and any(LEXICAL in name for name in result.metrics)
    loading.runs.append(LoadedRun(run, result, columns=columns, kind=kind, lexical=lexical))


@cache
def _of_task(task: Task) -> RecordKind:
    benchmark = benchmark_of(task.name).name
    return _kind(task.name, benchmark, task.metric, metrics_of(task.name, benchmark, task.metric)[task.metric].scale)


def _of_first_record(task: str, path: Path) -> RecordKind | None:
    """Returns what to expect of a task that isn't in the registry, such as a user's own variant."""
    try:
        record = next(samples_of(path)).record
    except (OSError, StopIteration, DataError):
        return None
    return _kind(task, record.benchmark, record.metric, record.scale)


def _kind(task: str, benchmark: str, metric: str, scale: Scale) -> RecordKind:
    further = benchmarks()[benchmark].report().further if benchmark in benchmarks() else ()
    return RecordKind(benchmark, metric, scale, further, metrics_of(task, benchmark, metric))


def _samples(
    result: TaskResult, kind: RecordKind, reader: SampleReader, problems: list[UnusedFile]
) -> LoadedSamples | None:
    path = str(result.samples_file)
    try:
        loaded = reader.read(result.samples_file, kind)
    except FileNotFoundError:
        reason = f"no samples of {result.task}: run it with --log_samples for intervals"
        problems.append(UnusedFile(path, "missing", reason))
        return None
    except OSError as error:
        problems.append(UnusedFile(path, "damaged", f"can't be read ({error.strerror})"))
        return None
    problems.extend(loaded.problems)
    if loaded.columns.items.size:
        return loaded
    problems.append(UnusedFile(path, "damaged" if loaded.problems else "empty", "no sample in it can be used"))
    return None


def _run(key: str, result: TaskResult, model: str, kind: RecordKind | None, loaded: LoadedSamples | None) -> TaskRun:
    items = 0 if loaded is None else int(loaded.columns.items.size)
    problems = [] if loaded is None else [problem.detail for problem in loaded.problems]
    if result.expected and 0 < items < result.expected:
        problems.append(f"{items} of {result.expected} samples are there")
    return TaskRun(
        key=key,
        model=model,
        model_args=", ".join(f"{name}={value}" for name, value in result.model_args),
        harness=result.harness,
        task=result.task,
        benchmark=kind.benchmark if kind else None,
        settings=loaded.settings(result.settings) if loaded else replace(result.settings, partial=kind is not None),
        date=result.date,
        results_file=str(result.path),
        samples_file=str(result.samples_file) if loaded else None,
        items=items,
        scored=int(np.count_nonzero(~np.isnan(loaded.columns.scores))) if loaded else 0,
        outcomes=tuple(sorted(loaded.outcomes.items())) if loaded else (),
        problems=tuple(problems),
        spent=loaded.spent if loaded else result.spent,
        measured=result.costs.way if result.costs else "",
        own_data=result.own_data,
    )


def newest(runs: Sequence[LoadedRun]) -> Iterator[tuple[LoadedRun, UnusedFile | None]]:
    """Yields the runs, each with the reason to leave it out where a newer one of the same settings takes its place.

    A run that was recorded without a judge gives way to its gradings, whoever made them.
    """
    regraded = {run.result.graded_from for run in runs if run.result.graded_from}
    kept: dict[tuple[object, ...], list[LoadedRun]] = {}
    reasons: dict[str, str] = {}
    for each in sorted(
        sorted(runs, key=lambda run: run.order, reverse=True), key=lambda run: run.result.path in regraded
    ):
        run, settings = each.run, each.run.settings
        identity = (run.model, each.result.model, run.model_args, run.task, run.harness)
        alike = kept.setdefault((*identity, replace(settings, asked=None, commits=())), [])
        newer = next((other for other in alike if not other_questions(other.run.settings, settings)), None)
        if newer is not None:
            reasons[run.key] = f"{newer.run.results_file} is newer"
            continue
        alike.append(each)
        if each.result.path in regraded and {judge.backend for judge in settings.judges} == {"none"}:
            reasons[run.key] = "it was graded later, in another file"
    for each in runs:
        reason = reasons.get(each.run.key)
        detail = f"{each.run.task}: {reason}"
        yield each, UnusedFile(each.run.results_file, "superseded", detail) if reason else None


@dataclass(frozen=True, slots=True)
class Entered:
    """A row with its runs, by task."""

    entrant: Entrant
    runs: Mapping[str, LoadedRun]


def enter(runs: Sequence[LoadedRun]) -> list[Entered]:
    """Makes rows of runs.

    Of several runs of one model on one task, the model's own row has the one that agrees with most other models, and
    then the newest; every other run gets a row that says what sets it apart.
    """
    runs = with_whole(runs)
    usual = _usual(runs)
    entered: list[Entered] = []
    by_model: dict[str, dict[str, list[LoadedRun]]] = {}
    for each in sorted(runs, key=lambda each: each.run.model.casefold()):
        by_model.setdefault(each.run.model, {}).setdefault(each.run.task, []).append(each)
    for model, tasks in by_model.items():
        rows: dict[str, dict[str, LoadedRun]] = {"": {}}
        for task, candidates in tasks.items():
            _place(rows, task, sorted(candidates, key=usual, reverse=True))
        for text, by_task in rows.items():
            entered.append(Entered(Entrant(f"e{len(entered) + 1}", model, text), by_task))
    return entered


def with_whole(runs: Sequence[LoadedRun]) -> list[LoadedRun]:
    """Gives each grading of a sample the newest grading of all of the same responses; a judge's comes first."""
    whole: dict[tuple[str, Path], LoadedRun] = {}
    for each in sorted(runs, key=lambda each: (not each.lexical, each.order)):
        if each.result.subset is None and each.columns is not None and each.run.scored:
            for file in {each.result.path, each.result.graded_from or each.result.path}:
                whole[each.run.task, file] = each
    return [
        replace(each, whole=whole.get((each.run.task, each.result.graded_from)))
        if each.result.subset is not None and each.result.graded_from is not None
        else each
        for each in runs
    ]


def _place(rows: dict[str, dict[str, LoadedRun]], task: str, candidates: Sequence[LoadedRun]) -> None:
    """Puts the first run of a task into the model's own row, and each other into a row that says what differs."""
    first = candidates[0]
    rows[""][task] = first
    for other in candidates[1:]:
        text = variation(other.run, first.run)
        if other.result.model != first.result.model:
            text = ", ".join(part for part in (f"model: {other.result.model}", text) if part)
        text = text or f"run of {other.run.date}"
        while task in rows.setdefault(text, {}):
            text += f", run of {other.run.date}" if "run of" not in text else f" ({other.run.key})"
        rows[text][task] = replace(other, again=other.run.harness != first.run.harness)


def _usual(runs: Sequence[LoadedRun]) -> Callable[[LoadedRun], tuple[object, ...]]:
    """Returns what to sort a task's runs by: judged, the most usual settings, no text overlap, harness, the newest."""
    firsts: dict[str, list[LoadedRun]] = {}
    kinds: dict[str, str] = {}  # of each run, the key of the first run of its task that has the same settings
    for each in runs:
        known = firsts.setdefault(each.run.task, [])
        alike = (first for first in known if not differences(each.run.settings, first.run.settings))
        first = next(alike, None)
        if first is None:
            known.append(each)
        kinds[each.run.key] = (first or each).run.key
    models = Counter(kind for kind, _ in {(kinds[each.run.key], each.run.model) for each in runs})
    in_harness = Counter(
        (task, harness) for task, harness, _ in {(each.run.task, each.run.harness, each.run.model) for each in runs}
    )
    return lambda each: (
        each.columns is not None,
        each.run.scored > 0,
        models[kinds[each.run.key]],
        not each.lexical,
        in_harness[each.run.task, each.run.harness],
        each.order,
    )
