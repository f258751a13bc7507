"""Options of MSCKE, with the paper's values as defaults (Table 5)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from culture_tasks.insertion.core.scoped_method import ScopedConfig

Fusion = Literal["dot", "concatenation"]


class MsckeConfig(ScopedConfig):
    """Options of MSCKE, beside those of its training and its replacement model.

    Attributes:
        encoder: CLIP model, from the Hub or a folder.
        max_text_length: Tokens of a text that the encoder reads, with those that begin and end it; CLIP has 77.
        fusion: How the vectors of image and text become one. ``concatenation`` is what MSCKE's published code
            computes for one request at a time, as in all runs of the paper; ``dot`` multiplies them.
    """

    encoder: str = "openai/clip-vit-large-patch14"
    max_text_length: int = Field(default=77, ge=3)
    fusion: Fusion = "concatenation"
