"""What a run with knowledge insertion cost, over ranks and files, and what its judge did."""

from __future__ import annotations

import pytest

from culture_tasks.costs.prices import Prices, list_prices
from culture_tasks.harness.judge_costs import judge_costs
from culture_tasks.harness.model_costs import KEY, ModelCosts, total_costs


def test_ranks_are_combined_by_what_they_counted():
    counts = {"answered": 30, "found": 2, "requests": 30, "insertions": 10}
    one = ModelCosts(
        device="A100", ranks=2, batch_size=8, request_ms=100.0, insert_ms=4.0, peak_gib=20.0, parameters=8.5, **counts
    )
    more = {"answered": 10, "requests": 10, "request_ms": 200.0, "peak_gib": 25.0, "insertions": 0}
    two = one.model_copy(update=more)
    both = total_costs([one, two.model_copy(update={"insert_ms": None, "train_ms": 7.0})])
    # (30 * 100 + 10 * 200) / 40
    assert (both.answered, both.found, both.requests, both.request_ms) == (40, 4, 40, 125.0)
    assert (both.insertions, both.insert_ms) == (10, 4.0)
    assert (both.peak_gib, both.train_ms, both.train_gib, both.parameters) == (25.0, 7.0, None, 8.5)
    assert both.way == "A100, batches of 8, 2 processes"


def test_costs_are_read_as_they_were_written_and_files_without_costs_have_none():
    costs = ModelCosts(device="CPU", request_ms=1.5, requests=3)
    assert ModelCosts.read({KEY: costs.model_dump(mode="json")}) == costs
    for content in ({}, {KEY: None}, {KEY: []}, {KEY: {"device": "CPU", "request_ms": "NaN"}}):
        assert ModelCosts.read(content) is None


def test_prices_of_a_judge_that_counts_no_tokens_are_not_looked_up(monkeypatch):
    record = {"judge": {"model": "lexical"}, "runs": [{"outcome": "scored", "tokens": [0, 0]}]}
    monkeypatch.setattr(Prices, "cost_of_requests", lambda *_: pytest.fail("the list of prices takes long to read"))
    assert judge_costs({"care_zh": [record]}, list_prices()) == {}
