"""MSCKE: a smaller model answers where image and text of a request are in the scope of an edit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

import torch

from culture_tasks.errors import DataError
from culture_tasks.insertion.edit_scopes import ScopeEncoder, StoredVectors, Subject, in_batches
from culture_tasks.insertion.insertion_method import MethodConfig
from culture_tasks.insertion.methods.mscke.clip_encoder import ClipEncoder, Fusion, fused
from culture_tasks.insertion.methods.mscke.config import MsckeConfig
from culture_tasks.insertion.progress import Progress
from culture_tasks.insertion.queries import Picture, Query
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
        prefix = f"vector:{encoder.identity.run}"
        self._texts = StoredVectors[str](
            f"{prefix}:text", lambda text: hashlib.sha256(text.encode()).hexdigest(), in_batches(encoder.texts)
        )
        self._images = StoredVectors[Picture](
            f"{prefix}:image", lambda picture: picture.key, in_batches(encoder.pictures)
        )

    def vectors(self, subjects: Sequence[Subject]) -> torch.Tensor:
        """Returns the vectors of edits or requests, shape (subjects, width), float32, on the CPU.

        Raises:
            DataError: If one has no image, or several.
        """
        images = self._images.of([_picture(query) for query, _ in subjects])
        return fused(images, self._texts.of([text for _, text in subjects]), self._fusion)

    def prepare(self, subjects: Sequence[Subject], store: ValueStore, *, batch_size: int, progress: Progress) -> None:
        """Computes ahead, in batches, the vectors of all images and texts."""
        texts, pictures = [text for _, text in subjects], [_picture(query) for query, _ in subjects]
        self._texts.prepare(texts, store, batch_size=batch_size, progress=progress, description="CLIP: texts")
        self._images.prepare(pictures, store, batch_size=batch_size, progress=progress, description="CLIP: images")

    def parameter_count(self) -> int:
        """Returns the number of parameters that are loaded."""
        return self._encoder.parameter_count()


def _picture(query: Query) -> Picture:
    pictures = query.pictures()
    if len(pictures) != 1:
        raise DataError(f"mscke: the request {query.question!r:.80} has {len(pictures)} images. Expected one.")
    return pictures[0]
