"""Prices: the list's, the user's, and what requests cost."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from culture_tasks.costs.prices import Price, Prices, list_prices, read_prices
from culture_tasks.judges.rubric.verdicts import Usage


def test_a_judge_of_each_paper_has_a_list_price_and_a_batch_costs_half():
    from culture_tasks.benchmarks.registry import rubrics

    prices = read_prices(None)
    assert (prices.currency, prices.origin) == ("USD", f"list prices of genai-prices {version('genai-prices')}")
    for model in {rubric.model for rubric in rubrics().values()}:
        price = prices.price_of(model)
        assert price is not None, model
        assert price.batch == 0.5
        assert price.cached_input < price.input


def test_a_name_that_is_longer_or_shorter_is_another_model():
    prices = list_prices()
    assert prices.price_of("gpt-4o").input == 2.5
    assert prices.price_of("gpt-4o-mini").input == 0.15
    assert prices.price_of("gpt-4o-of-mine") is None
    assert prices.price_of("claude-sonnet-4-5").input == 3.0  # of short requests
    assert [
        prices.price_of(name) for name in ("openai/gpt-oss-20b", "gpt-oss-20b", "gemma-3-27b-it", "Qwen/Qwen3-8B")
    ] == [None] * 4


def test_the_user_s_prices_come_before_the_list_and_another_currency_has_no_list():
    own = {"gpt-4o": {"input": 1.0, "output": 1.0}}
    prices = Prices(currency="USD", models=own)
    assert (prices.price_of("gpt-4o").input, prices.price_of("gpt-4o-mini").input) == (1.0, 0.15)
    assert Prices(currency="EUR", models=own).price_of("gpt-4o-mini") is None
    assert prices.cost_of_requests("org/own-judge", Usage(1, 1)) is None


@pytest.mark.parametrize(
    ("usage", "amount"),
    [
        (Usage(), 0.0),
        (Usage(100, 10, cached_tokens=60), 40 * 2 + 60 * 0.5 + 10 * 8),
        (Usage(100, 10, 60).in_a_batch, (100 * 2 + 10 * 8) / 2),  # one discount alone
        (Usage(100, 10, 60) + Usage(10, 1).in_a_batch, 40 * 2 + 60 * 0.5 + 80 + (20 + 8) / 2),
    ],
)
def test_requests_cost_what_their_tokens_do(usage, amount):
    price = Price(input=2.0, cached_input=0.5, output=8.0, batch=0.5)
    assert price.cost_of_requests(usage) == pytest.approx(amount / 1e6)
    # without a price for cached tokens they cost as others do, and hours tell nothing of requests
    assert Price(input=2.0, output=8.0).cost_of_requests(Usage(100, 10, 60)) == pytest.approx((200 + 80) / 1e6)
    assert Price(hour=2.0).cost_of_requests(Usage(1, 1)) is None
    assert Price(input=1.0, output=1.0, hour=2.0).cost_of_requests(Usage(1, 1)) is None


def test_amounts_are_shown_with_the_digits_that_say_something():
    amounts = {0.0: "0.00 USD", 0.01234: "0.0123 USD", 1234.5: "1,234.50 USD"}
    assert {amount: Prices(currency="USD", models={}).text(amount) for amount in amounts} == amounts
