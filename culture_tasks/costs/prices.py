"""What models and judges cost: a file of the user's own prices, and the list prices of the package genai-prices.

List prices are those of the sellers' own models. A model that has neither has no price: nothing is assumed.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import BaseModel, Field, ValidationError, model_validator

from culture_tasks.errors import SettingsError
from culture_tasks.plain_files import read_plain

_Amount = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
_MILLION, _HOUR = 1e6, 3600.0
_LISTED_IN = "USD"
_SELLERS = ("openai", "anthropic", "google")
_BATCH = 0.5  # what all three sellers ask for a request in a batch
# Models that the sellers list too, and that most people run themselves.
_OPEN_WEIGHTS = ("gpt-oss", "gemma")

EXAMPLE = '{"currency": "USD", "models": {"gpt-4o": {"input": 2.5, "output": 10}}}, per million tokens'
"""The least that a file of prices has."""


class Tokens(Protocol):
    """Tokens of some requests; cached tokens and tokens of batches are part of the prompt's and the completion's."""

    @property
    def prompt_tokens(self) -> int: ...  # noqa: D102  # see the class
    @property
    def completion_tokens(self) -> int: ...  # noqa: D102
    @property
    def cached_tokens(self) -> int: ...  # noqa: D102
    @property
    def batch_prompt_tokens(self) -> int: ...  # noqa: D102
    @property
    def batch_completion_tokens(self) -> int: ...  # noqa: D102


class Price(BaseModel, extra="forbid", frozen=True):
    """The price of a model: of a million tokens that it reads and writes, of an hour that it runs, or both.

    ``cached_input`` is that of tokens from the endpoint's prompt cache, where it differs; ``batch`` what a request in a
    batch costs, as a share of the price.
    """

    input: _Amount | None = None
    output: _Amount | None = None
    cached_input: _Amount | None = None
    batch: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    hour: _Amount | None = None

    @model_validator(mode="after")
    def _check_amounts(self) -> Price:
        if (self.input is None) != (self.output is None) or (self.input is None and self.hour is None):
            raise ValueError("expected 'input' and 'output', or 'hour'")
        return self

    def cost_of_run(
        self, tokens_in: float | None, tokens_out: float | None, seconds: float | None = None
    ) -> float | None:
        """Returns what a run costs; None where the tokens or seconds that the price is for are missing."""
        parts: list[float | None] = []
        if self.input is not None and self.output is not None:
            amounts = [(tokens_in, self.input), (tokens_out, self.output)]
            parts += [None if tokens is None else tokens * price / _MILLION for tokens, price in amounts]
        if self.hour is not None:
            parts.append(None if seconds is None else seconds * self.hour / _HOUR)
        return whole_sum(parts)

    def cost_of_requests(self, tokens: Tokens) -> float | None:
        """Returns what requests cost; None for a model that has a price by the hour.

        A request in a batch has the batch's discount alone: where an endpoint adds that of its prompt cache, the sum is
        an upper bound.
        """
        if self.input is None or self.output is None or self.hour is not None:
            return None
        cached = self.input if self.cached_input is None else self.cached_input
        plain = tokens.prompt_tokens - tokens.cached_tokens - tokens.batch_prompt_tokens
        output = tokens.completion_tokens - tokens.batch_completion_tokens
        in_batches = tokens.batch_prompt_tokens * self.input + tokens.batch_completion_tokens * self.output
        at_once = plain * self.input + tokens.cached_tokens * cached + output * self.output
        return (at_once + self.batch * in_batches) / _MILLION


def whole_sum(parts: Iterable[float | None]) -> float | None:
    """Returns a sum; None where a part is missing, and where there is none."""
    amounts = list(parts)
    present = [amount for amount in amounts if amount is not None]
    return sum(present) if present and len(present) == len(amounts) else None


class Prices(BaseModel, extra="forbid", frozen=True):
    """A file of prices, by name of the model or judge or by a pattern of names; the first that fits counts.

    Models that it doesn't have cost their list price, which is in USD. ``date`` is when the source was read.
    """

    currency: Annotated[str, Field(min_length=1, max_length=10)]
    date: datetime.date | None = None
    source: Annotated[str, Field(max_length=500)] = ""
    models: Mapping[str, Price]

    def price_of(self, *names: str) -> Price | None:
        """Returns the price of a model with these names, the file's before the list's, or None."""
        for pattern, price in self.models.items():
            if any(fnmatchcase(name, pattern) for name in names):
                return price
        candidates = map(_list_price, names) if self.currency == _LISTED_IN else ()
        return next((price for price in candidates if price is not None), None)

    def cost_of_requests(self, model: str, tokens: Tokens) -> float | None:
        """Returns what requests to a model cost; None where it has no price by tokens."""
        price = self.price_of(model)
        return None if price is None else price.cost_of_requests(tokens)

    @property
    def origin(self) -> str:
        """Where the prices are from and of when, in words; empty where the file doesn't say."""
        return ", ".join(part for part in (self.source, self.date.isoformat() if self.date else "") if part)

    def text(self, amount: float | None) -> str:
        """Returns an amount with its currency: two digits after the point, four where it is below 1."""
        if amount is None:
            return "no price"
        return f"{amount:,.{2 if amount >= 1.0 or amount == 0.0 else 4}f} {self.currency}"


def list_prices() -> Prices:
    """Returns the list prices alone."""
    return Prices(currency=_LISTED_IN, source=f"list prices of genai-prices {version('genai-prices')}", models={})


@cache
def _list_price(name: str) -> Price | None:
    """Returns the list price of a model: that of short requests, where long ones cost more."""
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import TieredPrices

    if any(family in name.casefold() for family in _OPEN_WEIGHTS):
        return None
    for seller in _SELLERS:
        try:
            _, model = get_snapshot().find_provider_model(name, None, seller, None)
        except LookupError:
            continue
        prices = model.get_prices(datetime.datetime.now(datetime.UTC))
        amounts = (prices.input_mtok, prices.output_mtok, prices.cache_read_mtok)
        tokens_in, tokens_out, cached = (
            amount.base if isinstance(amount, TieredPrices) else amount for amount in amounts
        )
        if tokens_in is None or tokens_out is None:
            return None
        return Price(input=tokens_in, output=tokens_out, cached_input=cached, batch=_BATCH)
    return None


def read_prices(path: Path | None) -> Prices:
    """Reads a file of prices; None means the list prices alone."""
    if path is None:
        return list_prices()
    try:
        return Prices.model_validate_json(read_plain(path))
    except OSError as error:
        raise SettingsError(
            f"prices: can't read {path} ({error.strerror}). Name a file of prices: {EXAMPLE}."
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        problem = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise SettingsError(f"prices: {path} isn't a file of prices ({problem}). Expected {EXAMPLE}.") from None
