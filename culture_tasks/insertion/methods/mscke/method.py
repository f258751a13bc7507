"""MSCKE: a smaller model answers where image and text of a request are in the scope of an edit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

import torch

from culture_tasks.errors import DataError
from culture_tasks.insertion.edit_scopes import KeptVectors, ScopeEncoder, edit_text
from culture_tasks.insertion.insertion_method import MethodConfig
from culture_tasks.insertion.methods.mscke.clip_encoder import ClipEncoder, Fusion, fused
from culture_tasks.insertion.methods.mscke.config import MsckeConfig
from culture_tasks.insertion.progress import Progress
from culture_tasks.insertion.queries import Insertion, Picture, Query
from culture_tasks.insertion.scoped_method import ScopedMethod
from culture_tasks.insertion.value_store import ValueStore


class MsckeMethod(ScopedMethod):
    """Compares CLIP's vectors: of an edit's image with its question and answer, and of a request's with its question.

    The system prompt is not looked at.
    """

    name: ClassVar[str] = "mscke"
    config_class: ClassVar[type[MethodConfig]] = MsckeConfig
    answers_version: ClassVar[int] = 2
    config: MsckeConfig

    def _make_encoder(self) -> ScopeEncoder:
        config = self.config
        return ImageTextScope(ClipEncoder(config.encoder, config.max_text_length, self.model.device), config.fusion)


class ImageTextScope(ScopeEncoder):
    """Edits and requests as an image with a text.

    Args:
        encoder: The encoder of both.
        fusion: How two vectors become one.
    """

    def __init__(self, encoder: ClipEncoder, fusion: Fusion) -> None:
        self._encoder = encoder
        self._fusion = fusion
        self.identity = encoder.identity
        self.width = encoder.width if fusion == "dot" else 2 * encoder.width
        run = encoder.identity.run
        self._texts = KeptVectors[str](
            run, lambda text: f"text:{hashlib.sha256(text.encode()).hexdigest()}", encoder.texts
        )
        self._images = KeptVectors[Picture](run, lambda picture: f"image:{picture.key}", encoder.pictures)

    def edits(self, edits: Sequence[Insertion]) -> torch.Tensor:
        """Returns the vectors of inserted samples, shape (edits, width), float32, on the CPU."""
        return self._vectors([edit.query for edit in edits], [edit_text(edit) for edit in edits])

    def requests(self, requests: Sequence[Query]) -> torch.Tensor:
        """Returns the vectors of requests, shape (requests, width), float32, on the CPU.

        Raises:
            DataError: If one has no image, or several.
        """
        return self._vectors(requests, [query.question for query in requests])

    def prepare(
        self,
        requests: Sequence[Query],
        edits: Sequence[Insertion],
        kept: ValueStore,
        *,
        batch_size: int,
        progress: Progress,
    ) -> None:
        """Computes ahead, in batches, the vectors of all images and texts."""
        texts = [*(query.question for query in requests), *(edit_text(edit) for edit in edits)]
        pictures = [_picture(query) for query in (*requests, *(edit.query for edit in edits))]
        self._texts.prepare(texts, kept, batch_size=batch_size, progress=progress, description="CLIP: texts")
        self._images.prepare(pictures, kept, batch_size=batch_size, progress=progress, description="CLIP: images")

    def parameter_count(self) -> int:
        """Returns the number of parameters that are loaded."""
        return self._encoder.parameter_count()

    def _vectors(self, queries: Sequence[Query], texts: Sequence[str]) -> torch.Tensor:
        images = self._images.of([_picture(query) for query in queries])
        return fused(images, self._texts.of(texts), self._fusion)


def _picture(query: Query) -> Picture:
    pictures = query.pictures()
    if len(pictures) != 1:
        raise DataError(f"mscke: the request {query.question!r:.80} has {len(pictures)} images. Needed is one.")
    return pictures[0]
