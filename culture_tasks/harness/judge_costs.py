"""What a run spent on its judge, as its result file says it: tokens and money of each task, what was kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any

from culture_tasks.costs.prices import Prices, whole_sum
from culture_tasks.judges.rubric.verdicts import DISCOUNTS, Usage

KEY = "judge_costs"
"""Name of the entry in the result file."""

ASKED, KEPT = "asked", "kept"
"""Verdicts that the judge was asked for in the run, and those that it wasn't, since they were there already."""


def judge_costs(tasks: Mapping[str, Sequence[Mapping[str, Any]]], prices: Prices) -> dict[str, Any]:
    """Returns the entry of a result file for the judged records of each task; empty where no judge counted tokens."""
    costs = {task: own for task, records in tasks.items() if (own := _of_task(records, prices))}
    return {"currency": prices.currency, "prices": prices.origin, "tasks": costs} if costs else {}


def judged_records(records: Iterable[Any]) -> list[Mapping[str, Any]]:
    """Returns those records of a metric that hold verdicts."""
    return [each for each in records if isinstance(each, dict) and each.get("judge") and each.get("runs")]


def summed_costs(entry: Mapping[str, Any], part: str) -> tuple[int, Usage, float | None]:
    """Returns the verdicts, tokens and money of all tasks of an entry; no money where a task has none.

    The part is :data:`ASKED` or :data:`KEPT`.
    """
    parts = [costs[part] for costs in entry["tasks"].values()]
    names = ("prompt_tokens", "completion_tokens", *sorted(DISCOUNTS))
    usage = Usage(**{name: sum(each.get(name, 0) for each in parts) for name in names})
    amounts = [each["money"] for each in parts]
    money = None if None in amounts else sum(amounts)
    return sum(each["verdicts"] for each in parts), usage, money


def _of_task(records: Sequence[Mapping[str, Any]], prices: Prices) -> dict[str, Any]:
    models = dict.fromkeys(record["judge"]["model"] for record in records)
    usages: dict[str, dict[str, Usage]] = {ASKED: {}, KEPT: {}}
    verdicts = {ASKED: 0, KEPT: 0}
    for record in records:
        model = record["judge"]["model"]
        for run in record["runs"]:
            part = KEPT if run.get("kept") else ASKED
            verdicts[part] += 1
            usages[part][model] = usages[part].get(model, Usage()) + Usage(*run["tokens"], **run.get("discounts", {}))
    costs: dict[str, Any] = {"judge": ", ".join(models)}
    for part, by_model in usages.items():
        total = sum(by_model.values(), start=Usage())
        costs[part] = {
            "verdicts": verdicts[part],
            "prompt_tokens": total.prompt_tokens,
            "completion_tokens": total.completion_tokens,
            **total.discounts,
            "money": whole_sum(starmap(prices.cost_of_requests, by_model.items())) if by_model else 0.0,
        }
    has_tokens = any(costs[part]["prompt_tokens"] or costs[part]["completion_tokens"] for part in usages)
    return costs if has_tokens else {}
