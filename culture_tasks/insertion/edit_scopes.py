"""The scope of an edit: which requests an inserted sample is about, decided by the distance of two vectors.

SERAC (Mitchell et al., 2022) and MSCKE (Zeng et al., 2025) keep edits in a memory and compare each request with them.
An encoder that stays frozen turns both into vectors; a linear map of these, which begins as the identity, is learned.
With the mapped vectors a of an edit and b of a request the scope score is exp(-||a - b||^2), in (0, 1]: 1 for equal
vectors, 0.5 at a squared distance of ln 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import nn

from culture_tasks.insertion.identity import ModelIdentity
from culture_tasks.insertion.progress import Progress, silent
from culture_tasks.insertion.queries import Insertion, Query
from culture_tasks.insertion.value_store import ValueStore

Input = TypeVar("Input")

_SMALLEST = 1e-12  # of a squared distance: the loss of equal vectors that should differ stays finite


def edit_text(edit: Insertion) -> str:
    """Returns an inserted sample as text: its question and its answer."""
    return f"{edit.query.question} {edit.answer}"


def squared_distances(edits: torch.Tensor, requests: torch.Tensor) -> torch.Tensor:
    """Returns ||a - b||^2 of each request b and edit a.

    Args:
        edits: Shape (edits, width).
        requests: Shape (requests, width).

    Returns:
        Shape (requests, edits).
    """
    return (requests[:, None] - edits[None]).square().sum(-1)


def scope_loss(distances: torch.Tensor, in_scope: torch.Tensor) -> torch.Tensor:
    """Computes the binary cross-entropy of scope scores s = exp(-d), the mean over requests.

    A request in scope costs -log s = d, one out of scope -log(1 - s).

    Args:
        distances: Squared distances d of requests and an edit, shape (requests,).
        in_scope: Whether each request is in the edit's scope, shape (requests,).

    Returns:
        The loss, a scalar, at least 0.
    """
    outside = -torch.log(-torch.expm1(-distances.clamp(min=_SMALLEST)))
    return torch.where(in_scope, distances, outside).mean()


class ScopeEncoder(ABC):
    """A frozen encoder of edits and requests.

    Attributes:
        identity: Fingerprints of the model.
        width: Length of the vectors.
    """

    identity: ModelIdentity
    width: int

    @abstractmethod
    def edits(self, edits: Sequence[Insertion]) -> torch.Tensor:
        """Returns the vectors of inserted samples, shape (edits, width), float32, on the CPU."""

    @abstractmethod
    def requests(self, requests: Sequence[Query]) -> torch.Tensor:
        """Returns the vectors of requests, shape (requests, width), float32, on the CPU."""

    @abstractmethod
    def prepare(
        self,
        requests: Sequence[Query],
        edits: Sequence[Insertion],
        kept: ValueStore,
        *,
        batch_size: int,
        progress: Progress,
    ) -> None:
        """Computes ahead, in batches, what the vectors of these are made of."""

    @abstractmethod
    def parameter_count(self) -> int:
        """Returns the number of parameters that are loaded."""


class ScopeClassifier(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """The linear map of a frozen encoder's vectors, without a bias, which would cancel out in distances.

    Args:
        width: Length of the vectors.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.projection = nn.Parameter(torch.eye(width))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Maps vectors, shape (..., width)."""
        return vectors @ self.projection.T


@dataclass(frozen=True, slots=True)
class Match:
    """The edit nearest to a request.

    Attributes:
        place: Its place in the order of insertion, from 0.
        score: Its scope score, in [0, 1].
        edit: The inserted sample.
    """

    place: int
    score: float
    edit: Insertion


class EditMemory:
    """Inserted samples with their mapped vectors."""

    def __init__(self) -> None:
        self._edits: list[Insertion] = []
        self._vectors: list[torch.Tensor] = []

    def __len__(self) -> int:
        return len(self._edits)

    def write(self, vector: torch.Tensor, edit: Insertion) -> None:
        """Stores a sample; nothing is replaced, so the same sample may be stored twice."""
        self._vectors.append(vector)
        self._edits.append(edit)

    def nearest(self, request: torch.Tensor) -> Match:
        """Returns the edit with the highest scope score; of equal ones the first inserted.

        Args:
            request: The mapped vector of a request, shape (width,).

        Raises:
            LookupError: If the memory is empty.
        """
        if not self._edits:
            raise LookupError("insertion: the memory of edits is empty. Insert a sample first.")
        distances = squared_distances(torch.stack(self._vectors), request[None])[0]
        place = min(range(len(self._edits)), key=distances.tolist().__getitem__)
        return Match(place, float(torch.exp(-distances[place])), self._edits[place])

    def clear(self) -> None:
        """Forgets all samples."""
        self._edits.clear()
        self._vectors.clear()


class KeptVectors(Generic[Input]):
    """Vectors of inputs, each computed once, in this run and all others that share the store.

    Args:
        encoder: Fingerprint of the encoder and of the place where it runs.
        key_of: Returns the key of an input.
        encode: Turns inputs into float32 vectors on the CPU, shape (inputs, width).
    """

    def __init__(
        self, encoder: str, key_of: Callable[[Input], str], encode: Callable[[Sequence[Input]], torch.Tensor]
    ) -> None:
        self._encoder = encoder
        self._key_of = key_of
        self._encode = encode
        self._found: dict[str, torch.Tensor] = {}

    def prepare(
        self,
        inputs: Iterable[Input],
        kept: ValueStore,
        *,
        batch_size: int,
        progress: Progress = silent,
        description: str = "vectors",
    ) -> None:
        """Computes vectors in batches; each is committed to the store as soon as it is there."""
        missing = [(key, each) for key, each in self._missing(inputs).items() if not self._read(key, kept)]
        batches = [missing[start : start + batch_size] for start in range(0, len(missing), batch_size)]
        for batch in progress(batches, description):
            for (key, _), vector in zip(batch, self._encode([each for _, each in batch]), strict=True):
                kept.put(self._stored(key), vector.numpy().tobytes())
                self._found[key] = vector

    def of(self, inputs: Sequence[Input]) -> torch.Tensor:
        """Returns the vectors of inputs, shape (inputs, width); what wasn't prepared is computed now."""
        missing = self._missing(inputs)
        if missing:
            self._found.update(zip(missing, self._encode(list(missing.values())), strict=True))
        return torch.stack([self._found[self._key_of(each)] for each in inputs])

    def _missing(self, inputs: Iterable[Input]) -> dict[str, Input]:
        keyed = ((self._key_of(each), each) for each in inputs)
        return {key: each for key, each in keyed if key not in self._found}

    def _read(self, key: str, kept: ValueStore) -> bool:
        content = kept.get(self._stored(key))
        if content is not None:
            self._found[key] = torch.from_numpy(np.frombuffer(content, dtype=np.float32).copy())
        return content is not None

    def _stored(self, key: str) -> str:
        return f"vector:{self._encoder}:{key}"
