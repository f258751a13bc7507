"""From files to rows: each task of a result file with its samples, and the row of the report that it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from culture_tasks.benchmarks.interface import Scale, Task
from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, entries, metrics_of
from culture_tasks.errors import DataError
from culture_tasks.results.comparability import differences, other_questions, variation
from culture_tasks.results.finding import UnusedFile, find, without_copies
from culture_tasks.results.patterns import ModelPatterns
from culture_tasks.results.reading import SampleReader, Samples
from culture_tasks.results.run_files import read_run
from culture_tasks.results.runs import ModelRow, RecordKind, Run, RunSamples
from culture_tasks.results.samples import samples_of
from culture_tasks.results.task_results import task_results
from culture_tasks.results.trained_on import TrainingManifests


@dataclass(frozen=True)
class Results:
    """Runs, in the order of the files, with the rows of the report that they are in, and the files that are unused."""

    runs: Sequence[Run] = ()
    reader: SampleReader = field(default_factory=SampleReader)
    problems: list[UnusedFile] = field(default_factory=list)
    rows: Mapping[str, ModelRow] = field(default_factory=dict)

    @property
    def samples(self) -> Samples:
        """The samples of all runs."""
        return self.reader.samples

    def of(self, row: str) -> dict[str, Run]:
        """Returns the runs of a row by task."""
        return {run.task: run for run in self.runs if run.row == row}


class Names:
    """Names for models: by the user's ``PATTERN=NAME`` pairs, or the harness's, shortened where it is a path."""

    def __init__(self, pairs: Sequence[str] = ()) -> None:
        self._patterns = ModelPatterns("--name", pairs, "*/Qwen3-VL-8B*=Qwen3-VL 8B")
        self.refuse_unfitting = self._patterns.refuse_unfitting

    def model_name(self, run: Run) -> str:
        """Returns the name of a run's model in the report, with a method or an adapter that was added to it."""
        adapter = _short(run.adapter) if run.adapter != run.model_name else ""
        added = "".join(f" + {part}" for part in (dict(run.arguments).get("method"), adapter) if part)
        names = self._patterns.values(f"{run.model_name}{added}", run.model_name, str(run.path))
        return next(names, f"{_short(run.model_name)}{added}")


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
) -> Results:
    """Reads every run that files, folders and patterns name.

    Runs that will be compared need the same ``reader``, which numbers their items. ``prefix`` begins the runs' keys.
    ``progress`` yields the files that it gets.
    """
    found, runs = find(paths), list[Run]()
    files, copies = without_copies(found.results)
    results = Results(runs, SampleReader() if reader is None else reader, [*found.problems, *copies])
    trained_on = trained_on or TrainingManifests()
    for path in progress(files):
        run_files = read_run(path)
        read = run_files if isinstance(run_files, UnusedFile) else task_results(run_files)
        if isinstance(read, UnusedFile):
            results.problems.append(read)
            continue
        for run in read:
            is_wanted = path not in found.only or run.task in found.only[path]
            if is_wanted and isinstance(entries().get(run.task), Task | None):  # a group is worked out from its tasks
                run = replace(run, key=f"{prefix}{len(runs) + 1}", model=names.model_name(run))
                runs.append(_with_samples(run, results, trained_on))
    return results


