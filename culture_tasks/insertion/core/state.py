"""Fingerprints of models, and the files of a fitted method: ``state.safetensors`` and ``state.json``.

A fingerprint keeps what was computed with one model from being used with another. Files are written completely or not
at all, and tensors are hashed one by one, so a state of several GB needs no memory besides its tensors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import BaseModel, Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from culture_tasks.errors import CultureTasksError
from culture_tasks.plain_files import read_plain, replaced, write_whole

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

Tensors = Mapping[str, torch.Tensor]

FORMAT = 2
DESCRIPTION, _TENSORS = "state.json", "state.safetensors"
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SAMPLED = 64
_INCIDENTAL = {"_name_or_path", "transformers_version", "_attn_implementation_autoset", "processor_class"}
_INCIDENTAL |= {"architectures", "dtype", "torch_dtype"}  # which saving writes; the model itself tells them


class StateError(CultureTasksError):
    """A state that can't be read, or that doesn't fit the model, the method or the data."""


class DataFacts(BaseModel, extra="forbid", frozen=True):
    """The training data of a state: fingerprints of the raw cases (or empty) and of the cases, and the scenarios."""

    raw: str
    cases: str
    count: int
    scenarios: tuple[str, ...]


class ModelIdentity(BaseModel, extra="forbid", frozen=True):
    """Fingerprints of a loaded model.

    A trained state fits ``weights``, whose ``parts`` messages name. ``run`` is that of ``weights`` and all else that
    can change an answer (device, attention kernels, versions of libraries and of our own code), for stored answers.
    """

    source: str = "none"
    weights: str = ""
    parts: dict[str, Any] = {}
    run: str = Field(default="", exclude=True)

    def with_weights(self, weights: Tensors) -> ModelIdentity:
        """Returns the identity of the model after some of its weights became these."""
        changed = digest(weights)
        after, run = (value_key([before, changed])[:32] for before in (self.weights, self.run))
        return ModelIdentity(source=self.source, weights=after, run=run)


class Description(BaseModel, extra="forbid", frozen=True):
    """``state.json``: ``facts`` are results that aren't tensors, ``tensors`` the SHA-256 of those that are."""

    format: int = FORMAT
    method: str
    version: int = 1  # of states from before it was recorded
    config: dict[str, Any]
    model: str
    weights: str
    parts: dict[str, Any] = {}
    replacement: ModelIdentity | None = None
    data: DataFacts
    facts: dict[str, Any] = {}
    report: dict[str, Any] = {}
    tensors: str = ""

    @property
    def fingerprint(self) -> str:
        """Hash of all that was fitted and can change an answer."""
        names = dict.fromkeys(("report", "model", "version", "parts"), True)
        relevant = self.model_dump(mode="json", exclude={**names, "replacement": {"source", "parts"}})
        return value_key(relevant)[:32]

    @property
    def compared(self) -> dict[str, Any]:
        """All that the fit depended on, by names for messages."""
        of_model = {"fingerprint of the model": self.weights}
        of_model |= {f"{name} of the model": value for name, value in self.parts.items()}
        of_data = {f"{name} of the data": value for name, value in self.data.model_dump().items()}
        return {"method": self.method, "version": self.version, **self.config, **of_model, **of_data}


def check_model(folder: Path, fitted: ModelIdentity, identity: ModelIdentity, role: str = "model") -> None:
    """Makes sure that a state belongs to a model."""
    actual, expected = ({"fingerprint": one.weights, **one.parts} for one in (identity, fitted))
    if different := differences(actual, expected):
        raise StateError(
            f"{folder}: fitted with the {role} {fitted.source!r}, which differs from {identity.source!r} "
            f"({different}). Load that model, or fit the method with this one."
        )


def check_data(folder: Path, data: DataFacts, raw: str, scenarios: frozenset[str]) -> None:
    """Makes sure that a state may be evaluated on data."""
    if raw and data.raw and raw != data.raw:
        raise StateError(
            f"{folder}: fitted on data with fingerprint {data.raw}, but the evaluated data have {raw}. "
            "Evaluate the same release, or fit the method on this one."
        )
    if overlap := sorted(scenarios & set(data.scenarios)):
        raise StateError(
            f"{folder}: {len(overlap)} evaluated scenarios were trained on, such as {overlap[0]!r}. Use the same split "
            "of scenarios for both, or fit the method again."
        )


