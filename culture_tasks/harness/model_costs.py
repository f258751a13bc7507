"""The costs of a run that a model of ours counts, and that the harness has no place for in its result file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

KEY = "insertion_costs"
"""Name of the entry in the result file."""


class ModelCosts(BaseModel):
    """The costs of a run with knowledge insertion, in the quantities of CrossCult-KIBench's Table 4.

    A quantity that wasn't measured, or that this run doesn't have, is None. Peak memory is that of the GPUs of a
    process, or of the process on a CPU.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    device: str
    ranks: int = 1
    batch_size: int = 1
    one_at_a_time: bool = False  # every request was answered on its own: the only way to measure its latency
    answered: int = 0  # prompts that were answered now, the plain model's among them
    found: int = 0  # prompts whose answers were there
    requests: int = 0
    request_ms: float | None = None
    """Mean over requests. One at a time: from the request to its answer. In batches: all computing for routing and
    answers, divided by the requests that were answered."""
    insertions: int = 0
    insert_ms: float | None = None  # mean over insertions; in batches, without what was computed ahead
    train_ms: float | None = None  # fitting a training case
    train_gib: float | None = None  # peak memory in fitting
    peak_gib: float | None = None  # peak memory in evaluation
    parameters: float | None = None  # loaded, in billions

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> ModelCosts | None:
        """Returns the costs that a result file has; None where it has none that can be read."""
        try:
            return cls.model_validate(content.get(KEY))
        except ValidationError:
            return None

    @property
    def way(self) -> str:
        """How requests were answered, and where, for a table."""
        way = "one at a time" if self.one_at_a_time else f"batches of {self.batch_size}"
        ranks = f", {self.ranks} processes" if self.ranks > 1 else ""
        return f"{self.device}, {way}{ranks}"


def total_costs(parts: Sequence[ModelCosts]) -> ModelCosts:
    """Returns the costs of several ranks, or of several runs of one model on one kind of device.

    Times are means weighted by their requests or insertions, memory is the highest of all.
    """

    def mean(value: str, weight: str) -> float | None:
        pairs = [(getattr(part, value), getattr(part, weight)) for part in parts if getattr(part, value) is not None]
        total = sum(count for _, count in pairs)
        return sum(number * count for number, count in pairs) / total if total else None

    def highest(name: str) -> Any:
        return max((number for part in parts if (number := getattr(part, name)) is not None), default=None)

    summed = ("answered", "found", "requests", "insertions")
    maximal = ("ranks", "batch_size", "train_ms", "train_gib", "peak_gib", "parameters")
    return parts[0].model_copy(
        update={
            "device": " + ".join(dict.fromkeys(part.device for part in parts)),
            "one_at_a_time": all(part.one_at_a_time for part in parts),
            "request_ms": mean("request_ms", "requests"),
            "insert_ms": mean("insert_ms", "insertions"),
            **{name: sum(getattr(part, name) for part in parts) for name in summed},
            **{name: highest(name) for name in maximal},
        }
    )
