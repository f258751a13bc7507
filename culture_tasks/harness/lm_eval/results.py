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
        tasks = {name: result_rows.evaluated(one["task"], one["raw_metrics"]) for name, one in evaluated.items()}
        for name, task in tasks.items():
            if not task.written:
                continue
            row = results.metrics[name]
            result_rows.complete_row(row, task.written)
            results.configs[name], results.higher_is_better[name] = result_rows.finish(
                name,
                task,
                row=row,
                samples=results.samples[name],
                config=results.configs[name],
                better=results.higher_is_better[name],
            )
        for group in results.groups.values():
            for each in (group, *group.get_all_groups()):
                row = results.metrics[each.name]
                weights = {
                    key: entry.weight_by_size
                    for entry in each.aggregate_metric_list or ()
                    for key in row
                    if key.startswith(f"{entry.metric},")
                }
                members = [tasks.get(task.task_name, result_rows.OF_OTHERS) for task in each.get_all_tasks()]
                result_rows.complete_group_row(row, [task.written for task in members], weights)
                result_rows.mark(row, members)
        return results

    return process_results