def differences(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Returns the entries that differ, each with both values; entries that one side lacks aren't compared."""
    return "; ".join(
        f"{name} {actual[name]!r:.80}, expected {value!r:.80}"
        for name, value in expected.items()
        if name in actual and actual[name] != value
    )


def write(folder: Path, description: Description, tensors: Tensors) -> None:
    """Writes a state; each file is written completely or not at all, and a mixture of two states can't be read."""
    write_tensors(folder / _TENSORS, tensors)
    write_whole(folder / DESCRIPTION, description.model_dump_json(indent=2) + "\n")


def read(folder: Path) -> tuple[Description, dict[str, torch.Tensor]]:
    """Reads a state; one that is incomplete or damaged is refused."""
    try:
        description = Description.model_validate_json(read_plain(folder / DESCRIPTION))
        if description.format != FORMAT:
            raise ValueError(f"it has format {description.format}, and this version reads {FORMAT}")
        tensors, _ = read_tensors(folder / _TENSORS)
        if digest(tensors) != description.tensors:
            raise ValueError(f"{_TENSORS} doesn't belong to {DESCRIPTION}")
    except (OSError, ValueError, SafetensorError) as error:
        raise StateError(
            f"{folder}: holds no state that can be read ({str(error).strip().splitlines()[0]}). Name a folder that "
            "'culture-tasks insertion fit … --output' wrote, or fit the method again."
        ) from None
    return description, tensors


def write_tensors(path: Path, tensors: Tensors, facts: Mapping[str, str] | None = None) -> None:
    """Writes a safetensors file with texts, or leaves the old one as it was."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as partial:
            ready = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(ready, partial, metadata=dict(facts or {}))
    except (OSError, SafetensorError) as error:
        raise CultureTasksError(
            f"insertion: {path} can't be written ({error}). Free the disk, and start the same command again."
        ) from error


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Returns the tensors, on the CPU, and the texts of a file."""
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118


def digest(tensors: Tensors) -> str:
    """Returns the SHA-256 of names, types, shapes and values, tensor by tensor, whatever their order."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        sha.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        sha.update(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
    return sha.hexdigest()


def identify(
    model: PreTrainedModel, processor: ProcessorMixin, *, source: str, options: Mapping[str, Any], version: int
) -> ModelIdentity:
    """Computes a model's identity, with one pass over its weights; ``version`` is that of our own code."""
    template, vocabulary = getattr(processor, "chat_template", None), value_key(processor.tokenizer.get_vocab())
    generation = _clean(model.generation_config.to_dict()) if model.generation_config else None
    kernels = getattr(model.config, "_attn_implementation", None)
    run = [generation, version, str(model.device.type), kernels]
    return _identity(model, [_clean(processor.to_dict()), template, vocabulary], source, options, run)


def identify_encoder(
    model: PreTrainedModel, vocabulary: Mapping[str, int], *, source: str, settings: Mapping[str, Any]
) -> ModelIdentity:
    """Computes the identity of a model of vectors; they depend on the settings too."""
    return _identity(model, value_key(dict(vocabulary)), source, _clean(settings), [str(model.device.type)])


def _identity(
    model: PreTrainedModel, processor: Any, source: str, options: Mapping[str, Any], run: Sequence[Any]
) -> ModelIdentity:
    import transformers

    kind, weights_digest, config = type(model).__name__, _weights_digest(model), _clean(model.config.to_dict())
    weights = value_key([kind, weights_digest, config, processor, dict(options)])[:32]
    parts = {
        "class": kind,
        "data type": str(model.dtype),
        "weights": weights_digest[:12],
        "configuration": value_key(config)[:12],
        "processor": value_key(processor)[:12],
        **options,
    }
    run_key = value_key([weights, *run, [torch.__version__, transformers.__version__]])
    return ModelIdentity(source=source, weights=weights, parts=parts, run=run_key[:32])


def value_key(value: Any) -> str:
    """Returns the SHA-256 of a value as JSON."""
    return text_key(json.dumps(value, sort_keys=True, default=str))


def text_key(text: str) -> str:
    """Returns the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _clean(settings: Any) -> Any:
    if isinstance(settings, Mapping):
        return {str(key): _clean(value) for key, value in settings.items() if key not in _INCIDENTAL}
    return [_clean(value) for value in settings] if isinstance(settings, list | tuple) else settings


def _weights_digest(model: PreTrainedModel) -> str:
    """Hashes one line per tensor: name, shape, type, the sum of all its bits read as integers, and some of them."""
    sha = hashlib.sha256()
    for name, tensor in sorted(model.named_parameters()):
        line = f"{name} {tuple(tensor.shape)} {tensor.dtype}"
        if not tensor.is_meta and tensor.numel():
            integers = tensor.detach().reshape(-1).view(_INTEGERS[tensor.element_size()])
            some = integers[:: max(1, integers.numel() // _SAMPLED)][:_SAMPLED].tolist()
            line = f"{line} {int(integers.sum(dtype=torch.int64))} {some}"
        sha.update(f"{line}\n".encode())
    return sha.hexdigest()
