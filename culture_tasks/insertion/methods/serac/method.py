"""SERAC: a smaller model answers where the text of a request is in the scope of an edit."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from culture_tasks.insertion.core.edit_scopes import ScopeEncoder, StoredVectors, Subject, in_batches, make_encoder
from culture_tasks.insertion.core.identity import text_key
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.scoped_method import ScopedConfig, ScopedMethod


class SeracConfig(ScopedConfig):
    """Options of SERAC, beside those of its training and its replacement model.

    Attributes:
        encoder: Model of sentence embeddings, from the Hub or a folder; ``lexical`` needs none and is not the paper's.
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
        encoder = make_encoder(config.encoder, config.max_text_length, self.model.device, self.name)
        texts = StoredVectors[Subject](
            f"vector:{encoder.identity.run}",
            lambda subject: text_key(subject[1]),
            in_batches(lambda subjects: encoder.encode([text for _, text in subjects])),
            description="text embeddings",
        )
        return ScopeEncoder(encoder.identity, encoder.width, encoder.parameters, [texts], lambda vectors: vectors)
