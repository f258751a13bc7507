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
from culture_tasks.harness.rows import LEXICAL
from culture_tasks.results.columns import Columns, LoadedSamples, RecordKind, SampleReader
from culture_tasks.results.comparability import differences, other_questions, variation
from culture_tasks.results.finding import UnusedFile, find, without_copies
from culture_tasks.results.run_files import read_run
from culture_tasks.results.runs import Entrant, TaskRun
from culture_tasks.results.samples import samples_of
from culture_tasks.results.task_results import TaskResult, task_results
from culture_tasks.results.trained_on import TrainingManifests
from culture_tasks.text import FrequentMark, frequent_mark


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run with its numbers, as in the report and as in the result file.

    There are no ``columns`` without usable samples, and no ``kind`` of a task that isn't ours. ``lexical`` is a score
    by text overlap, ``again`` a model's second run of the task, in the other harness. ``whole`` is another judge's
    grading of all responses that this run's were drawn from. ``failed`` is the number of responses that the model
    failed to give, ``unknown`` the mark that isn't known with which many begin.
    """

    run: TaskRun
    result: TaskResult
    columns: Columns | None
    kind: RecordKind | None
    lexical: bool
    again: bool = False
    whole: LoadedRun | None = None
    failed: int = 0
    unknown: FrequentMark | None = None

    @property
    def is_repeat(self) -> bool:
        """Whether it is a sample of responses that the same judge has graded all of."""
        return self.whole is not None and {"other_judge", "other_judge_prompt"}.isdisjoint(
            differences(self.run.settings, self.whole.run.settings)
        )

    @property
    def order(self) -> tuple[str, str]:
        """Sorts runs by age."""
        return self.result.date, self.result.path.name


class Loading(NamedTuple):
    """Every run, in the order of the files, and the files that can't be used."""

    runs: list[LoadedRun]
    problems: list[UnusedFile]


class Names:
    """Names for models: by the user's ``PATTERN=NAME`` pairs, or the harness's, shortened where it is a path."""

    def __init__(self, pairs: Sequence[str] = ()) -> None:
        self._pairs: list[tuple[str, str]] = []
        for text in pairs:
            pattern, _, name = text.rpartition("=")
            if not pattern.strip() or not name.strip():
                raise SettingsError(
                    f"--name {text!r} isn't PATTERN=NAME. Expected, say, --name '*/Qwen3-VL-8B*=Qwen3-VL 8B'."
                )
            self._pairs.append((pattern.strip(), name.strip()))
        self._used_patterns: set[str] = set()
        self._models: set[str] = set()

    def model_name(self, result: TaskResult) -> str:
        """Returns the name of a result's model in the report, with a method or an adapter that was added to it."""
        adapter = _short(result.adapter) if result.adapter != result.model else ""
        added = "".join(f" + {part}" for part in (dict(result.model_args).get("method"), adapter) if part)
        models = dict.fromkeys((result.model, f"{result.model}{added}"))
        self._models.update(models)
        for pattern, name in self._pairs:
            if any(fnmatch.fnmatchcase(text, pattern) for text in (*models, str(result.path))):
                self._used_patterns.add(pattern)
                return name
        return f"{_short(result.model)}{added}"

    def refuse_unfitting(self) -> None:
        """Raises a SettingsError for a pattern that named nothing, perhaps since an earlier one always fitted first."""
        for pattern, name in self._pairs:
            if self._models and pattern not in self._used_patterns:
                earlier = " that an earlier --name leaves" if len(self._pairs) > 1 else ""
                raise SettingsError(
                    f"--name {pattern}={name} fits no model and no result file{earlier}."
                    f"{hint(pattern, sorted(self._models))}"
                )


def _short(model: str) -> str:
    is_path = model.startswith(("/", "./", "../", "~"))
    return Path(model).name or model if is_path else model


def load(
    paths: Sequence[str],
    names: Names,
    reader: SampleReader | None = None,
    prefix: str = "r",
    trained_on: TrainingManifests | None = None,
    *,
    progress: Callable[[Sequence[Path]], Iterable[Path]] = iter,
) -> Loading:
    """Reads every run that files, folders and patterns name.

    Runs that will be compared need the same ``reader``, which numbers their items. ``prefix`` begins the runs' keys.
    ``progress`` yields the files that it gets.
    """
    result_files = find(paths)
    files, copies = without_copies(result_files.results)
    loading = Loading([], [*result_files.problems, *copies])
    reader, trained_on = reader or SampleReader(), trained_on or TrainingManifests()
    add = partial(_add, loading, names=names, reader=reader, prefix=prefix, trained_on=trained_on)
    for path in progress(files):
        run = read_run(path)
        results = run if isinstance(run, UnusedFile) else task_results(run)
        if isinstance(results, UnusedFile):
            loading.problems.append(results)
            continue
        for result in results:
            if path not in result_files.only or result.task in result_files.only[path]:
                add(result)
    return loading


