"""SERAC: a smaller model answers where the text of a request is in the scope of an edit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

import torch

from culture_tasks.insertion.core.edit_scopes import ScopeEncoder, StoredVectors, Subject, in_batches
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.progress import Progress
from culture_tasks.insertion.core.scoped_method import ScopedMethod
from culture_tasks.insertion.core.text_encoders import SentenceEncoder, make_encoder
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.methods.serac.config import SeracConfig


class SeracMethod(ScopedMethod):
    """Compares sentence embeddings: of an edit's question and answer, and of a request's question.

    The image is not looked at, nor the system prompt. So two requests with the same question about different images
    have the same score.
    """

    name: ClassVar[str] = "serac"
    config_class: ClassVar[type[MethodConfig]] = SeracConfig
    answers_version: ClassVar[int] = 1
    config: SeracConfig

    def _make_encoder(self) -> ScopeEncoder:
        config = self.config
        return TextScope(make_encoder(config.encoder, config.max_text_length, self.model.device, self.name))


class TextScope(ScopeEncoder):
    """Edits and requests as sentences.

    Args:
        encoder: The encoder of sentences.
    """

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self.identity = encoder.identity
        self.width = encoder.width
        self._vectors = StoredVectors[str](
            f"vector:{encoder.identity.run}",
            lambda text: hashlib.sha256(text.encode()).hexdigest(),
            in_batches(encoder.encode),
        )

    def vectors(self, subjects: Sequence[Subject]) -> torch.Tensor:
        """Returns the vectors of edits or requests, shape (subjects, width), float32, on the CPU."""
        return self._vectors.of([text for _, text in subjects])

    def prepare(self, subjects: Sequence[Subject], store: ValueStore, *, batch_size: int, progress: Progress) -> None:
        """Computes ahead, in batches, the embeddings of all texts."""
        texts = [text for _, text in subjects]
        self._vectors.prepare(texts, store, batch_size=batch_size, progress=progress, description="text embeddings")

    def parameter_count(self) -> int:
        """Returns the number of parameters that are loaded."""
        return self._encoder.parameter_count()
