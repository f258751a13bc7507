"""SERAC: a smaller model answers where the text of a request is in the scope of an edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field

from culture_tasks.insertion.core.edit_scopes import ScopeEncoder, SentenceEncoder, Subject, in_batches, stored_vectors
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.scoped_method import ScopedConfig, ScopedMethod
from culture_tasks.insertion.core.state import text_key
from culture_tasks.insertion.core.store import Store


class SeracConfig(ScopedConfig):
    """Options of SERAC, beside those of its training and its replacement model.

    Attributes:
        encoder: Model of sentence embeddings, from the Hub or a folder.
        max_text_length: Tokens of a text that the encoder reads.
    """

    encoder: str = "sentence-transformers/all-MiniLM-L6-v2"
    max_text_length: int = Field(default=512, ge=8)


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
        return TextScopes(SentenceEncoder(config.encoder, config.max_text_length, self.model.device, self.name))


class TextScopes(ScopeEncoder):
    """Sentence embeddings of edits and requests, whose images are ignored."""

    def __init__(self, sentences: SentenceEncoder) -> None:
        super().__init__()
        self.identity, self.width, self.parameters = sentences.identity, sentences.width, sentences.parameters
        self._sentences = sentences

    def encode(self, subjects: Sequence[Subject], store: Store, size: int, title: str = "") -> torch.Tensor:
        """Embeds each text once."""
        texts = {text_key(text): text for _, text in subjects}
        encode = in_batches(self._sentences.encode)
        vectors = stored_vectors(store, f"vector:{self.identity.run}", texts, encode, size, title)
        return torch.stack([vectors[text_key(text)] for _, text in subjects])
