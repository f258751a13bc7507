"""From files to rows: result files with their samples, names for the models, and which runs make up a row."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, entries, metrics_of
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.report.comparability import differences, other_questions, variation
from culture_tasks.report.model import Entrant
from culture_tasks.report.runs import Run, Settings
from culture_tasks.report.samples import Columns, LoadedSamples, RecordKind, SampleReader, first_record, scale_of
from culture_tasks.report.trained_on import TrainedOn
from culture_tasks.results.finding import Kind, Problem, find, without_copies
from culture_tasks.results.run_files import read_run
from culture_tasks.results.task_results import TaskResult, task_results


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run with its numbers.

    Attributes:
        run: What the report says of it.
        result: What the result file says of it.
        columns: Its samples; None where there are none that can be used.
        kind: What its records are; None for a task that isn't ours.
        lexical: Whether its score is text overlap.
        order: Sorts runs by age.
        again: Whether it is its model's second run of the task, in the other harness.
    """

    run: Run
    result: TaskResult
    columns: Columns | None
    kind: RecordKind | None
    lexical: bool
    order: tuple[str, str]
    again: bool = False


class Loading(NamedTuple):
    """What was read.

    Attributes:
        runs: Every run, in the order of the files.
        problems: What could not be used.
    """

    runs: list[LoadedRun]
    problems: list[Problem]


class Names:
    """Names for models: what the user chose, or the harness's, shortened where it is a path."""

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        """Takes ``PATTERN=NAME`` pairs; the first pattern that fits counts.

        Raises:
            SettingsError: If one of them has no ``=``, no pattern or no name.
        """
        self._pairs: list[tuple[str, str]] = []
        for text in chosen:
            pattern, _, name = text.rpartition("=")
            if not pattern.strip() or not name.strip():
                raise SettingsError(
                    f"--name {text!r} isn't PATTERN=NAME. Needed is, say, --name '*/Qwen3-VL-8B*=Qwen3-VL 8B'."
                )
            self._pairs.append((pattern.strip(), name.strip()))
        self._fitting: set[str] = set()
        self._models: set[str] = set()

    def of(self, result: TaskResult) -> str:
        """Returns the name to show for the model of a result."""
        added = "".join(f" + {part}" for part in _added(result))
        models = [result.model, *([f"{result.model}{added}"] if added else [])]
        self._models.update(models)
        for pattern, name in self._pairs:
            if any(fnmatch.fnmatchcase(text, pattern) for text in (*models, str(result.path))):
                self._fitting.add(pattern)
                return name
        return f"{_short(result.model)}{added}"

    def refuse_unfitting(self) -> None:
        """Makes sure that each pattern named something.

        Raises:
            SettingsError: If one didn't, or always came after another that fitted.
        """
        for pattern, name in self._pairs:
            if self._models and pattern not in self._fitting:
                models = sorted(self._models)
                raise SettingsError(
                    f"--name {pattern}={name} fits no model and no result file"
                    f"{' that an earlier --name leaves' if len(self._pairs) > 1 else ''}."
                    f"{nearest(pattern, models)} There are {', '.join(models[:20])}{', …' if len(models) > 20 else ''}."
                )


def _added(result: TaskResult) -> list[str]:
    """Returns what was added to the model that a result is named by: a method, an adapter."""
    adapter = _short(result.adapter) if result.adapter != result.model else ""
    return [part for part in (dict(result.model_args).get("method"), adapter) if part]


def _short(model: str) -> str:
    is_path = model.startswith(("/", "./", "../", "~"))
    return Path(model).name or model if is_path else model


def load(
    named: Sequence[str],
    names: Names,
    reader: SampleReader | None = None,
    prefix: str = "r",
    trained_on: TrainedOn | None = None,
) -> Loading:
    """Reads every run that paths, folders and patterns name.

    Args:
        named: Files, folders and patterns.
        names: Names for models.
        reader: Numbers items and clusters; give the same one to what will be compared. None means a new one.
        prefix: What the runs' keys begin with.
        trained_on: Knows what models were trained on; None means what lies beside their weights.
    """
    found = find(named)
    paths, copies = without_copies(found.results)
    loading = Loading([], [*found.problems, *copies])
    reader, trained_on = reader or SampleReader(), trained_on or TrainedOn()
    for path in paths:
        run = read_run(path)
        results = run if isinstance(run, Problem) else task_results(run)
        if isinstance(results, Problem):
            loading.problems.append(results)
            continue
        for result in results:
            if path not in found.only or result.task in found.only[path]:
                _add(loading, result, names=names, reader=reader, prefix=prefix, trained_on=trained_on)
    return loading


