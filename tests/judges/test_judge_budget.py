"""A budget: the sum spent never exceeds it, verdicts that came are kept, and the message tells how to go on."""

from __future__ import annotations

import json

import pytest
from support.fault_server import says
from support.judging import ask, ask_all

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.endpoint.budget import forget_budgets, refused_requests


@pytest.fixture(autouse=True)
def new_budget():
    forget_budgets()


def costs(prompt_tokens, completion_tokens):
    return says(usage={"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens})


@pytest.mark.parametrize(("concurrency", "ranks"), [(1, 1), (16, 1), (16, 4)])
def test_nothing_more_is_asked_once_the_budget_or_a_rank_s_share_is_spent(
    server, judge_for, items, monkeypatch, concurrency, ranks
):
    monkeypatch.setenv("WORLD_SIZE", str(ranks))
    server.decide = lambda request: costs(900, 100)
    budget = 40_000 * ranks
    verdicts = ask_all(judge_for(judge_budget=f"{budget:,} tokens", judge_concurrency=concurrency), items(300))
    scored = [verdict.outcome for verdict in verdicts].count("scored")
    assert 40 <= scored == len(server.requests) < 40 + concurrency  # what was in flight is beyond it
    part = f", of which this process has 1/{ranks}" if ranks > 1 else ""
    message = f"the budget of {budget:,} tokens (CULTURE_JUDGE_BUDGET{part}) is used up"
    assert all(message in verdict.error for verdict in verdicts if verdict.outcome == "failed")
    assert refused_requests().startswith(f"{300 - scored} requests to the judge were not sent: ")
    assert "raise it and run `culture-tasks rejudge` on the logged samples" in refused_requests()
    server.requests.clear()  # a kept verdict costs nothing
    assert [ask(judge_for(), item).outcome for item in items(1)] == ["scored"]
    assert server.requests == []


def test_money_is_counted_by_the_file_of_prices(server, judge_for, items, tmp_path):
    prices = {"currency": "EUR", "models": {"judge": {"input": 1000, "output": 0, "cached_input": 1000}}}
    (tmp_path / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    server.decide = lambda request: costs(1000, 100)  # 1 EUR each
    judge = judge_for(judge_budget="10 eur", judge_prices=str(tmp_path / "prices.json"), judge_concurrency=1)
    assert [verdict.outcome for verdict in ask_all(judge, items(40))].count("scored") == 10
    assert "the budget of 10 eur (CULTURE_JUDGE_BUDGET) is used up" in refused_requests()


def test_a_spent_budget_is_an_error_before_inference(judge_for, item, server):
    judge = judge_for(judge_budget="5 tokens")
    ask(judge, item)
    with pytest.raises(JudgeUnreachableError, match=r"budget of 5 tokens .* Raise CULTURE_JUDGE_BUDGET"):
        judge.check([(LAVE, item)])
    assert len(server.requests) == 1


@pytest.mark.parametrize("text", ["0", "-5", "x", "5 EUR", "5 tokens USD", "", "1e3"])
def test_amounts_that_are_none_and_a_judge_without_a_price_are_refused_at_once(judge_for, text):
    message = r"CULTURE_JUDGE_BUDGET: the judge 'own' has no price by tokens.*CULTURE_JUDGE_PRICES=FILE"
    with pytest.raises(SettingsError, match=message):
        judge_for("own", judge_budget="5")
    with pytest.raises(SettingsError, match="expected an amount of money above 0, as 5 or 5 USD"):
        judge_for("gpt-4o", judge_budget=text)
