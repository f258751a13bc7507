"""Options of SERAC, with the paper's values as defaults (Table 5)."""

from __future__ import annotations

from pydantic import Field

from culture_tasks.insertion.core.scoped_method import ScopedConfig


class SeracConfig(ScopedConfig):
    """Options of SERAC, beside those of its training and its replacement model.

    Attributes:
        encoder: Model of sentence embeddings, from the Hub or a folder; ``lexical`` needs none and is not the paper's.
        max_text_length: Tokens of a text that the encoder reads.
    """

    encoder: str = "sentence-transformers/all-MiniLM-L6-v2"
    max_text_length: int = Field(default=512, ge=8)