def _with_samples(run: Run, results: Results, trained_on: TrainingManifests) -> Run:
    """Returns a run with what its samples add up to, and how many of its items its model was trained on."""
    entry = entries().get(run.task)
    kind = _first_record_kind(run) if entry is None else _task_kind(run.task)
    samples = None if kind is None else _read(run, kind, results)
    settings = replace(run.settings, partial=kind is not None, definition=() if kind else run.settings.definition)
    if samples is not None:
        prompt = ", ".join(filter(None, (*samples.prompts, run.settings.prompt)))
        settings = replace(
            settings, judges=samples.judges, prompt=prompt, data=samples.data, asked=samples.asked, partial=False
        )
    run = replace(run, kind=kind, samples=samples, settings=settings)
    if samples is not None and kind is not None and run.metric is None:
        where = "neither an installed package nor a culture of CULTURE_TASKS_CULTURES"
        why = f"{where} defines {kind.metric} of {kind.benchmark}: the result file counts alone"
        results.problems.append(UnusedFile(str(run.samples_file), "foreign", why))
    items = trained_on.items(run, results.problems)
    count = len(items.get(run.task, ()))
    if samples is not None and kind is not None and items:
        # Tasks of a benchmark share their items: those of a task by the user are known from its samples.
        tasks = [task for task in items if task in entries() and benchmark_of(task).name == kind.benchmark]
        count = results.reader.count(samples.rows, kind.benchmark, {item for task in tasks for item in items[task]})
    return replace(run, trained_on=count)


@cache
def _task_kind(task: str) -> RecordKind:
    entry = entries()[task]
    assert isinstance(entry, Task)
    benchmark = benchmark_of(task).name
    scale = metrics_of(task, benchmark, entry.metric)[entry.metric].scale
    return _record_kind(task, benchmark, entry.metric, scale)


def _first_record_kind(run: Run) -> RecordKind | None:
    """Returns the kind of records of a task that isn't in the registry, such as a variant by the user."""
    try:
        record = next(samples_of(run.samples_file, None)).record
    except (OSError, StopIteration, DataError):
        return None
    return _record_kind(run.task, record.benchmark, record.metric, record.scale)


def _record_kind(task: str, benchmark: str, metric: str, scale: Scale) -> RecordKind:
    further = benchmarks()[benchmark].report().further if benchmark in benchmarks() else ()
    return RecordKind(benchmark, metric, scale, further, metrics_of(task, benchmark, metric))


def _read(run: Run, kind: RecordKind, results: Results) -> RunSamples | None:
    path, problems = str(run.samples_file), results.problems
    try:
        samples = results.reader.read(run.samples_file, kind, run.expected)
    except FileNotFoundError:
        reason = f"no samples of {run.task}: run it with --log_samples for intervals"
        problems.append(UnusedFile(path, "missing", reason))
        return None
    except OSError as error:
        problems.append(UnusedFile(path, "damaged", f"can't be read ({error.strerror})"))
        return None
    problems.extend(samples.problems)
    if samples.n:
        return samples
    if not (samples.problems and samples.problems[-1].kind == "partial"):
        problems.append(UnusedFile(path, "damaged" if samples.problems else "empty", "no sample in it can be used"))
    return None


# Which runs are used, and in which rows


def is_repeat(run: Run) -> bool:
    """Whether it is a sample of responses that the same judge has graded all of."""
    return run.whole is not None and "other_judge" not in differences(run.settings, run.whole.settings)


def newest(runs: Sequence[Run]) -> Iterator[tuple[Run, UnusedFile | None]]:
    """Yields the runs, each with the reason to leave it out if a newer one of the same settings takes its place.

    A run that was recorded without a judge gives way to its gradings by any judge, and a sample that a judge grades
    again to its grading of all of the same responses.
    """
    regraded_files = {run.graded_from for run in runs if run.graded_from}
    newer_runs: dict[tuple[object, ...], list[Run]] = {}
    reasons: dict[str, str] = {}
    for run in sorted(sorted(runs, key=lambda run: run.age, reverse=True), key=lambda run: run.path in regraded_files):
        key, settings = run.key, run.settings
        identity = (run.model, run.model_name, run.model_args, run.task, run.harness)
        rivals = newer_runs.setdefault((*identity, replace(settings, asked=None, commits=())), [])
        newer = next((rival for rival in rivals if not other_questions(rival.settings, settings)), None)
        if newer is not None:
            reasons[key] = f"{newer.path} is newer"
            continue
        rivals.append(run)
        if run.path in regraded_files and {judge.backend for judge in settings.judges} == {"none"}:
            reasons[key] = "it was graded later, in another file"
    for run in with_full_gradings(runs):
        if run.whole is not None and is_repeat(run):
            reasons[run.key] = f"the same judge graded all of it, in {run.whole.path}"
        reason = reasons.get(run.key)
        yield run, UnusedFile(str(run.path), "superseded", f"{run.task}: {reason}") if reason else None


