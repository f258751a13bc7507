"""The costs of a run's judge, as its result file has them: tokens and money of each task, kept verdicts apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    costs = {task: entry for task, records in tasks.items() if (entry := _entry(records, prices))}
    return {"currency": prices.currency, "prices": prices.origin, "tasks": costs} if costs else {}


def summed_costs(entry: Mapping[str, Any], part: str) -> tuple[int, Usage, float | None]:
    """Returns the verdicts, tokens and money of all tasks of an entry; no money where a task has none.

    The part is :data:`ASKED` or :data:`KEPT`.
    """
    parts = [costs[part] for costs in entry["tasks"].values()]
    names = ("prompt_tokens", "completion_tokens", *sorted(DISCOUNTS))
    usage = Usage(**{name: sum(costs.get(name, 0) for costs in parts) for name in names})
    amounts = [costs["money"] for costs in parts]
    money = None if None in amounts else sum(amounts)
    return sum(costs["verdicts"] for costs in parts), usage, money


def _entry(records: Sequence[Mapping[str, Any]], prices: Prices) -> dict[str, Any]:
    models = dict.fromkeys(record["judge"]["model"] for record in records)
    usages: dict[str, dict[str, Usage]] = {ASKED: {}, KEPT: {}}
    verdicts = {ASKED: 0, KEPT: 0}
    for record in records:
        model = record["judge"]["model"]
        for run in record["runs"]:
            part = KEPT if run.get("kept") else ASKED
            verdicts[part] += 1
            if any(run["tokens"]):
                tokens = Usage(*run["tokens"], **run.get("discounts", {}))
                usages[part][model] = usages[part].get(model, Usage()) + tokens
    totals = {part: sum(by_model.values(), start=Usage()) for part, by_model in usages.items()}
    if not any(total.prompt_tokens or total.completion_tokens for total in totals.values()):
        return {}  # before prices are looked up: reading their list takes a quarter of a second
    costs: dict[str, Any] = {"judge": ", ".join(models)}
    for part, by_model in usages.items():
        costs[part] = {
            "verdicts": verdicts[part],
            "prompt_tokens": totals[part].prompt_tokens,
            "completion_tokens": totals[part].completion_tokens,
            **totals[part].discounts,
            "money": whole_sum(starmap(prices.cost_of_requests, by_model.items())) if by_model else 0.0,
        }
    return costs
