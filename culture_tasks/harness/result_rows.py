"""What the results of both harnesses lack for our tasks, worked out from the records.

A harness works out a task's values from its records by our aggregations. Then it leaves every standard error at "N/A",
makes a group's values from its tasks' values, and repeats the task file's whole metric list, although a run has no more
than some of it: one name of a judged score, a spread only over repeats, a submission only where answers are withheld.
Its loggers look for every listed metric in every sample. So once the values are there, a task's standard errors, the
values of groups and the listed metrics are put right here; tasks and groups of others are left as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Run
from culture_tasks.benchmarks.registry import DataRead
from culture_tasks.costs.prices import read_prices
from culture_tasks.errors import CultureTasksError
from culture_tasks.harness.aggregation import Aggregation
from culture_tasks.harness.hooks import name_of
from culture_tasks.harness.judge_costs import KEY, judge_costs, judged_records
from culture_tasks.harness.loading import data_read, shard_of
from culture_tasks.harness.scoring import OWN_DATA
from culture_tasks.harness.session import current_session
from culture_tasks.harness.shards import TaskShard
from culture_tasks.judges.endpoint.budget import refused_requests

_log = logging.getLogger(__name__)

COMMITS = "hub_commits"
"""Entry of a task's metadata: the commit of each of the Hub's data sets that the documents were read from."""

Key = str
"""A metric and a filter, with a comma between them, as both harnesses name the entries of a row."""


class Written(NamedTuple):
    """A metric that the samples of a task have.

    Attributes:
        aggregation: How its records become a value; None if that isn't ours.
        records: One record a document.
    """

    aggregation: Aggregation | None
    records: Sequence[Any]


Task = Mapping[Key, Written]


def written(aggregations: Mapping[str, Any], records: Mapping[tuple[str, str], Sequence[Any]]) -> Task:
    """Returns what the samples of a task have, or nothing if the task isn't ours.

    Args:
        aggregations: The task's aggregations, by metric.
        records: Its records, by metric and filter.
    """
    ours = {name: each for name, each in aggregations.items() if isinstance(each, Aggregation)}
    if not ours:
        return {}
    return {f"{name},{which}": Written(ours.get(name), found) for (name, which), found in records.items()}


def complete_row(row: dict[str, Any], task: Task) -> None:
    """Adds the standard errors to the row of a task of ours, and takes out what concerns none of its documents.

    Args:
        row: The row, which is changed.
        task: What the samples of the task have.
    """
    for key, (aggregation, records) in task.items():
        if aggregation is not None:
            row[_stderr(key)] = aggregation.stderr(records)
            of_documents = key.replace(",", "_stderr_clt,", 1)  # which lmms-eval takes over documents
            if of_documents in row and not aggregation.is_of_documents:
                row[of_documents] = row[_stderr(key)]
        if not concerns_any(records):
            _take_out(row, key)


def concerns_any(records: Iterable[Any]) -> bool:
    """Whether a metric concerns any document: a scope that no question has is no part of a run."""
    return any(record is not None for record in records)


def _take_out(row: dict[str, Any], key: Key) -> None:
    metric, _, which = key.partition(",")
    for ending in ("", "_stderr", "_stderr_clt", "_stderr_clustered"):
        row.pop(f"{metric}{ending},{which}", None)


def complete_group_row(row: dict[str, Any], tasks: Sequence[Task], weight_by_size: Mapping[Key, bool]) -> None:
    """Corrects those values and standard errors of a group that are over our tasks alone.

    Args:
        row: The group's row, which is changed.
        tasks: The group's tasks; one that isn't ours is empty.
        weight_by_size: The keys of the group's row, and whether the items weigh the same there, rather than the tasks.
    """
    for key, by_size in weight_by_size.items():
        found = [task[key] for task in tasks if key in task]
        aggregations = [each.aggregation for each in found if each.aggregation is not None]
        if not found or len(aggregations) < len(tasks) or len({each.name for each in aggregations}) > 1:
            continue
        records = [each.records for each in found]
        row[key], row[_stderr(key)] = aggregations[0].of_group(records, weight_by_size=by_size)
        if not any(map(concerns_any, records)):
            _take_out(row, key)


def finish(name: str, task: Task, shard: TaskShard | None) -> None:
    """Lets a task's metrics do what is left to do with their records, such as writing a file.

    Of a shard nothing is left to do before ``culture-tasks merge``.
    """
    model, output = _running.get(("model", None))
    run = Run(model, output, current_session().settings)
    costs = _judged.get(None)
    if costs is not None:
        for each in task.values():
            costs[name] = costs.get(name) or judged_records(each.records)
    for aggregation, records in task.values():
        if aggregation is not None and shard is None:
            aggregation.finish(records, name, run)


def shard_of_task(task: Any) -> TaskShard | None:
    """Returns the shard that the documents of a harness's task are; None where they are all of them, or not ours."""
    name = name_of(task)
    return shard_of(name) if name else None


