"""Options of IKE, with the paper's values as defaults (Table 5)."""

from __future__ import annotations

from pydantic import Field

from culture_tasks.insertion.core.insertion_method import MethodConfig


class IkeConfig(MethodConfig):
    """Options of IKE.

    Attributes:
        demonstrations: Retrieved demonstrations that a request is shown.
        encoder: Model of sentence embeddings, from the Hub or a folder; ``lexical`` needs none and is not the paper's.
        max_text_length: Tokens of a sentence that the encoder reads.
        batch_size: Sentences that are encoded together.
    """

    demonstrations: int = Field(default=16, ge=0)
    encoder: str = "sentence-transformers/all-MiniLM-L6-v2"
    max_text_length: int = Field(default=512, ge=8)
    batch_size: int = Field(default=64, ge=1)
