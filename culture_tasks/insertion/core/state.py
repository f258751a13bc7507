"""The files of a fitted method, ``state.safetensors`` and ``state.json``, and the reasons to refuse them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from safetensors import SafetensorError

from culture_tasks.errors import CultureTasksError
from culture_tasks.insertion.core import tensor_files
from culture_tasks.insertion.core.identity import ModelIdentity, value_key
from culture_tasks.plain_files import read_plain, write_whole

FORMAT = 2
DESCRIPTION, _TENSORS = "state.json", "state.safetensors"


class StateError(CultureTasksError):
    """A state that can't be read, or that doesn't fit the model, the method or the data."""


class DataFacts(BaseModel, extra="forbid", frozen=True):
    """The training data of a state: fingerprints of the raw cases (or empty) and of the cases, and the scenarios."""

    raw: str
    cases: str
    count: int
    scenarios: tuple[str, ...]


class ModelFacts(BaseModel, extra="forbid", frozen=True):
    """A model that a method was fitted with, and its fingerprint before anything was trained, with its parts."""

    source: str = "none"
    weights: str = ""
    parts: dict[str, Any] = {}

    @classmethod
    def of(cls, identity: ModelIdentity | None) -> ModelFacts:
        """Returns the facts of a loaded model, or of none."""
        return cls() if identity is None else cls(**{name: getattr(identity, name) for name in cls.model_fields})


class Description(BaseModel, extra="forbid", frozen=True):
    """``state.json``.

    States from before the version of the method was recorded are of the first. ``replacement`` is the method's second
    model, ``facts`` are results of the fit that aren't tensors, ``tensors`` is the SHA-256 of those in the other file.
    """

    format: int = FORMAT
    method: str
    version: int = 1
    config: dict[str, Any]
    model: str
    weights: str
    parts: dict[str, Any] = {}
    replacement: ModelFacts | None = None
    data: DataFacts
    facts: dict[str, Any]
    report: dict[str, Any]
    tensors: str

    @property
    def fingerprint(self) -> str:
        """Hash of all that was fitted and can change an answer."""
        names = dict.fromkeys(("report", "model", "version", "parts"), True)
        relevant = self.model_dump(mode="json", exclude={**names, "replacement": {"source", "parts"}})
        return value_key(relevant)[:32]

    @property
    def compared(self) -> dict[str, Any]:
        """All that the fit depended on, by names for messages."""
        model = {"fingerprint": self.weights, **self.parts}
        of_model = {f"{name} of the model": value for name, value in model.items()}
        of_data = {f"{name} of the data": value for name, value in self.data.model_dump().items()}
        return {"method": self.method, "version": self.version, **self.config, **of_model, **of_data}


def write(folder: Path, description: Description, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes a state; each file is written completely or not at all, and a mixture of two states can't be read."""
    tensor_files.write(folder / _TENSORS, tensors)
    write_whole(folder / DESCRIPTION, description.model_dump_json(indent=2) + "\n")


def read(folder: Path) -> tuple[Description, dict[str, torch.Tensor]]:
    """Reads a state."""
    try:
        description = Description.model_validate_json(read_plain(folder / DESCRIPTION))
        if description.format != FORMAT:
            raise ValueError(f"it has format {description.format}, and this version reads {FORMAT}")
        tensors, _ = tensor_files.read(folder / _TENSORS)
        if tensor_files.digest(tensors) != description.tensors:
            raise ValueError(f"{_TENSORS} doesn't belong to {DESCRIPTION}")
    except (OSError, ValueError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        raise StateError(
            f"{folder}: holds no state that can be read ({reason}). Name a folder that 'culture-tasks insertion fit … "
            "--output' wrote, or fit the method again."
        ) from None
    return description, tensors


def differences(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Returns the entries that differ, each with both values; entries that one side lacks aren't compared."""
    return "; ".join(
        f"{name} {actual[name]!r:.80}, expected {value!r:.80}"
        for name, value in expected.items()
        if name in actual and actual[name] != value
    )


def check_model(folder: Path, expected: ModelFacts, identity: ModelIdentity | None, role: str = "model") -> None:
    """Makes sure that a state belongs to a model."""
    actual = ModelFacts.of(identity)
    compared = ({"fingerprint": facts.weights, **facts.parts} for facts in (actual, expected))
    different = differences(*compared)
    if different:
        raise StateError(
            f"{folder}: fitted with the {role} {expected.source!r}, which differs from {actual.source!r} "
            f"({different}). Load that model, or fit the method with this one."
        )


def check_data(folder: Path, data: DataFacts, raw: str, scenarios: frozenset[str]) -> None:
    """Makes sure that a state may be evaluated on data."""
    if raw and data.raw and raw != data.raw:
        raise StateError(
            f"{folder}: fitted on data with fingerprint {data.raw}, but the evaluated data have {raw}. "
            "Evaluate the same release, or fit the method on this one."
        )
    overlap = sorted(scenarios & set(data.scenarios))
    if overlap:
        raise StateError(
            f"{folder}: {len(overlap)} evaluated scenarios were trained on, such as {overlap[0]!r}. Use the same split "
            "of scenarios for both, or fit the method again."
        )