def _add(
    loading: Loading, result: TaskResult, names: Names, reader: SampleReader, prefix: str, trained_on: TrainingManifests
) -> None:
    entry = entries().get(result.task)
    if entry is not None and not isinstance(entry, Task):
        return  # a group of ours is worked out again from its members
    problems = loading.problems
    kind = _task_kind(entry) if entry is not None else _first_record_kind(result.task, result.samples_file)
    loaded = None if kind is None else _samples(result, kind, reader=reader, problems=problems)
    run = _run(f"{prefix}{len(loading.runs) + 1}", result, model=names.model_name(result), kind=kind, loaded=loaded)
    is_defined = kind is not None and bool(kind.metrics)
    if loaded is not None and kind is not None and not is_defined:
        where = "neither an installed package nor a culture of CULTURE_TASKS_CULTURES"
        why = f"{where} defines {kind.metric} of {kind.benchmark}: the result file counts alone"
        problems.append(UnusedFile(str(result.samples_file), "foreign", why))
    if items := trained_on.items(result, run.model, problems):
        trained_items = len(items.get(result.task, ()))
        if kind is not None and loaded is not None:
            # Tasks of a benchmark share their items: those of a task by the user are known from its samples.
            tasks = [task for task in items if task in entries() and benchmark_of(task).name == kind.benchmark]
            names_of_items = {item for task in tasks for item in items[task]}
            trained_items = reader.count(loaded.columns, kind.benchmark, names_of_items)
        run = replace(run, trained_on=trained_items)
    columns = loaded.columns if loaded is not None and is_defined else None
    lexical = loaded.lexical if loaded else kind is not None and any(LEXICAL in name for name in result.metrics)
    failed, unknown = (loaded.failed, frequent_mark(loaded.marks)) if loaded else (0, None)
    loaded_run = LoadedRun(run, result, columns, kind, lexical=lexical, failed=failed, unknown=unknown)
    loading.runs.append(loaded_run)


@cache
def _task_kind(task: Task) -> RecordKind:
    benchmark = benchmark_of(task.name).name
    scale = metrics_of(task.name, benchmark, task.metric)[task.metric].scale
    return _record_kind(task.name, benchmark, task.metric, scale)


def _first_record_kind(task: str, path: Path) -> RecordKind | None:
    """Returns the kind of records of a task that isn't in the registry, such as a variant by the user."""
    try:
        record = next(samples_of(path, None)).record
    except (OSError, StopIteration, DataError):
        return None
    return _record_kind(task, record.benchmark, record.metric, record.scale)


def _record_kind(task: str, benchmark: str, metric: str, scale: Scale) -> RecordKind:
    further = benchmarks()[benchmark].report().further if benchmark in benchmarks() else ()
    return RecordKind(benchmark, metric, scale, further, metrics_of(task, benchmark, metric))


def _samples(
    result: TaskResult, kind: RecordKind, reader: SampleReader, problems: list[UnusedFile]
) -> LoadedSamples | None:
    path = str(result.samples_file)
    try:
        loaded = reader.read(result.samples_file, kind, result.expected)
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
    if not (loaded.problems and loaded.problems[-1].kind == "partial"):
        problems.append(UnusedFile(path, "damaged" if loaded.problems else "empty", "no sample in it can be used"))
    return None


def _run(key: str, result: TaskResult, model: str, kind: RecordKind | None, loaded: LoadedSamples | None) -> TaskRun:
    items = 0 if loaded is None else int(loaded.columns.items.size)
    problems = [] if loaded is None else [problem.detail for problem in loaded.problems]
    if loaded is not None and loaded.failed:
        problems.append(f"{loaded.failed} of {loaded.spent.responses} responses failed, and count in no score")
    if loaded is not None and (unknown := frequent_mark(loaded.marks)):
        problems.append(
            f"{unknown.responses} of {loaded.spent.responses} responses begin with {unknown.mark!r}, which is no known "
            "mark: thinking that follows it was graded as the answer"
        )
    settings = loaded.settings(result.settings) if loaded else replace(result.settings, partial=kind is not None)
    return TaskRun(
        key=key,
        model=model,
        model_args=", ".join(f"{name}={value}" for name, value in result.model_args),
        harness=result.harness,
        task=result.task,
        benchmark=kind.benchmark if kind else None,
        settings=replace(settings, definition=()) if kind else settings,
        date=result.date,
        results_file=str(result.path),
        samples_file=str(result.samples_file) if loaded else None,
        items=items if loaded else result.expected or 0,
        scored=int(np.count_nonzero(~np.isnan(loaded.columns.scores))) if loaded else 0,
        outcomes=tuple(sorted(loaded.outcomes.items())) if loaded else (),
        problems=tuple(problems),
        spent=loaded.spent if loaded else result.spent,
        measured=result.costs.way if result.costs else "",
        own_data=result.own_data,
    )