def in_rows(runs: Sequence[Run]) -> tuple[list[Run], dict[str, ModelRow]]:
    """Puts runs into rows: of several runs of one model on one task, the model's row has the most usual, then newest.

    Every other run gets a row that names the differences.
    """
    runs = with_full_gradings(runs)
    order = _usual_order(runs)
    rows: dict[str, ModelRow] = {}
    placed: list[Run] = []
    by_model: dict[str, dict[str, list[Run]]] = {}
    for run in sorted(runs, key=lambda run: run.model.casefold()):
        by_model.setdefault(run.model, {}).setdefault(run.task, []).append(run)
    for model, tasks in by_model.items():
        by_variation: dict[str, dict[str, Run]] = {"": {}}
        for candidates in tasks.values():
            _place(by_variation, sorted(candidates, key=order, reverse=True))
        for text, by_task in by_variation.items():
            row = ModelRow(f"e{len(rows) + 1}", model, text)
            rows[row.key] = row
            placed += [replace(run, row=row.key) for run in by_task.values()]
    order_of_files = {run.key: place for place, run in enumerate(runs)}
    return sorted(placed, key=lambda run: order_of_files[run.key]), rows


def with_full_gradings(runs: Sequence[Run]) -> list[Run]:
    """Gives each grading of a sample the newest grading of all of the same responses; a judge's comes first."""
    gradings: dict[tuple[str, Path], Run] = {}
    for run in sorted(runs, key=lambda run: (not run.is_lexical, run.age)):
        if run.subset is None and run.has_samples and run.scored:
            for file in {run.path, run.graded_from or run.path}:
                gradings[run.task, file] = run
    return [
        replace(run, whole=gradings.get((run.task, run.graded_from)))
        if run.subset is not None and run.graded_from is not None
        else run
        for run in runs
    ]


def _place(by_variation: dict[str, dict[str, Run]], candidates: Sequence[Run]) -> None:
    """Puts the first run of a task into the model's row, and each other into a row that names the differences."""
    first = candidates[0]
    by_variation[""][first.task] = first
    for run in candidates[1:]:
        text = variation(run, first)
        if run.model_name != first.model_name:
            text = ", ".join(part for part in (f"model: {run.model_name}", text) if part)
        text = text or f"run of {run.date}"
        while run.task in by_variation.setdefault(text, {}):
            text += f", run of {run.date}" if "run of" not in text else f" ({run.key})"
        by_variation[text][run.task] = replace(run, is_second=run.harness != first.harness)


def _usual_order(runs: Sequence[Run]) -> Callable[[Run], tuple[object, ...]]:
    """Returns the order of a task's runs: judged, usual settings, no text overlap, harness, no repeat, the newest."""
    firsts: dict[str, list[Run]] = {}
    kinds: dict[str, str] = {}  # of each run, the key of the first run of its task that has the same settings
    for run in runs:
        candidates = firsts.setdefault(run.task, [])
        first = next((rival for rival in candidates if not differences(run.settings, rival.settings)), None)
        if first is None:
            candidates.append(run)
        kinds[run.key] = (first or run).key
    models = Counter(kind for kind, _ in {(kinds[run.key], run.model) for run in runs})
    in_harness = Counter((task, harness) for task, harness, _ in {(run.task, run.harness, run.model) for run in runs})
    return lambda run: (
        run.has_samples,
        run.scored > 0,
        models[kinds[run.key]],
        not run.is_lexical,
        in_harness[run.task, run.harness],
        not is_repeat(run),
        run.age,
    )
