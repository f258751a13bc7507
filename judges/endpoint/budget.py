"""What a run may spend on its judges, in money or tokens (``CULTURE_JUDGE_BUDGET``).

Before a request is sent, the most that it can cost is set aside: a token has at least one byte, so the request has no
more tokens than bytes, and its reply none beyond the limit. Once the reply is there, its true cost takes that place.
A request that the rest of the budget might not pay for waits for the requests in flight, and isn't sent if that doesn't
help. So a run never spends more than its budget, as long as the endpoint counts right and keeps to the limit.

The budget is that of a process, so of a command. With several ranks, each has its share of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
from pathlib import Path

from culture_tasks.costs.prices import EXAMPLE, Prices, read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.settings import Settings

logger = logging.getLogger(__name__)

# Code of the problem of a request that wasn't sent for lack of budget.
USED_UP = "judge_budget_used_up"
_UNLIMITED_REPLY = 32_768
# A number, with commas or underscores between its digits, and what it counts: "5", "5 USD", "2,000,000 tokens".
_AMOUNT = re.compile(r"(?P<number>[0-9][0-9_,]*(?:\.[0-9]+)?)\s*(?P<unit>[^\W\d_]*)")


class Budget:
    """What a process may spend, its share where there are several ranks. Used in the event loop, or where none runs."""

    def __init__(self, text: str, prices: Prices, ranks: int = 1) -> None:
        self.refused = 0  # requests that were not sent
        self._prices = prices
        self._ranks = ranks
        match = _AMOUNT.fullmatch(text.strip())
        amount = float(match["number"].replace(",", "").replace("_", "")) if match else 0.0
        unit = match["unit"].casefold() if match else ""
        self._is_money = unit in ("", prices.currency.casefold())
        if not amount > 0.0 or not (self._is_money or unit in ("token", "tokens")):
            raise SettingsError(
                f"CULTURE_JUDGE_BUDGET={text!r}: expected an amount of money above 0, as 5 or 5 {prices.currency} (the "
                "prices' currency), or a number of tokens, as 2000000 tokens. Correct or unset it."
            )
        self._shown = f"{amount:g} {prices.currency}" if self._is_money else f"{amount:,.0f} tokens"
        self._amount = amount / ranks
        self._spent = 0.0
        self._reserves = 0.0
        self._in_flight = 0
        self._waiting: list[asyncio.Future[None]] = []

    def check(self, model: str) -> None:
        """Makes sure that the price of a model is known, if the budget is in money."""
        if self._is_money and self._prices.cost_of_requests(model, Usage()) is None:
            raise SettingsError(
                f"CULTURE_JUDGE_BUDGET={self._shown}: the judge {model!r} has no price by tokens. Give it one "
                f"in a file, CULTURE_JUDGE_PRICES=FILE ({EXAMPLE}), or the budget in tokens, as 2000000 tokens."
            )

    def most(self, model: str, body: bytes, limit: int | None, *, in_a_batch: bool = False) -> float:
        """Returns the most that a request can cost; without a limit of its tokens, a reply may have 32,768."""
        usage = Usage(len(body), _UNLIMITED_REPLY if limit is None else limit)
        return self._cost(model, usage.in_a_batch if in_a_batch else usage)

    def _cost(self, model: str, usage: Usage) -> float:
        if not self._is_money:
            return usage.prompt_tokens + usage.completion_tokens
        return self._prices.cost_of_requests(model, usage) or 0.0

    def charge_of(self, model: str, result: Completion | Problem | None, most: float) -> float:
        """Returns the cost of a request that has ended; where nobody counted tokens, all that was set aside for it."""
        if isinstance(result, Completion) and result.usage != Usage():
            return self._cost(model, result.usage)
        if isinstance(result, Problem) and (result.unsent or (result.status is not None and result.status >= 400)):
            return 0.0
        return most

    async def reserve(self, most: float) -> bool:
        """Sets an amount aside, as soon as it is left; False if it isn't even when no request is in flight."""
        while not self.reserve_now(most):
            if not self._in_flight:
                self.refuse()
                return False
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]
        return True

    def reserve_now(self, most: float) -> bool:
        """Sets an amount aside, if it is left."""
        if self._spent + self._reserves + most > self._amount:
            return False
        self._reserves += most
        self._in_flight += 1
        return True

    def settle(self, most: float, cost: float) -> None:
        """Puts the cost of a request in the place of the amount that was set aside for it."""
        self._in_flight -= 1
        self._reserves = self._reserves - most if self._in_flight else 0.0  # no error of rounding adds up
        self._spent += cost
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            if not request.done():
                request.set_result(None)

    @property
    def reason(self) -> str:
        """Why a request is not sent, and how to go on."""
        spent = self._prices.text(self._spent) if self._is_money else f"{self._spent:,.0f} tokens"
        share = f", of which this process has 1/{self._ranks}" if self._ranks > 1 else ""
        return (
            f"the budget of {self._shown} (CULTURE_JUDGE_BUDGET{share}) is used up: {spent} spent, "
            "and the rest might not pay for the next request. Verdicts that came are stored: raise the budget and "
            "grade the logged samples with `culture-tasks rejudge`, which asks only for what is missing"
        )

    def refuse(self, requests: int = 1) -> None:
        """Notes requests that are not sent; the log says so once."""
        if not self.refused:
            logger.warning("judge: %s.", self.reason)
        self.refused += requests


_budgets: dict[tuple[int, str, Path | None], Budget] = {}
_lock = threading.Lock()


def shared_budget(settings: Settings) -> Budget | None:
    """Returns the process's budget for these settings, made on first use; None where there is none."""
    if settings.judge_budget is None:
        return None
    key = (os.getpid(), settings.judge_budget, settings.prices_file)
    with _lock:
        if key not in _budgets:
            ranks = int(os.environ.get("WORLD_SIZE") or 1)
            _budgets[key] = Budget(settings.judge_budget, read_prices(settings.prices_file), ranks)
        return _budgets[key]


def forget_budgets() -> None:
    """Begins new budgets: what was spent so far counts no more."""
    with _lock:
        _budgets.clear()


def refused_requests() -> str:
    """Returns how many requests were not sent and how to go on, as a sentence; empty where all were."""
    with _lock:
        exceeded = [budget for budget in _budgets.values() if budget.refused]
    return " ".join(f"{budget.refused:,} requests to the judge were not sent: {budget.reason}." for budget in exceeded)
