"""The results of a harness for our tasks: their rows, and what belongs beside them.

A harness hands over the records of a task of ours as one metric, and has no number for it. So the numbers of its row,
and those of the groups above it, are written here; the settings of the task in the result file name own data, commits
and subsets. Tasks and groups of others are left as they are.
"""

from __future__ import annotations

import atexit
import logging
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Run
from culture_tasks.benchmarks.registry import rubric_named, task_named
from culture_tasks.costs.prices import read_prices
from culture_tasks.harness.hooks import name_of
from culture_tasks.harness.judge_costs import KEY, judge_costs
from culture_tasks.harness.loading import LoadedTask, loaded_task
from culture_tasks.harness.records import OWN_DATA, RECORD, completed
from culture_tasks.harness.rows import (
    Record,
    Row,
    TaskRecords,
    computed_from,
    statistics_of,
    unjudged,
    write_group_row,
    write_row,
)
from culture_tasks.harness.session import current_session
from culture_tasks.judges.endpoint.budget import refused_requests
from culture_tasks.text import failure_in, frequent_mark, opening_mark

_log = logging.getLogger(__name__)

COMMITS = "hub_commits"
"""Entry of a task's metadata: the commit of each of the Hub's data sets that the documents were read from."""


@dataclass(frozen=True)
class EvaluatedTask:
    """A task of ours that a harness has evaluated: its records, the filter of its responses, its data."""

    numbers: TaskRecords
    filter_name: str
    loaded: LoadedTask | None

    @cached_property
    def failures(self) -> list[str]:
        """Why responses to its documents failed."""
        return list(filter(None, map(failure_in, self._responses())))

    @cached_property
    def marks(self) -> Counter[str]:
        """How many responses begin with which mark; those without one with an empty text."""
        return Counter(map(opening_mark, self._responses()))

    def _responses(self) -> Iterator[str]:
        return (run["response"] for record in self.numbers.records for run in record.get("runs", ()))


def evaluated_task(task: Any, metrics: Mapping[tuple[str, str], Sequence[Record]]) -> EvaluatedTask | None:
    """Returns a harness's task, or None if it isn't ours; a user's variant has the documents of the one it includes."""
    name = name_of(task)
    records = {filter_name: values for (metric, filter_name), values in metrics.items() if metric == RECORD}
    if name is None or not records:
        return None
    definition, loaded = task_named(name), loaded_task(name)
    size = loaded.subset.of_documents if loaded and loaded.subset else None
    filter_name, values = next(iter(records.items()))  # those of other filters are of the same responses
    whole = completed(values)
    return EvaluatedTask(
        TaskRecords(statistics_of(definition.metrics(), definition.metric, whole), whole, size), filter_name, loaded
    )


def write_results(
    tasks: Mapping[str, EvaluatedTask | None],
    *,
    rows: Mapping[str, Row],
    configs: dict[str, Any],
    better: dict[str, Any],
) -> None:
    """Writes the rows of our tasks, and lets their metrics finish, such as write a file."""
    harness_run = _harness_run.get(None)
    if harness_run is None:  # a program called the harness's function before it was extended
        _harness_run.set(harness_run := HarnessRun("", None))
    for name, task in tasks.items():
        if task is None:
            continue
        harness_run.tasks[name] = task
        for key in [key for key in rows[name] if key.startswith((f"{RECORD},", f"{RECORD}_stderr"))]:
            del rows[name][key]
        better[name] = {metric: is_better for metric, is_better in better[name].items() if metric != RECORD}
        for statistic in write_row(rows[name], task.numbers, task.filter_name):
            better[name][statistic.name] = statistic.better
            finish = getattr(statistic.metric, "finish", None)
            if finish is not None and statistic.part is None:
                run = Run(harness_run.model, harness_run.output, current_session().settings)
                finish(computed_from(statistic, task.numbers.records)[0], name, run)
        mark(rows[name], [task])
        _warn_of_responses(name, task)
        facts = (
            {COMMITS: task.loaded.documents.reading.commits, OWN_DATA: task.loaded.documents.reading.differences}
            if task.loaded
            else {}
        )
        if metadata := {key: dict(texts) for key, texts in facts.items() if texts}:
            configs[name] = {**configs[name], "metadata": (configs[name].get("metadata") or {}) | metadata}


@contextmanager
def without_errors(rows: Mapping[str, Row]) -> Iterator[None]:
    """Hides our tasks' standard errors from a harness that pools them for a group: one document in each ends a run."""
    ours = [rows[name] for name in evaluated_tasks() if name in rows]
    hidden = [(row, key, row[key]) for row in ours for key in row if "_stderr," in key]
    for row, key, _ in hidden:
        row[key] = "N/A"
    yield
    for row, key, error in hidden:
        row[key] = error


def write_group(row: Row, members: Sequence[EvaluatedTask | None], weight_by_size: Mapping[str, bool]) -> None:
    """Corrects the numbers of a group whose members are all ours, by their names, and its name."""
    ours = [task for task in members if task is not None]
    if ours and len(ours) == len(members):
        write_group_row(row, [task.numbers for task in ours], weight_by_size, ours[0].filter_name)