def _add(
    loading: Loading, result: TaskResult, names: Names, reader: SampleReader, prefix: str, trained_on: TrainedOn
) -> None:
    entry = entries().get(result.task)
    if entry is not None and not isinstance(entry, Task):
        return  # a group of ours is worked out again from its members
    kind = _of_task(entry) if entry is not None else _of_first_record(result.task, result.samples_file)
    loaded = None if kind is None else _samples(result, kind, reader=reader, problems=loading.problems)
    run = _run(f"{prefix}{len(loading.runs) + 1}", result, model=names.of(result), kind=kind, loaded=loaded)
    is_defined = kind is not None and bool(kind.metrics)
    if loaded is not None and kind is not None and not is_defined:
        why = (
            f"no package that is installed here defines {kind.metric} of {kind.benchmark}: the result file counts alone"
        )
        loading.problems.append(Problem(str(result.samples_file), "foreign", why))
    seen = trained_on.items(result, run.model, loading.problems)
    loading.runs.append(
        LoadedRun(
            run=replace(run, trained_on=_seen_in_training(seen, result, kind, loaded, reader)) if seen else run,
            result=result,
            columns=loaded.columns if loaded is not None and is_defined else None,
            kind=kind,
            lexical=loaded.lexical if loaded else kind is not None and any(LEXICAL in name for name in result.metrics),
            order=(result.date, result.path.name),
        )
    )


def _seen_in_training(
    seen: Mapping[str, Collection[str]],
    result: TaskResult,
    kind: RecordKind | None,
    loaded: LoadedSamples | None,
    reader: SampleReader,
) -> int:
    """Returns how many items of a run its model was trained on: without samples, as many as the manifest names.

    Tasks of a benchmark share their items: a task of the user's own is known by those of its samples.
    """
    if kind is None or loaded is None:
        return len(seen.get(result.task, ()))
    alike = [task for task in seen if task in entries() and benchmark_of(task).name == kind.benchmark]
    return reader.count(loaded.columns, kind.benchmark, {item for task in alike for item in seen[task]})


@cache
def _of_task(task: Task) -> RecordKind:
    benchmark = benchmark_of(task.name)
    metrics = {metric.name: metric for metric in task.metrics()}
    scale = metrics[task.metric].scale
    return RecordKind(benchmark.name, task.metric, scale, further=benchmark.report().further, metrics=metrics)


def _of_first_record(task: str, path: Path) -> RecordKind | None:
    """Returns what to expect of a task that isn't in the registry, such as a user's own variant."""
    record = first_record(path)
    scale = None if record is None else scale_of(record)
    if record is None or scale is None:
        return None
    benchmark, metric = str(record.get("benchmark")), str(record.get("metric"))
    known = benchmarks().get(benchmark)
    further = () if known is None else known.report().further
    return RecordKind(benchmark, metric, scale, further=further, metrics=metrics_of(task, benchmark, metric))


def _samples(
    result: TaskResult, kind: RecordKind, reader: SampleReader, problems: list[Problem]
) -> LoadedSamples | None:
    path = result.samples_file
    if not path.is_file():
        problems.append(
            Problem(str(path), "missing", f"no samples of {result.task}: run it with --log_samples for intervals")
        )
        return None
    try:
        loaded = reader.read(path, kind)
    except OSError as error:
        problems.append(Problem(str(path), "damaged", f"can't be read ({error.strerror})"))
        return None
    problems.extend(loaded.problems)
    if not loaded.columns.items.size:
        why: Kind = "damaged" if loaded.problems else "empty"
        problems.append(Problem(str(path), why, "no sample in it can be used"))
        return None
    return loaded


def _run(key: str, result: TaskResult, model: str, kind: RecordKind | None, loaded: LoadedSamples | None) -> Run:
    items = 0 if loaded is None else int(loaded.columns.items.size)
    expected = result.expected
    problems = [problem.detail for problem in loaded.problems] if loaded else []
    if loaded and expected and items < expected:
        problems.append(f"{items} of {expected} samples are there")
    return Run(
        key=key,
        model=model,
        model_args=", ".join(f"{name}={value}" for name, value in result.model_args),
        harness=result.harness,
        task=result.task,
        benchmark=kind.benchmark if kind else None,
        settings=replace(_settings(result, loaded), partial=kind is not None and loaded is None),
        date=result.date,
        results_file=str(result.path),
        samples_file=str(result.samples_file) if loaded else None,
        items=items,
        scored=0 if loaded is None else int(np.count_nonzero(~np.isnan(loaded.columns.scores))),
        outcomes=tuple(sorted(loaded.outcomes.items())) if loaded else (),
        problems=tuple(problems),
        spent=loaded.spent if loaded else result.spent,
        measured=result.costs.way if result.costs else "",
        own_data=result.own_data,
    )


def _settings(result: TaskResult, loaded: LoadedSamples | None) -> Settings:
    templates = loaded.prompts if loaded else ()
    return Settings(
        judges=loaded.judges if loaded else (),
        task_version=result.version,
        prompt=", ".join(part for part in (*templates, result.prompt) if part),
        data=loaded.data if loaded else (),
        commits=result.commits,
        decoding=result.decoding,
        chat_template=result.chat_template,
        asked=loaded.asked if loaded else result.asked,
        limit=result.limit,
    )


