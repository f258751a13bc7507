"""The files of a fitted method, ``state.safetensors`` and ``state.json``, and the reasons to refuse them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError

from culture_tasks.errors import CultureTasksError
from culture_tasks.insertion.core import tensor_files
from culture_tasks.insertion.core.identity import ModelIdentity, value_key
from culture_tasks.plain_files import read_plain, write_whole

FORMAT = 2
_DESCRIPTION, _TENSORS = "state.json", "state.safetensors"


class StateError(CultureTasksError):
    """A state that can't be read, or that doesn't fit the model, the method or the data."""


class DataFacts(BaseModel, extra="forbid", frozen=True):
    """The training data of a state: fingerprints of the raw cases (or empty) and of the cases, and the scenarios."""

    raw: str
    cases: str
    count: int
    scenarios: tuple[str, ...]


class ModelFacts(BaseModel, extra="forbid", frozen=True):
    """A model that a method was fitted with, and its fingerprint before anything was trained."""

    source: str = "none"
    weights: str = ""
    parts: dict[str, Any] = {}

    @classmethod
    def of(cls, identity: ModelIdentity) -> ModelFacts:
        """Returns the facts of a loaded model."""
        return cls(source=identity.source, weights=identity.weights, parts=dict(identity.parts))

    @property
    def compared(self) -> dict[str, Any]:
        """The fingerprint and its parts by their names."""
        return {"fingerprint": self.weights, **self.parts}


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
    def fitted_model(self) -> ModelFacts:
        """The model that the method was fitted with."""
        return ModelFacts(source=self.model, weights=self.weights, parts=self.parts)

    @property
    def compared(self) -> dict[str, Any]:
        """All that the fit depended on, by names for messages."""
        parts = {"model": self.fitted_model.compared, "data": self.data.model_dump()}
        entries = {f"{name} of the {part}": value for part, facts in parts.items() for name, value in facts.items()}
        return {"method": self.method, "version": self.version, **self.config, **entries}


def exists(folder: Path) -> bool:
    """Whether a folder holds a state, complete or not."""
    return (folder / _DESCRIPTION).exists() or (folder / _TENSORS).exists()


def write(folder: Path, description: Description, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes a state; each file is written completely or not at all, and a mixture of two states can't be read."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tensor_files.write(folder / _TENSORS, tensors)
        write_whole(folder / _DESCRIPTION, description.model_dump_json(indent=2) + "\n")
    except (OSError, SafetensorError) as error:
        raise StateError(
            f"{folder}: the state can't be written ({error}). Free the disk; the same command continues from what "
            "is kept."
        ) from error


def read(folder: Path) -> tuple[Description, dict[str, torch.Tensor]]:
    """Reads a state."""
    path = folder / _DESCRIPTION
    try:
        description = Description.model_validate_json(read_plain(path))
    except OSError:
        raise StateError(
            f"{folder}: holds no {_DESCRIPTION}. Name a folder that 'culture-tasks insertion fit … --output' wrote."
        ) from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise StateError(f"{path}: not the description of a state ({str(error).splitlines()[0]}). Fit again.") from None
    if description.format != FORMAT:
        raise StateError(f"{path}: format {description.format}, this version reads {FORMAT}. Fit the method again.")
    path = folder / _TENSORS
    try:
        tensors, _ = tensor_files.read(path)
    except (OSError, SafetensorError) as error:
        raise StateError(f"{path}: can't be read as a safetensors file ({error}). Fit the method again.") from None
    if tensor_files.digest(tensors) != description.tensors:
        raise StateError(f"{folder}: {_TENSORS} doesn't belong to {_DESCRIPTION}. Fit the method again.")
    return description, tensors


def differences(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Returns the entries that differ, each with both values; entries that one side lacks aren't compared."""
    return "; ".join(
        f"{name} {actual[name]!r:.80}, expected {value!r:.80}"
        for name, value in expected.items()
        if name in actual and actual[name] != value
    )


def check_model(folder: Path, fitted: ModelFacts | None, identity: ModelIdentity | None, role: str = "model") -> None:
    """Makes sure that a state belongs to a model."""
    expected = fitted or ModelFacts()
    actual = ModelFacts() if identity is None else ModelFacts.of(identity)
    different = differences(actual.compared, expected.compared)
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
