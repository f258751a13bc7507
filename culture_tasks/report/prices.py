"""What models and judges cost: the user's file of prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from culture_tasks.errors import SettingsError

_Amount = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
_MILLION, _HOUR = 1e6, 3600.0


class Price(BaseModel):
    """The price of a model: by tokens, by the hour, or both.

    Attributes:
        input: Of a million tokens that it reads.
        output: Of a million tokens that it writes.
        hour: Of an hour that it runs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Amount | None = None
    output: _Amount | None = None
    hour: _Amount | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Price:
        if (self.input is None) != (self.output is None) or (self.input is None and self.hour is None):
            raise ValueError("needed are 'input' and 'output', or 'hour'")
        return self

    def of(self, tokens_in: float | None, tokens_out: float | None, seconds: float | None = None) -> float | None:
        """Returns what a run costs; None where something is missing that the price is by."""
        parts: list[float | None] = []
        if self.input is not None and self.output is not None:
            known = [(tokens_in, self.input), (tokens_out, self.output)]
            parts += [None if tokens is None else tokens * price / _MILLION for tokens, price in known]
        if self.hour is not None:
            parts.append(None if seconds is None else seconds * self.hour / _HOUR)
        return whole_sum(parts)


def whole_sum(parts: Iterable[float | None]) -> float | None:
    """Returns a sum; None where a part is missing, and where there is none."""
    found = list(parts)
    known = [part for part in found if part is not None]
    return sum(known) if known and len(known) == len(found) else None


class Prices(BaseModel):
    """A file of prices.

    Attributes:
        currency: What they are in.
        models: Prices by name of the model or judge, or by a pattern of names; the first that fits counts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    currency: Annotated[str, Field(min_length=1, max_length=10)]
    models: Mapping[str, Price]

    def of(self, *names: str) -> Price | None:
        """Returns the price of what has one of these names, or None."""
        for pattern, price in self.models.items():
            if any(fnmatchcase(name, pattern) for name in names):
                return price
        return None


def read_prices(path: Path) -> Prices:
    """Reads a file of prices.

    Raises:
        SettingsError: If it can't be read, or isn't laid out as prices are.
    """
    example = '{"currency": "USD", "models": {"gpt-4o": {"input": 2.5, "output": 10}}}, per million tokens'
    try:
        return Prices.model_validate_json(path.read_bytes())
    except OSError as error:
        raise SettingsError(
            f"report: can't read {path} ({error.strerror}). Name a file of prices: {example}."
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise SettingsError(f"report: {path} is no file of prices ({said}). Needed is {example}.") from None
