"""The scope of an edit: which requests an inserted sample is about, decided by comparing two vectors.

MCKI, SERAC (Mitchell et al., 2022) and MSCKE (Zeng et al., 2025) keep edits in a memory and compare each request with
them. In SERAC and MSCKE a frozen encoder turns both into vectors; a linear map of these, which begins as the identity,
is learned. With the mapped vectors a of an edit and b of a request the scope score is exp(-||a - b||^2), in (0, 1]: 1
for equal vectors, 0.5 at a squared distance of ln 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import torch

from culture_tasks.insertion.core.adapter import Batch, explained
from culture_tasks.insertion.core.devices import shown
from culture_tasks.insertion.core.requests import Insertion, Request
from culture_tasks.insertion.core.state import ModelIdentity, identify_encoder
from culture_tasks.insertion.core.store import Store

Input = TypeVar("Input")

Subject = tuple[Request, str]
"""A request or an edit, as an encoder compares it: a request for its image, and a text."""

StoredEdit = tuple[torch.Tensor, Insertion]
"""An inserted sample with its vector, shape (width,)."""

_SMALLEST = 1e-12  # of a squared distance: the loss of equal vectors that should differ stays finite


def edit_text(edit: Insertion) -> str:
    """Returns an inserted sample as text: its question and its answer."""
    return f"{edit.request.question} {edit.answer}"


def edit_subject(edit: Insertion) -> Subject:
    """Returns an inserted sample as an encoder compares it."""
    return edit.request, edit_text(edit)


def request_subject(request: Request) -> Subject:
    """Returns a request as an encoder compares it: by its question alone."""
    return request, request.question


def squared_distances(edits: torch.Tensor, request: torch.Tensor) -> torch.Tensor:
    """Returns ||a - b||^2 of a request b, or of several, and an edit a, or several: shapes (…, width) to (…)."""
    return (request - edits).square().sum(-1)


def scope_loss(distances: torch.Tensor, in_scope: torch.Tensor) -> torch.Tensor:
    """Computes the mean binary cross-entropy of scope scores s = exp(-d), at least 0; shapes are (requests,).

    A request in scope costs -log s = d, one out of scope -log(1 - s).
    """
    outside = -torch.log(-torch.expm1(-distances.clamp(min=_SMALLEST)))
    return torch.where(in_scope, distances, outside).mean()


def nearest_edit(
    memory: Sequence[StoredEdit], request: torch.Tensor, scores: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> tuple[int, torch.Tensor]:
    """Returns the place of the edit with the highest score, from 0, and that score; of equal ones the first inserted.

    ``scores`` compares the vectors of all edits, at least one, (edits, width), with that of a request, (width,): it
    returns a score of each edit, (edits,), which is higher the nearer it is.
    """
    values = scores(torch.stack([vector for vector, _ in memory]), request)
    place = max(range(len(memory)), key=values.tolist().__getitem__)
    return place, values[place]


def stored_vectors(
    store: Store,
    prefix: str,
    inputs: Mapping[str, Input],
    encode: Callable[[Sequence[Input], int], Iterable[Batch[torch.Tensor]]],
    size: int,
    title: str = "",
) -> dict[str, torch.Tensor]:
    """Returns the vectors of inputs by their keys, float32: from the store, or computed and committed in batches.

    The prefix of a key in the store says what the vectors are, and the fingerprint of the encoder and of the place
    where it runs. With a title the batches are shown.
    """
    stored = {key: store.get(f"{prefix}:{key}") for key in inputs}
    vectors = {
        key: torch.frombuffer(bytearray(value), dtype=torch.float32)
        for key, value in stored.items()
        if value is not None
    }
    missing = [key for key in inputs if key not in vectors]
    batches = encode([inputs[key] for key in missing], size) if missing else ()
    for batch in shown(batches, title, total=-(-len(missing) // size)):
        new = {missing[place]: vector.cpu() for place, vector in batch}
        store.put({f"{prefix}:{key}": vector.numpy().tobytes() for key, vector in new.items()})
        vectors |= new
    return vectors


def in_batches(
    encode: Callable[[Sequence[Input]], torch.Tensor],
) -> Callable[[Sequence[Input], int], Iterator[Batch[torch.Tensor]]]:
    """Returns an encoder of batches as one that takes any number of inputs, for :func:`stored_vectors`."""

    def encode_all(inputs: Sequence[Input], size: int) -> Iterator[Batch[torch.Tensor]]:
        for start in range(0, len(inputs), size):
            yield list(enumerate(encode(inputs[start : start + size]), start))

    return encode_all


class ScopeEncoder(ABC):
    """A frozen encoder of edits and requests, whose vectors have the length ``width``; those prepared last are kept."""

    identity: ModelIdentity
    width: int
    parameters: int

    def __init__(self) -> None:
        self._prepared: dict[Subject, torch.Tensor] = {}

    @abstractmethod
    def encode(self, subjects: Sequence[Subject], store: Store, size: int, title: str = "") -> torch.Tensor:
        """Returns vectors, shape (subjects, width), float32, on the CPU; what isn't stored is computed in batches."""

    def prepare(self, subjects: Sequence[Subject], store: Store, size: int, title: str = "") -> None:
        """Computes vectors ahead, and forgets the others."""
        vectors = self.encode(subjects, store, size, title) if subjects else ()
        self._prepared = dict(zip(subjects, vectors, strict=True))

    def vectors(self, subjects: Sequence[Subject]) -> torch.Tensor:
        """Returns the vectors of edits or requests; those that weren't prepared are computed now."""
        missing = [subject for subject in subjects if subject not in self._prepared]
        found = dict(zip(missing, self.encode(missing, Store(None), len(missing)), strict=True)) if missing else {}
        return torch.stack([found.get(subject, self._prepared.get(subject)) for subject in subjects])


class SentenceEncoder:
    """Mean of the last hidden states over a sentence's tokens, as the paper's all-MiniLM-L6-v2 takes it."""

    def __init__(self, name: str, max_text_length: int, device: torch.device, method: str) -> None:
        from transformers import AutoModel, AutoTokenizer

        advice = "Download one, such as sentence-transformers/all-MiniLM-L6-v2, and name its folder with encoder=DIR."
        with explained(f"{method}: the sentence encoder {name!r} can't be used", advice):
            self._tokenizer = AutoTokenizer.from_pretrained(name, padding_side="right", trust_remote_code=False)
            model = AutoModel.from_pretrained(name, dtype=torch.float32, trust_remote_code=False)
            if not hasattr(model.config, "hidden_size"):
                raise ValueError(f"{type(model).__name__} isn't a model of texts alone")
        self._model, self._max_text_length = model.to(device).eval(), max_text_length
        self.width, self.parameters = int(model.config.hidden_size), int(model.num_parameters())
        settings = {"max_text_length": max_text_length}
        self.identity = identify_encoder(model, self._tokenizer.get_vocab(), source=name, settings=settings)

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
