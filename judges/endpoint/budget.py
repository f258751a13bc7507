"""What a run may spend on its judges, in money or tokens (``CULTURE_JUDGE_BUDGET``).

Nothing more is asked once the replies that came have cost the budget: a run exceeds it by the requests that are in
flight then. The budget is that of a process, so of a command. With several ranks, each has its share of it.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from pathlib import Path

from culture_tasks.costs.prices import EXAMPLE, Prices, read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.settings import Settings

logger = logging.getLogger(__name__)

# Code of the problem of a request that wasn't sent for lack of budget.
USED_UP = "judge_budget_used_up"
# A number, with commas or underscores between its digits, and what it counts: "5", "5 USD", "2,000,000 tokens".
_AMOUNT = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([^\W\d_]*)")


class Budget:
    """What a process may spend, its share where there are several ranks."""

    def __init__(self, text: str, prices: Prices, ranks: int = 1) -> None:
        self.refused = 0  # requests that were not sent
        self._prices, self._spent = prices, 0.0
        match = _AMOUNT.fullmatch(text.strip())
        number, unit = match.groups() if match else ("0", "")
        amount = float(re.sub("[,_]", "", number))
        self._is_money = unit.casefold() in ("", prices.currency.casefold())
        if not amount or not (self._is_money or unit.casefold() in ("token", "tokens")):
            raise SettingsError(
                f"CULTURE_JUDGE_BUDGET={text!r}: expected an amount of money above 0, as 5 or 5 {prices.currency} (the "
                "prices' currency), or a number of tokens, as 2000000 tokens. Correct or unset it."
            )
        self._shown = f"{amount:g} {prices.currency}" if self._is_money else f"{amount:,.0f} tokens"
        self._share = f", of which this process has 1/{ranks}" if ranks > 1 else ""
        self._amount = amount / ranks

    def check(self, model: str) -> None:
        """Makes sure that the price of a model is known, if the budget is in money."""
        if self._is_money and self._prices.cost_of_requests(model, Usage()) is None:
            raise SettingsError(
                f"CULTURE_JUDGE_BUDGET={self._shown}: the judge {model!r} has no price by tokens. Give it one "
                f"in a file, CULTURE_JUDGE_PRICES=FILE ({EXAMPLE}), or the budget in tokens, as 2000000 tokens."
            )

    def cost(self, model: str, usage: Usage) -> float:
        """Returns what tokens cost, in the budget's unit."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        return (self._prices.cost_of_requests(model, usage) or 0.0) if self._is_money else tokens

    def spend(self, model: str, usage: Usage) -> None:
        """Counts the cost of a reply."""
        self._spent += self.cost(model, usage)

    @property
    def left(self) -> float:
        """What may still be spent; 0 or less where nothing more may be asked."""
        return self._amount - self._spent

    @property
    def reason(self) -> str:
        """Why a request is not sent, and how to go on."""
        spent = self._prices.text(self._spent) if self._is_money else f"{self._spent:,.0f} tokens"
        return (
            f"the budget of {self._shown} (CULTURE_JUDGE_BUDGET{self._share}) is used up: {spent} spent. "
            "Verdicts that came are stored: raise the budget and grade the logged samples with "
            "`culture-tasks rejudge`, which asks only for what is missing"
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
    _budgets.clear()


def refused_requests() -> str:
    """Returns how many requests were not sent and how to go on, as a sentence; empty where all were."""
    exceeded = [budget for budget in list(_budgets.values()) if budget.refused]
    return " ".join(f"{budget.refused:,} requests to the judge were not sent: {budget.reason}." for budget in exceeded)