def newest(runs: Sequence[LoadedRun]) -> Iterator[tuple[LoadedRun, Problem | None]]:
    """Yields the runs, each with the reason to leave it out where a newer one stands for it.

    A newer one has the same model, arguments, task, harness and settings. A run that was recorded without a judge gives
    way to its gradings, whoever made them.
    """
    by_age = sorted(runs, key=lambda run: run.order, reverse=True)
    regraded = {run.result.graded_from for run in runs if run.result.graded_from}
    kept: dict[tuple[object, ...], list[LoadedRun]] = {}
    reasons: dict[str, Problem] = {}
    for each in sorted(by_age, key=lambda run: run.result.path in regraded):
        alike = kept.setdefault(_identity(each), [])
        newer = next((other for other in alike if not other_questions(other.run.settings, each.run.settings)), None)
        if newer is not None:
            reasons[each.run.key] = _superseded(each, f"{each.run.task}: {newer.run.results_file} is newer")
            continue
        alike.append(each)
        if each.result.path in regraded and _is_unjudged(each.run):
            reasons[each.run.key] = _superseded(each, f"{each.run.task}: it was graded later, in another file")
    for each in runs:
        yield each, reasons.get(each.run.key)


def _superseded(each: LoadedRun, detail: str) -> Problem:
    return Problem(each.run.results_file, "superseded", detail)


def _is_unjudged(run: Run) -> bool:
    return bool(run.settings.judges) and all(judge.backend == "none" for judge in run.settings.judges)


def _identity(each: LoadedRun) -> tuple[object, ...]:
    run = each.run
    settings = replace(run.settings, asked=None, commits=())
    return (run.model, each.result.model, run.model_args, run.task, run.harness, settings)


@dataclass(frozen=True, slots=True)
class Entered:
    """An entrant with its runs.

    Attributes:
        entrant: The row.
        runs: Its runs, by task.
    """

    entrant: Entrant
    runs: Mapping[str, LoadedRun]


def enter(runs: Sequence[LoadedRun]) -> list[Entered]:
    """Makes rows of runs.

    Of several runs of one model on one task, that one stands in the model's own row which agrees with most other
    models, and then the newest; every other gets a row that says what sets it apart.
    """
    usual = _usual(runs)
    found: list[Entered] = []
    for model, own in _by_model(runs).items():
        rows: dict[str, dict[str, LoadedRun]] = {"": {}}
        for task in dict.fromkeys(each.run.task for each in own):
            _place(rows, task, sorted((each for each in own if each.run.task == task), key=usual, reverse=True))
        for text, by_task in rows.items():
            found.append(Entered(Entrant(f"e{len(found) + 1}", model, text), by_task))
    return found


def _by_model(runs: Sequence[LoadedRun]) -> Mapping[str, list[LoadedRun]]:
    """Returns the runs of each model, the models in alphabetical order."""
    found: dict[str, list[LoadedRun]] = {}
    for each in sorted(runs, key=lambda each: each.run.model.casefold()):
        found.setdefault(each.run.model, []).append(each)
    return found


def _place(rows: dict[str, dict[str, LoadedRun]], task: str, candidates: Sequence[LoadedRun]) -> None:
    first = candidates[0]
    rows[""][task] = first
    for other in candidates[1:]:
        text = variation(other.run, first.run)
        if other.result.model != first.result.model:
            text = ", ".join(part for part in (f"model: {other.result.model}", text) if part)
        text = text or f"run of {other.run.date}"
        row = rows.setdefault(text, {})
        while task in row:
            text += f", run of {other.run.date}" if "run of" not in text else f" ({other.run.key})"
            row = rows.setdefault(text, {})
        row[task] = replace(other, again=other.run.harness != first.run.harness)


class _usual:  # noqa: N801 - used as a function: a key to sort by
    """Sorts a task's runs: judged before not judged, the most usual settings first, then harness, then the newest."""

    def __init__(self, runs: Sequence[LoadedRun]) -> None:
        self._kinds: dict[str, list[LoadedRun]] = {}
        kinds = {(self._kind(each), each.run.model) for each in runs}
        harnesses = {(each.run.task, each.run.harness, each.run.model) for each in runs}
        self._counts = Counter(kind for kind, _ in kinds)
        self._in_harness = Counter((task, harness) for task, harness, _ in harnesses)

    def _kind(self, each: LoadedRun) -> str:
        """Returns the key of the first run of the same task with the same settings."""
        kinds = self._kinds.setdefault(each.run.task, [])
        for first in kinds:
            if not differences(each.run.settings, first.run.settings):
                return first.run.key
        kinds.append(each)
        return each.run.key

    def __call__(self, each: LoadedRun) -> tuple[bool, bool, int, bool, int, tuple[str, str]]:
        return (
            each.columns is not None,
            each.run.scored > 0,
            self._counts[self._kind(each)],
            not each.lexical,
            self._in_harness[each.run.task, each.run.harness],
            each.order,
        )
