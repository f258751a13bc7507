"""The results of a harness for our tasks: their rows, and what belongs beside them.

A harness hands over the records of a task of ours as one metric, and has no number for it. So the numbers of its row,
and those of the groups above it, are written here; the settings of the task in the result file name own data, commits
and subsets. Tasks and groups of others are left as they are.
"""

from __future__ import annotations

import atexit
import logging
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from culture_tasks.harness.rows import Record, Row, TaskRecords, unjudged, write_group_row, write_row
from culture_tasks.harness.session import current_session
from culture_tasks.judges.endpoint.budget import refused_requests
from culture_tasks.text import failure_in, frequent_mark, opening_mark

_log = logging.getLogger(__name__)

COMMITS = "hub_commits"
"""Entry of a task's metadata: the commit of each of the Hub's data sets that the documents were read from."""


@dataclass(frozen=True)
class EvaluatedTask:
    """A task of ours that a harness has evaluated: its numbers, and its data."""

    numbers: TaskRecords
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

    @property
    def metadata(self) -> dict[str, Any]:
        """What a result file says of its data."""
        if self.loaded is None:
            return {}
        reading = self.loaded.documents.reading
        facts = {COMMITS: reading.commits, OWN_DATA: reading.differences}
        return {key: dict(texts) for key, texts in facts.items() if texts}


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


def _current_run() -> HarnessRun:
    """Returns the current run; where a program called the harness's function before it was extended, a nameless one."""
    harness_run = _harness_run.get(None)
    if harness_run is None:
        _harness_run.set(harness_run := HarnessRun("", None))
    return harness_run


def write_results(
    tasks: Mapping[str, tuple[Any, Mapping[tuple[str, str], Sequence[Record]]]],
    *,
    rows: Mapping[str, Row],
    configs: dict[str, Any],
    better: dict[str, Any],
) -> None:
    """Writes the rows of our tasks, and lets their metrics finish, such as write a file.

    ``tasks`` has a harness's task and its values by metric and filter. A user's variant has the documents of the task
    that it includes; the records of several filters are of the same responses.
    """
    harness_run = _current_run()
    for name, (harness_task, metrics) in tasks.items():
        our_name = name_of(harness_task)
        records = next((values for (metric, _), values in metrics.items() if metric == RECORD), None)
        if our_name is None or not records:
            continue
        definition, loaded = task_named(our_name), loaded_task(our_name)
        size = loaded.subset.of_documents if loaded and loaded.subset else None
        numbers = TaskRecords.of(definition.metrics(), definition.metric, completed(records), size)
        task = harness_run.tasks[name] = EvaluatedTask(numbers, loaded)
        row = rows[name]
        for key in [key for key in row if key.startswith((f"{RECORD},", f"{RECORD}_stderr"))]:
            del row[key]
        better[name] = {metric: is_better for metric, is_better in better[name].items() if metric != RECORD}
        for number in write_row(row, numbers):
            better[name][number.name] = number.better
            finish = getattr(number.metric, "finish", None)
            if finish is not None and not number.is_part:
                finish(number.inputs()[0], name, Run(harness_run.model, harness_run.output, current_session().settings))
        row["alias"] += _marks([task], "" if loaded is None else str(loaded.subset or ""))
        _warn_of_responses(name, task)
        if task.metadata:
            configs[name] = {**configs[name], "metadata": (configs[name].get("metadata") or {}) | task.metadata}


@contextmanager
def without_errors(rows: Mapping[str, Row]) -> Iterator[None]:
    """Hides our tasks' standard errors from a harness that pools them for a group: one document in each ends a run."""
    ours = [rows[name] for name in _current_run().tasks if name in rows]
    hidden = [(row, key, row[key]) for row in ours for key in row if "_stderr," in key]
    for row, key, _ in hidden:
        row[key] = "N/A"
    yield
    for row, key, error in hidden:
        row[key] = error


def write_group(row: Row, members: Sequence[str], weight_by_size: Mapping[str, bool]) -> str:
    """Corrects the numbers of a group whose members are all ours, and returns what belongs behind its name."""
    ours = [task for name, task in _current_run().tasks.items() if name in members]
    if ours and len(ours) == len(set(members)):
        write_group_row(row, [task.numbers for task in ours], weight_by_size)
    return _marks(ours, "subsets" if any(task.loaded and task.loaded.subset for task in ours) else "")


def _marks(tasks: Sequence[EvaluatedTask], subset: str) -> str:
    """Returns what a harness's table says behind a name: own data, subsets, failures."""
    loaded = [task.loaded for task in tasks if task.loaded is not None]
    text = " (own data)" if any(task.documents.reading.differences for task in loaded) else ""
    text += f" ({subset})" if subset else ""
    marks = sum((task.marks for task in tasks), start=Counter[str]())
    if failed := sum(len(task.failures) for task in tasks):
        text += f" ({failed} of {marks.total()} responses failed)"
    if unknown := frequent_mark(marks):
        text += f" (unknown mark {unknown.mark!r:.30})"
    return text


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


# Of several, the first that a command line gives.
_NAME = re.compile(r"(?:^|,)(?:pretrained|model|model_version|model_name)=([^,]+)")


def _name_of(model: Any, command: Any) -> str:
    """Returns a model's name as its command line gives it, or as the model itself does, or the name of its class."""
    if argument := _NAME.search(str(getattr(command, "model_args", None))):
        return argument[1]
    inner = getattr(model, "model_args", None)  # vllm's in lm-eval
    names = [getattr(model, name, None) for name in ("pretrained", "model", "model_version", "model_name")]
    names.append(inner.get("model") if isinstance(inner, Mapping) else None)
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)
