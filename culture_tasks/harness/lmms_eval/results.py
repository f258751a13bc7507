"""lmms-eval's results with what they lack for our tasks (see :mod:`culture_tasks.harness.result_rows`).

A model of ours may have said what the run cost (:class:`~culture_tasks.harness.model_costs.ModelCosts`), which becomes
an entry of the file too.

lmms-eval takes an entry ``care_rating`` of a group's file for every metric whose name holds these letters, so that a
group's row has the categories and counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from culture_tasks.harness import result_rows
from culture_tasks.harness.model_costs import KEY, ModelCosts


def extend_results() -> None:
    """Extends the functions that make lmms-eval's results; safe to call again."""
    from lmms_eval import evaluator

    result_rows.extend(evaluator, "evaluate", lambda original: result_rows.knowing_the_run(_with_costs(original)))
    result_rows.extend(evaluator, "consolidate_results", _of_tasks)
    result_rows.extend(evaluator, "consolidate_group_results", _of_groups)


def _with_costs(original: Callable[..., Any]) -> Callable[..., Any]:
    def evaluate(*args: Any, **kwargs: Any) -> Any:
        results = original(*args, **kwargs)
        costs = getattr(kwargs.get("lm", args[0] if args else None), "costs", None)
        if results is not None and isinstance(costs, ModelCosts):
            results[KEY] = costs.model_dump(mode="json")
        return results

    return evaluate


def _of_tasks(original: Callable[..., Any]) -> Callable[..., Any]:
    def consolidate_results(outputs: Sequence[Any]) -> Any:
        rows, samples, configs, versions, shots, better = original(outputs)
        tasks = {one.task_name: result_rows.evaluated(one.task, one.sample_metrics) for one in outputs}
        for name, task in tasks.items():
            if task.written:
                configs[name], better[name] = result_rows.finish(
                    name, task, row=rows[name], samples=samples[name], config=configs[name], better=better[name]
                )
        result_rows.evaluated_tasks().update(tasks)
        return rows, samples, configs, versions, shots, better

    return consolidate_results


def _of_groups(original: Callable[..., Any]) -> Callable[..., Any]:
    def consolidate_group_results(rows: Any, versions: Any, task_dict: Mapping[Any, Any]) -> Any:
        results = original(rows, versions, task_dict)
        tasks = result_rows.evaluated_tasks()
        for name, task in tasks.items():
            result_rows.complete_row(rows[name], task.written)
        for group, names in _groups(task_dict):
            row, members = rows[group.group_name], [tasks.get(name, result_rows.OF_OTHERS) for name in names]
            weights = _weights(group.config["aggregate_metric_list"], row)
            result_rows.complete_group_row(row, [task.written for task in members], weights)
            named = {"alias": group.group_alias or group.group_name}
            result_rows.mark(named, members)
            group._config.group_alias = named["alias"]  # lmms-eval names a group by its file, not by its row
        return results

    return consolidate_group_results


def _groups(task_dict: Mapping[Any, Any]) -> Iterator[tuple[Any, list[str]]]:
    """Yields every group that has a file, with the names of all tasks below it."""
    for each, inside in task_dict.items():
        if isinstance(inside, Mapping):
            if hasattr(each, "config"):
                yield each, list(_tasks(inside))
            yield from _groups(inside)


def _tasks(task_dict: Mapping[Any, Any]) -> Iterator[str]:
    for inside in task_dict.values():
        if isinstance(inside, Mapping):
            yield from _tasks(inside)
        else:
            yield inside.task_name


def _weights(entries: Sequence[Mapping[str, Any]] | None, row: Mapping[str, Any]) -> dict[str, bool]:
    """Returns the keys of a group's row, and whether its file weighs each by size."""
    return {
        key: entry["weight_by_size"]
        for entry in entries or ()
        for key in row
        if "," in key and "_stderr" not in key and entry["metric"] in key
    }
