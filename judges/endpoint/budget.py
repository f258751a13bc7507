"""What a run may spend on its judges (``CULTURE_JUDGE_BUDGET``): nothing more is asked once replies have cost that.

A run exceeds it by the requests that are in flight then. The budget is that of a process, and each of several ranks has
its share.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from culture_tasks.costs.prices import EXAMPLE, Prices, read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.settings import Settings

logger = logging.getLogger(__name__)

# Code of the problem of a request that wasn't sent for lack of budget.
USED_UP = "judge_budget_used_up"
# A number and its unit: "5", "5 USD", "2,000,000 tokens".
_AMOUNT = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?)\s*([^\W\d_]*)")


class Budget:
    """What may still be spent, in money or tokens."""

    def __init__(self, text: str, prices: Prices, ranks: int = 1) -> None:
        amount, unit = match.groups() if (match := _AMOUNT.fullmatch(text.strip())) else ("0", "")
        self._prices, self._is_money = prices, unit.casefold() in ("", prices.currency.casefold())
        self.left = float(re.sub("[,_]", "", amount)) / ranks  # 0 or less where nothing more may be asked
        self.refused = 0  # requests that were not sent
        share = f", of which this process has 1/{ranks}" if ranks > 1 else ""
        self.reason = (
            f"the budget of {text.strip()} (CULTURE_JUDGE_BUDGET{share}) is used up. Verdicts that came are stored: "
            "raise it and run `culture-tasks rejudge` on the logged samples, which asks only for what is missing"
        )
        if not self.left or not (self._is_money or unit.casefold() in ("token", "tokens")):
            raise SettingsError(
                f"CULTURE_JUDGE_BUDGET={text!r}: expected an amount of money above 0, as 5 or 5 {prices.currency} (the "
                "prices' currency), or a number of tokens, as 2000000 tokens. Correct or unset it."
            )

    def cost(self, model: str, usage: Usage) -> float:
        """Returns what tokens cost, in the budget's unit."""
        if not self._is_money:
            return usage.prompt_tokens + usage.completion_tokens
        if (cost := self._prices.cost_of_requests(model, usage)) is None:
            raise SettingsError(
                f"CULTURE_JUDGE_BUDGET: the judge {model!r} has no price by tokens. Give it one in a file, "
                f"CULTURE_JUDGE_PRICES=FILE ({EXAMPLE}), or the budget in tokens, as 2000000 tokens."
            )
        return cost

    def spend(self, model: str, usage: Usage) -> None:
        """Counts the cost of a reply."""
        self.left -= self.cost(model, usage)

    def refuse(self, requests: int = 1) -> None:
        """Notes requests that are not sent; the log says so once."""
        if not self.refused:
            logger.warning("judge: %s.", self.reason)
        self.refused += requests


_budgets: dict[tuple[str, Path | None], Budget] = {}


def shared_budget(settings: Settings, model: str) -> Budget | None:
    """Returns the process's budget for these settings, which knows a model's price; None where there is none."""
    if settings.judge_budget is None:
        return None
    ranks = int(os.environ.get("WORLD_SIZE") or 1)
    new = Budget(settings.judge_budget, read_prices(settings.prices_file), ranks)
    new.cost(model, Usage())
    return _budgets.setdefault((settings.judge_budget, settings.prices_file), new)


def forget_budgets() -> None:
    """Begins new budgets: what was spent so far counts no more."""
    _budgets.clear()


def refused_requests() -> str:
    """Returns how many requests were not sent and how to go on, as a sentence; empty where all were."""
    exceeded = [budget for budget in list(_budgets.values()) if budget.refused]
    return " ".join(f"{budget.refused:,} requests to the judge were not sent: {budget.reason}." for budget in exceeded)
