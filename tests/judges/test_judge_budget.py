"""A budget: the sum spent never exceeds it, verdicts that came are kept, and the message tells how to go on."""

from __future__ import annotations

import json

import pytest
from support.fault_server import fails, hangs, raw, resets, says
from support.judging import BRIEF, ask, ask_all

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.endpoint.budget import forget_budgets, refused_requests, shared_budget


@pytest.fixture(autouse=True)
def new_budget():
    forget_budgets()


def costs(prompt_tokens, completion_tokens):
    return says(usage={"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens})


def most(request):
    """The most tokens that a request may take: a byte each, and a whole reply."""
    return (
        len(json.dumps(request.body, ensure_ascii=False, separators=(",", ":")).encode()) + request.body["max_tokens"]
    )


@pytest.mark.parametrize(("share", "concurrency", "ranks"), [(1.0, 1, 1), (0.1, 1, 1), (0.7, 16, 1), (0.7, 16, 4)])
def test_the_sum_spent_never_exceeds_the_budget_or_a_rank_s_share(
    server, judge_for, items, monkeypatch, share, concurrency, ranks
):
    monkeypatch.setenv("WORLD_SIZE", str(ranks))
    spent = []

    def decide(request):
        spent.append(int(share * most(request)))
        return costs(spent[-1], 0)

    server.decide = decide
    budget = 40_000 * ranks
    judge = judge_for(judge_budget=f"{budget:,} tokens", judge_concurrency=concurrency)
    verdicts = ask_all(judge, items(300))
    assert sum(spent) <= 40_000
    assert sum(spent) > 40_000 - most(server.requests[0]) - 200  # and no more is left than a request might take
    refused = [verdict.error for verdict in verdicts if verdict.outcome == "failed"]
    assert [verdict.outcome for verdict in verdicts].count("scored") == 300 - len(refused) == len(spent)
    part = f", of which this process has 1/{ranks}" if ranks > 1 else ""
    message = f"the budget of {budget:,} tokens (CULTURE_JUDGE_BUDGET{part}) is used up"
    assert all(message in error for error in refused)
    assert refused_requests().startswith(f"{len(refused)} requests to the judge were not sent: ")
    assert "raise the budget and grade the logged samples with `culture-tasks rejudge`" in refused_requests()
    server.requests.clear()  # a kept verdict costs nothing
    assert [ask(judge, item).outcome for item in items(1)] == ["scored"]
    assert server.requests == []


def test_money_is_counted_by_the_file_of_prices(server, judge_for, items, tmp_path):
    prices = {"currency": "EUR", "models": {"judge": {"input": 1000, "output": 0, "cached_input": 1000}}}
    (tmp_path / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    server.decide = lambda request: costs(1000, 100)  # 1 EUR each
    judge = judge_for(judge_budget="10 eur", judge_prices=str(tmp_path / "prices.json"))
    scored = [verdict.outcome for verdict in ask_all(judge, items(40))].count("scored")
    assert 7 <= scored <= 10
    assert f"the budget of 10 EUR (CULTURE_JUDGE_BUDGET) is used up: {scored:.2f} EUR spent" in refused_requests()


@pytest.mark.parametrize(
    ("behaviour", "is_charged"),
    [
        *((resets, True), (raw("{}"), True), (costs(0, 0), True), (hangs, True)),
        *((fails(500), False), (fails(400), False), (None, False)),
    ],
    ids=["reset", "unreadable", "uncounted", "time-out", "500", "400", "no connection"],
)
def test_a_request_that_may_be_charged_counts_in_full(server, judge_for, item, behaviour, is_charged):
    server.decide = lambda request: behaviour
    url = server.url if behaviour else "http://127.0.0.1:9/v1"
    timeout = 0.2 if behaviour is hangs else 10.0  # on a busy machine any reply takes that long
    options = {"judge_timeout": timeout, "openai_base_url": url}
    judge = judge_for(judge_budget="1000000 tokens", patience=BRIEF, **options)
    ask_all(judge, [item])
    tokens = sum(map(most, server.requests)) if is_charged else 0
    assert f": {tokens:,} tokens spent" in shared_budget(judge._settings).reason


def test_judges_of_a_process_share_the_budget(server, judge_for, items):
    server.decide = lambda request: costs(most(request), 0)
    first, second = judge_for(judge_budget="30000 tokens"), judge_for("other", judge_budget="30000 tokens")
    assert sum(verdict.outcome == "failed" for verdict in ask_all(first, items(100))) > 50
    requests = len(server.requests)
    assert {verdict.outcome for verdict in ask_all(second, items(5))} == {"failed"}
    assert len(server.requests) == requests


def test_a_budget_too_small_for_the_first_question_is_an_error_before_inference(judge_for, item, server):
    with pytest.raises(JudgeUnreachableError, match=r"budget of 5 tokens .* Raise CULTURE_JUDGE_BUDGET"):
        judge_for(judge_budget="5 tokens").check([(LAVE, item)])
    assert server.requests == []


@pytest.mark.parametrize("text", ["0", "-5", "x", "5 EUR", "5 tokens USD", "", "1e3"])
def test_amounts_that_are_none_and_a_judge_without_a_price_are_refused_at_once(judge_for, text):
    message = r"CULTURE_JUDGE_BUDGET=5 USD: the judge 'own' has no price by tokens.*CULTURE_JUDGE_PRICES=FILE"
    with pytest.raises(SettingsError, match=message):
        judge_for("own", judge_budget="5")
    with pytest.raises(SettingsError, match="expected an amount of money above 0, as 5 or 5 USD"):
        judge_for("gpt-4o", judge_budget=text)