def mark(row: Row, tasks: Iterable[EvaluatedTask | None]) -> None:
    """Adds to the name that a harness's table shows that a row is of the user's own data, or of subsets."""
    tasks = list(tasks)
    ours = [task for task in tasks if task is not None]
    loaded = [task.loaded for task in ours if task.loaded is not None]
    if any(task.documents.reading.differences for task in loaded):
        row["alias"] += " (own data)"
    if subsets := [task.subset for task in loaded if task.subset is not None]:
        row["alias"] += f" ({subsets[0] if len(tasks) == 1 else 'subsets'})"
    marks = sum((task.marks for task in ours), start=Counter[str]())
    if failed := sum(len(task.failures) for task in ours):
        row["alias"] += f" ({failed} of {marks.total()} responses failed)"
    if unknown := frequent_mark(marks):
        row["alias"] += f" (unknown mark {unknown.mark!r:.30})"


def _warn_of_responses(name: str, task: EvaluatedTask) -> None:
    """Says, once for a task, how many of its responses failed, or begin with the same mark that isn't known."""
    if task.failures:
        _log.warning(
            "%s: %d of %d responses failed, the first with %r. They aren't graded and count in no score. Run again "
            "where the endpoint answers, with --use_cache for the others, or raise the limit of tokens where thinking "
            "used it up.",
            *(name, len(task.failures), task.marks.total(), task.failures[0][:120]),
        )
    if unknown := frequent_mark(task.marks):
        _log.warning(
            "%s: %d of %d responses begin with %r, which is no known mark. If thinking follows it, the thinking was "
            "graded as the answer: have the harness cut it, with think_end_token in lm-eval's --model_args or "
            "lmms-eval's --reasoning_tags.",
            *(name, unknown.responses, task.marks.total(), unknown.mark),
        )


@dataclass
class HarnessRun:
    """A run of a harness: its model, its output folder, if it has one, and the tasks of ours that it has evaluated."""

    model: str
    output: Path | None
    tasks: dict[str, EvaluatedTask] = field(default_factory=dict)

    def judged(self) -> dict[str, list[Record]]:
        """Returns the records that hold verdicts, by task."""
        return {
            name: [record for record in task.numbers.records if record.get("judge")]
            for name, task in self.tasks.items()
        }


_harness_run: ContextVar[HarnessRun] = ContextVar("running")


def evaluated_tasks() -> Mapping[str, EvaluatedTask]:
    """Returns the tasks of ours that the current run of a harness has evaluated so far, by name."""
    harness_run = _harness_run.get(None)
    return {} if harness_run is None else harness_run.tasks


command_output: ContextVar[str | None] = ContextVar("command_output")
"""The output folder of lm-eval's command, which lm-eval's ``evaluate`` isn't told."""


def _ungraded(records: Sequence[Record], path: str | None, *, is_logged: bool) -> str:
    """Says how many responses no judge has graded yet, and what to do; empty without any."""
    if not (waiting := unjudged(records)):
        return ""
    are = "response is" if waiting == 1 else "responses are"
    if not is_logged:
        return f"{waiting:,} {are} neither graded nor recorded. Run again with --log_samples, or with a judge."
    judge = rubric_named(records[0]["judge"]["rubric"]).model
    command = f"culture-tasks rejudge {shlex.quote(str(path or 'RESULTS'))} --judge openai:{judge}"
    return f"{waiting:,} {are} recorded and not graded: `{command}`, or another judge, grades them."


def with_run(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a harness's ``evaluate``: the run is known while it lasts, and its results say what the judge cost."""

    def evaluate_and_count(*args: Any, **kwargs: Any) -> Any:
        model, command = kwargs.get("lm", args[0] if args else None), kwargs.get("cli_args")
        output = getattr(command, "output_path", None)
        harness_run = HarnessRun(_name_of(model, command), Path(output) if output else None)
        token = _harness_run.set(harness_run)
        try:
            results = evaluate(*args, **kwargs)
        finally:
            _harness_run.reset(token)
            if refused := refused_requests():
                _log.warning("%s", refused)
        judged = harness_run.judged()
        if isinstance(results, dict) and any(judged.values()):
            costs = judge_costs(judged, read_prices(current_session().settings.prices_file))
            results |= {KEY: costs} if costs else {}
            path = getattr(command, "output_path", None) or command_output.get(None)
            if text := _ungraded(list(chain(*judged.values())), path, is_logged="samples" in results):
                if path:  # of a command, whose tables are still to come
                    atexit.register(_log.warning, "%s", text)
                else:
                    _log.warning("%s", text)
        return results

    return evaluate_and_count


_NAMES = ("pretrained", "model", "model_version", "model_name")


def _name_of(model: Any, command: Any) -> str:
    """Returns a model's name as its command line gives it, or as the model itself does, or the name of its class."""
    arguments = getattr(command, "model_args", None) or ""
    if not isinstance(arguments, Mapping):
        arguments = dict(part.split("=", 1) for part in str(arguments).split(",") if "=" in part)
    attributes = {name: getattr(model, name, None) for name in _NAMES}
    inner = getattr(model, "model_args", None)  # vllm's in lm-eval
    sources = (arguments, attributes, inner if isinstance(inner, Mapping) else {})
    names = (source.get(name) for source in sources for name in _NAMES)
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)
