"""The scope of an edit: which requests an inserted sample is about, decided by comparing two vectors.

MCKI, SERAC (Mitchell et al., 2022) and MSCKE (Zeng et al., 2025) keep edits in a memory and compare each request with
them. In SERAC and MSCKE a frozen encoder turns both into vectors; a linear map of these, which begins as the identity,
is learned. With the mapped vectors a of an edit and b of a request the scope score is exp(-||a - b||^2), in (0, 1]: 1
for equal vectors, 0.5 at a squared distance of ln 2.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import torch

from culture_tasks.insertion.core.adapter import explained
from culture_tasks.insertion.core.identity import ModelIdentity, identify_encoder
from culture_tasks.insertion.core.progress import Progress, silent
from culture_tasks.insertion.core.queries import Insertion, Query
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.text import tokens

Input = TypeVar("Input")

Subject = tuple[Query, str]
"""A request or an edit, as an encoder compares it: a query for its image, and a text."""

Encode = Callable[[Sequence[Input], int], Iterator[tuple[int, torch.Tensor]]]
"""Computes vectors of inputs in batches of a size; yields the place of an input with its vector, float32."""

_log = logging.getLogger(__name__)

LEXICAL = "lexical"
_LEXICAL_VERSION = "words in bins, 1"  # raise it whenever the same words are counted in another way
_SMALLEST = 1e-12  # of a squared distance: the loss of equal vectors that should differ stays finite


def edit_text(edit: Insertion) -> str:
    """Returns an inserted sample as text: its question and its answer."""
    return f"{edit.query.question} {edit.answer}"


def edit_subject(edit: Insertion) -> Subject:
    """Returns an inserted sample as an encoder compares it."""
    return edit.query, edit_text(edit)


def request_subject(query: Query) -> Subject:
    """Returns a request as an encoder compares it: by its question alone."""
    return query, query.question


def squared_distances(edits: torch.Tensor, request: torch.Tensor) -> torch.Tensor:
    """Returns ||a - b||^2 of a request b, or of several, and an edit a, or several: shapes (…, width) to (…)."""
    return (request - edits).square().sum(-1)


def scope_loss(distances: torch.Tensor, in_scope: torch.Tensor) -> torch.Tensor:
    """Computes the mean binary cross-entropy of scope scores s = exp(-d), at least 0; shapes are (requests,).

    A request in scope costs -log s = d, one out of scope -log(1 - s).
    """
    outside = -torch.log(-torch.expm1(-distances.clamp(min=_SMALLEST)))
    return torch.where(in_scope, distances, outside).mean()


class Match(NamedTuple):
    """The edit nearest to a request: its place in the order of insertion, from 0, and its score, a scalar."""

    place: int
    score: torch.Tensor
    edit: Insertion


StoredEdit = tuple[torch.Tensor, Insertion]
"""An inserted sample with its vector, shape (width,)."""


def nearest_edit(
    memory: Sequence[StoredEdit], request: torch.Tensor, scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> Match:
    """Returns the edit with the highest score; of equal ones the first inserted. The memory must not be empty.

    ``scores`` compares the vectors of all edits, shape (edits, width), with that of a request, shape (width,): it
    returns a score of each edit, shape (edits,), which is higher the nearer it is.
    """
    values = scores(torch.stack([vector for vector, _ in memory]), request)
    place = max(range(len(memory)), key=values.tolist().__getitem__)
    return Match(place, values[place], memory[place][1])


class StoredVectors(Generic[Input]):
    """Vectors of inputs, each computed once, in this run and all others that share the store.

    Keys in the store begin with ``prefix``: what the vectors are, and the fingerprint of the encoder and of the place
    where it runs.
    """

    def __init__(
        self,
        prefix: str,
        key_of: Callable[[Input], str],
        encode: Encode[Input],
        *,
        shape: tuple[int, ...] = (-1,),
        description: str = "vectors",
    ) -> None:
        self._prefix, self._key_of, self._encode, self._shape = prefix, key_of, encode, shape
        self._description = description
        self._vectors: dict[str, torch.Tensor] = {}

    def prepare(
        self, inputs: Iterable[Input], store: ValueStore, *, batch_size: int, progress: Progress = silent
    ) -> None:
        """Computes vectors in batches; each is committed to the store as soon as it is there."""
        missing = self._missing(inputs)
        for key in list(missing):
            content = store.get(f"{self._prefix}:{key}")
            if content is not None:
                self._vectors[key] = torch.frombuffer(bytearray(content), dtype=torch.float32).reshape(self._shape)
                del missing[key]
        for key, vector in progress(self._new_vectors(missing, batch_size), self._description, total=len(missing)):
            store.put(f"{self._prefix}:{key}", vector.numpy().tobytes())

    def vectors(self, inputs: Sequence[Input]) -> torch.Tensor:
        """Returns the vectors of inputs, shape (inputs, *shape); missing ones are computed now."""
        missing = self._missing(inputs)
        for _ in self._new_vectors(missing, len(missing)):
            pass
        return torch.stack([self._vectors[self._key_of(item)] for item in inputs])

    def get(self, item: Input) -> torch.Tensor | None:
        """Returns the vector of an input if it is there."""
        return self._vectors.get(self._key_of(item))

    def _missing(self, inputs: Iterable[Input]) -> dict[str, Input]:
        pairs = ((self._key_of(item), item) for item in inputs)
        return {key: item for key, item in pairs if key not in self._vectors}

    def _new_vectors(self, missing: dict[str, Input], batch_size: int) -> Iterator[tuple[str, torch.Tensor]]:
        keys = list(missing)
        for place, vector in self._encode(list(missing.values()), batch_size) if keys else ():
            self._vectors[keys[place]] = vector.cpu()
            yield keys[place], self._vectors[keys[place]]


def in_batches(encode: Callable[[Sequence[Input]], torch.Tensor]) -> Encode[Input]:
    """Returns an encoder of batches as one that takes any number of inputs."""

    def encode_all(inputs: Sequence[Input], batch_size: int) -> Iterator[tuple[int, torch.Tensor]]:
        for start in range(0, len(inputs), batch_size):
            yield from enumerate(encode(inputs[start : start + batch_size]), start)

    return encode_all


@dataclass(frozen=True, slots=True)
class ScopeEncoder:
    """A frozen encoder of edits and requests, whose vectors of length ``width`` are fused from those of their parts."""

    identity: ModelIdentity
    width: int
    parameters: int
    parts: Sequence[StoredVectors[Subject]]
    fused: Callable[..., torch.Tensor]

    def vectors(self, subjects: Sequence[Subject]) -> torch.Tensor:
        """Returns the vectors of edits or requests, shape (subjects, width), float32, on the CPU."""
        return self.fused(*(part.vectors(subjects) for part in self.parts))

    def prepare(self, subjects: Sequence[Subject], store: ValueStore, *, batch_size: int, progress: Progress) -> None:
        """Computes ahead, in batches, the vectors of their parts."""
        for part in self.parts:
            part.prepare(subjects, store, batch_size=batch_size, progress=progress)


class TransformerEncoder:
    """Mean of the last hidden states over a sentence's tokens, as the paper's all-MiniLM-L6-v2 takes it."""

    def __init__(self, name: str, max_text_length: int, device: torch.device, method: str) -> None:
        from transformers import AutoModel, AutoTokenizer

        advice = (
            "Download one and name its folder with encoder=DIR, or "
            f"choose encoder={LEXICAL}, which counts words and is not the paper's."
        )
        with explained(f"{method}: the sentence encoder {name!r} can't be used", advice):
            self._tokenizer = AutoTokenizer.from_pretrained(name, padding_side="right", trust_remote_code=False)
            self._model = (
                AutoModel.from_pretrained(name, dtype=torch.float32, trust_remote_code=False).to(device).eval()
            )
            if not hasattr(self._model.config, "hidden_size"):
                raise ValueError(f"{type(self._model).__name__} isn't a model of texts alone")
        self._max_text_length = max_text_length
        self.width, self.parameters = int(self._model.config.hidden_size), int(self._model.num_parameters())
        settings = {"max_text_length": max_text_length}
        self.identity = identify_encoder(self._model, self._tokenizer.get_vocab(), source=name, settings=settings)

    def encode(self, sentences: Sequence[str]) -> torch.Tensor:
        """Returns vectors of length 1, shape (sentences, width), float32, on the CPU."""
        batch = self._tokenizer(
            list(sentences), padding=True, truncation=True, max_length=self._max_text_length, return_tensors="pt"
        ).to(self._model.device)
        with torch.no_grad():
            states = self._model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None].to(states.dtype)
        means = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return torch.nn.functional.normalize(means.float(), dim=-1).cpu()


class LexicalEncoder:
    """Counts words in hashed bins: no model and no network, in any language, and not the paper's."""

    identity = ModelIdentity(source=LEXICAL, weights=_LEXICAL_VERSION, run=_LEXICAL_VERSION)
    width, parameters = 512, 0

    def encode(self, sentences: Sequence[str]) -> torch.Tensor:
        """Returns vectors of length 1, shape (sentences, width), float32, on the CPU."""
        counts = torch.zeros(len(sentences), self.width)
        for row, sentence in enumerate(sentences):
            for token in tokens(sentence):
                counts[row, int.from_bytes(hashlib.sha256(token.encode()).digest()[:4]) % self.width] += 1
        return torch.nn.functional.normalize(counts, dim=-1)


SentenceEncoder = TransformerEncoder | LexicalEncoder
"""Maps sentences to vectors whose inner product is their similarity."""


def make_encoder(name: str, max_text_length: int, device: torch.device, method: str) -> SentenceEncoder:
    """Makes the encoder that a method's options name, and warns if it is not a model."""
    if name == LEXICAL:
        _log.warning("%s: encoder=%s counts words instead of the paper's sentence embeddings", method, LEXICAL)
        return LexicalEncoder()
    return TransformerEncoder(name, max_text_length, device, method)