def newest(runs: Sequence[LoadedRun]) -> Iterator[tuple[LoadedRun, UnusedFile | None]]:
    """Yields the runs, each with the reason to leave it out if a newer one of the same settings takes its place.

    A run that was recorded without a judge gives way to its gradings by any judge, and a sample that a judge grades
    again to its grading of all of the same responses.
    """
    regraded_files = {run.result.graded_from for run in runs if run.result.graded_from}
    newer_runs: dict[tuple[object, ...], list[LoadedRun]] = {}
    reasons: dict[str, str] = {}
    for run in sorted(
        sorted(runs, key=lambda run: run.order, reverse=True), key=lambda run: run.result.path in regraded_files
    ):
        key, settings = run.run.key, run.run.settings
        identity = (run.run.model, run.result.model, run.run.model_args, run.run.task, run.run.harness)
        rivals = newer_runs.setdefault((*identity, replace(settings, asked=None, commits=())), [])
        newer = next((rival for rival in rivals if not other_questions(rival.run.settings, settings)), None)
        if newer is not None:
            reasons[key] = f"{newer.run.results_file} is newer"
            continue
        rivals.append(run)
        if run.result.path in regraded_files and {judge.backend for judge in settings.judges} == {"none"}:
            reasons[key] = "it was graded later, in another file"
    for run in with_full_gradings(runs):
        if run.whole is not None and run.is_repeat:
            reasons[run.run.key] = f"the same judge graded all of it, in {run.whole.run.results_file}"
        reason = reasons.get(run.run.key)
        yield run, UnusedFile(run.run.results_file, "superseded", f"{run.run.task}: {reason}") if reason else None


@dataclass(frozen=True, slots=True)
class EntrantRuns:
    """A row with its runs, by task."""

    entrant: Entrant
    runs: Mapping[str, LoadedRun]


def enter(runs: Sequence[LoadedRun]) -> list[EntrantRuns]:
    """Makes rows of runs.

    Of several runs of one model on one task, the model's row has the one that agrees with most other models, and
    then the newest; every other run gets a row that names the differences.
    """
    runs = with_full_gradings(runs)
    order = _usual_order(runs)
    entered: list[EntrantRuns] = []
    by_model: dict[str, dict[str, list[LoadedRun]]] = {}
    for run in sorted(runs, key=lambda run: run.run.model.casefold()):
        by_model.setdefault(run.run.model, {}).setdefault(run.run.task, []).append(run)
    for model, tasks in by_model.items():
        rows: dict[str, dict[str, LoadedRun]] = {"": {}}
        for task, candidates in tasks.items():
            _place(rows, task, sorted(candidates, key=order, reverse=True))
        for text, by_task in rows.items():
            entered.append(EntrantRuns(Entrant(f"e{len(entered) + 1}", model, text), by_task))
    return entered


def with_full_gradings(runs: Sequence[LoadedRun]) -> list[LoadedRun]:
    """Gives each grading of a sample the newest grading of all of the same responses; a judge's comes first."""
    gradings: dict[tuple[str, Path], LoadedRun] = {}
    for run in sorted(runs, key=lambda run: (not run.lexical, run.order)):
        if run.result.subset is None and run.columns is not None and run.run.scored:
            for file in {run.result.path, run.result.graded_from or run.result.path}:
                gradings[run.run.task, file] = run
    return [
        replace(run, whole=gradings.get((run.run.task, run.result.graded_from)))
        if run.result.subset is not None and run.result.graded_from is not None
        else run
        for run in runs
    ]


def _place(rows: dict[str, dict[str, LoadedRun]], task: str, candidates: Sequence[LoadedRun]) -> None:
    """Puts the first run of a task into the model's row, and each other into a row that names the differences."""
    first = candidates[0]
    rows[""][task] = first
    for run in candidates[1:]:
        text = variation(run.run, first.run)
        if run.result.model != first.result.model:
            text = ", ".join(part for part in (f"model: {run.result.model}", text) if part)
        text = text or f"run of {run.run.date}"
        while task in rows.setdefault(text, {}):
            text += f", run of {run.run.date}" if "run of" not in text else f" ({run.run.key})"
        rows[text][task] = replace(run, again=run.run.harness != first.run.harness)


def _usual_order(runs: Sequence[LoadedRun]) -> Callable[[LoadedRun], tuple[object, ...]]:
    """Returns the order of a task's runs: judged, usual settings, no text overlap, harness, no repeat, the newest."""
    firsts: dict[str, list[LoadedRun]] = {}
    kinds: dict[str, str] = {}  # of each run, the key of the first run of its task that has the same settings
    for run in runs:
        candidates = firsts.setdefault(run.run.task, [])
        first = next((rival for rival in candidates if not differences(run.run.settings, rival.run.settings)), None)
        if first is None:
            candidates.append(run)
        kinds[run.run.key] = (first or run).run.key
    models = Counter(kind for kind, _ in {(kinds[run.run.key], run.run.model) for run in runs})
    in_harness = Counter(
        (task, harness) for task, harness, _ in {(run.run.task, run.run.harness, run.run.model) for run in runs}
    )
    return lambda run: (
        run.columns is not None,
        run.run.scored > 0,
        models[kinds[run.run.key]],
        not run.lexical,
        in_harness[run.run.task, run.run.harness],
        not run.is_repeat,
        run.order,
    )