def mark_shard(row: dict[str, Any], *parts: TaskShard | None) -> None:
    """Adds to the name that a harness's table shows that a row is of shards."""
    shards = [part.shard for part in parts if part is not None]
    if shards:
        row["alias"] = f"{row['alias']} ({shards[0]})"


def number_in_task(samples: Iterable[dict[str, Any]], part: TaskShard | None) -> None:
    """Numbers the samples of a shard as a run of the whole task does."""
    if part is not None:
        for sample in samples:
            sample["doc_id"] = part.places[sample["doc_id"]]


def data_of(task: Any) -> DataRead:
    """Returns what a harness's task has its documents from; nothing if it isn't ours.

    A user's variant of a task has the documents of the task that it includes.
    """
    name = name_of(task)
    return data_read(name) if name else DataRead({}, {})


def mark_own_data(row: dict[str, Any], *data: DataRead) -> None:
    """Adds to the name that a harness's table shows that some of a row's data are the user's own."""
    if any(each.own for each in data):
        row["alias"] = f"{row['alias']} (own data)"


def only_written(
    task: Task, config: Mapping[str, Any], better: Mapping[str, Any], *, data: DataRead
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a task's logged settings and the directions of its metrics, without metrics that its samples don't have.

    The settings' metadata then name the commits that the documents were read from, where they are from the Hub, and the
    user's own data.

    Args:
        task: What the samples of a task of ours have.
        config: Its settings, with the metric list.
        better: Whether higher is better, by metric.
        data: What :func:`data_of` has returned.
    """
    names = {key.partition(",")[0] for key, one in task.items() if concerns_any(one.records)}
    kept = [each for each in config["metric_list"] if each["metric"] in names]
    changed = {**config, "metric_list": kept}
    if known := {name: dict(files) for name, files in ((COMMITS, data.commits), (OWN_DATA, data.own)) if files}:
        changed["metadata"] = {**(config.get("metadata") or {}), **known}
    return changed, {metric: better[metric] for metric in better if metric in names}


def _stderr(key: Key) -> Key:
    metric, _, which = key.partition(",")
    return f"{metric}_stderr,{which}"


_running: ContextVar[tuple[str, Path | None]] = ContextVar("running")
"""Name of the model that is evaluated, and the folder that the harness writes to, where it says so."""

_judged: ContextVar[dict[str, list[Mapping[str, Any]]] | None] = ContextVar("judged")
"""The judged records of the tasks of a run, as far as it has finished them."""


def knowing_the_run(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a harness's ``evaluate``: the model and the output folder are known as long as it runs.

    Its results say what the judge cost.
    """

    def extended(*args: Any, **kwargs: Any) -> Any:
        model, command = kwargs.get("lm", args[0] if args else None), kwargs.get("cli_args")
        output = getattr(command, "output_path", None)
        token = _running.set((_name_of(model, command), Path(output) if output else None))
        judged: dict[str, list[Mapping[str, Any]]] = {}
        records = _judged.set(judged)
        try:
            results = evaluate(*args, **kwargs)
        finally:
            _running.reset(token)
            _judged.reset(records)
            if refused := refused_requests():
                _log.warning("%s", refused)
        if isinstance(results, dict) and any(judged.values()):
            results |= _costs(judged)
        return results

    return extended


def _costs(judged: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    costs = judge_costs(judged, read_prices(current_session().settings.prices_file))
    return {KEY: costs} if costs else {}


_NAMES = ("pretrained", "model", "model_version", "model_name")


def _name_of(model: Any, command: Any) -> str:
    """Returns a model's name as its command line gives it, or as the model itself does, or the name of its class."""
    given = getattr(command, "model_args", None)
    parts = (
        given.items() if isinstance(given, Mapping) else (part.split("=", 1) for part in str(given or "").split(","))
    )
    arguments = {each[0]: each[1] for each in map(tuple, parts) if len(each) == 2}
    own = {name: getattr(model, name, None) for name in _NAMES}
    inner = getattr(model, "model_args", None)  # vllm's in lm-eval
    found = (
        source.get(name) for source in (arguments, own, inner if isinstance(inner, Mapping) else {}) for name in _NAMES
    )
    return next((name for name in found if isinstance(name, str) and name), type(model).__name__)


def extend(owner: Any, name: str, extension: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replaces a function of a harness by an extension of it, once.

    Args:
        owner: The module or class that holds it.
        name: Its name there.
        extension: Takes the original and returns what calls it.

    Raises:
        CultureTasksError: If this version of the harness has no such function.
    """
    original = getattr(owner, name, None)
    if original is None:
        raise CultureTasksError(
            f"culture-tasks: found no {name} in {owner.__name__}, so this version of the harness is not known. "
            "Install the version that the README names."
        )
    if not hasattr(original, "__culture_tasks__"):
        extended = wraps(original)(extension(original))
        extended.__culture_tasks__ = True  # type: ignore[attr-defined]
        setattr(owner, name, extended)
