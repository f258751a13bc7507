"""lm-eval's results with what they lack for our tasks (see :mod:`culture_tasks.harness.result_rows`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from culture_tasks.harness import result_rows


def extend_results() -> None:
    """Extends the functions that make lm-eval's results; safe to call again."""
    from lm_eval import evaluator

    result_rows.extend(evaluator, "evaluate", result_rows.knowing_the_run)
    result_rows.extend(evaluator, "_process_results", _with_ours)


def _with_ours(original: Callable[..., Any]) -> Callable[..., Any]:
    def process_results(evaluated: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        results = original(evaluated, *args, **kwargs)
        tasks = {
            name: result_rows.written(one["task"].aggregation(), one["raw_metrics"]) for name, one in evaluated.items()
        }
        data = {name: result_rows.data_of(one["task"]) for name, one in evaluated.items()}
        shards = {name: result_rows.shard_of_task(one["task"]) for name, one in evaluated.items()}
        for name, task in tasks.items():
            if task:
                result_rows.complete_row(results.metrics[name], task)
                result_rows.mark_own_data(results.metrics[name], data[name])
                result_rows.mark_shard(results.metrics[name], shards[name])
                result_rows.number_in_task(results.samples[name], shards[name])
                results.configs[name], results.higher_is_better[name] = result_rows.only_written(
                    task,
                    results.configs[name],
                    results.higher_is_better[name],
                    data=data[name],
                )
            result_rows.finish(name, task, shards[name])
        for group in results.groups.values():
            for each in (group, *group.get_all_groups()):
                names = [task.task_name for task in each.get_all_tasks()]
                row = results.metrics[each.name]
                result_rows.complete_group_row(row, [tasks.get(name, {}) for name in names], _keys(each, row))
                result_rows.mark_own_data(row, *(data[name] for name in names if name in data))
                result_rows.mark_shard(row, *(shards.get(name) for name in names))
        return results

    return process_results


def _keys(group: Any, row: Mapping[str, Any]) -> dict[str, bool]:
    """Returns the keys of a group's row, and whether its file weighs each by size."""
    return {
        key: entry.weight_by_size
        for entry in group.aggregate_metric_list or ()
        for key in row
        if key.startswith(f"{entry.metric},")
    }
