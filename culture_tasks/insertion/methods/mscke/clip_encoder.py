"""CLIP's vectors of images and texts, and one vector for both."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from culture_tasks.errors import DataError, SettingsError
from culture_tasks.insertion.core.edit_scopes import ScopeEncoder, StoredVectors, Subject, in_batches
from culture_tasks.insertion.core.identity import identify_encoder
from culture_tasks.insertion.core.progress import Progress
from culture_tasks.insertion.core.queries import Query, QueryImage
from culture_tasks.insertion.core.value_store import ValueStore

Fusion = Literal["dot", "concatenation"]


def fused(images: torch.Tensor, texts: torch.Tensor, fusion: Fusion) -> torch.Tensor:
    """Makes one vector of an image's and a text's.

    ``dot`` multiplies them element by element. The product of two vectors of length 1 is so short that no distance
    between two of them passes for large, so it gets length 1 again; the concatenation does too.

    Args:
        images: Vectors of length 1, shape (..., width).
        texts: Vectors of length 1, of the same shape.
        fusion: How.

    Returns:
        Vectors of length 1, shape (..., width), or (..., 2 * width) for ``concatenation``.
    """
    both = images * texts if fusion == "dot" else torch.cat([texts, images], dim=-1)
    return torch.nn.functional.normalize(both, dim=-1)


class ClipScope(ScopeEncoder):
    """Edits and requests as an image with a text, encoded by a frozen CLIP model in float32.

    Args:
        name: Model on the Hub, or folder.
        max_text_length: Tokens of a text that are read, at most as many as the model has positions for.
        fusion: How two vectors become one.
        device: Where the model runs.

    Raises:
        SettingsError: If the model can't be loaded, or isn't one of images and texts.
    """

    def __init__(self, name: str, max_text_length: int, fusion: Fusion, device: torch.device) -> None:
        from transformers import AutoModel, AutoProcessor

        try:
            self._processor = AutoProcessor.from_pretrained(name)
            self._model = AutoModel.from_pretrained(name, dtype=torch.float32).to(device).eval()
            width = int(self._model.config.projection_dim)
            positions = int(self._model.config.text_config.max_position_embeddings)
        except (OSError, ValueError, AttributeError) as error:
            raise SettingsError(
                f"mscke: encoder={name!r} can't be loaded as a CLIP model ({str(error).strip().splitlines()[0]:.200}). "
                "Download one, such as openai/clip-vit-large-patch14, and name its folder with encoder=DIR."
            ) from error
        if max_text_length > positions:
            raise SettingsError(
                f"mscke: max_text_length={max_text_length}, but {name!r} reads at most {positions} tokens. Lower it."
            )
        self._max_text_length, self._fusion = max_text_length, fusion
        self.width = width if fusion == "dot" else 2 * width
        self.identity = identify_encoder(
            self._model,
            self._processor.tokenizer.get_vocab(),
            source=name,
            settings={"max_text_length": max_text_length, "images": self._processor.image_processor.to_dict()},
        )
        prefix = f"vector:{self.identity.run}"
        self._texts = StoredVectors[str](
            f"{prefix}:text", lambda text: hashlib.sha256(text.encode()).hexdigest(), in_batches(self.texts)
        )
        self._images = StoredVectors[QueryImage](
            f"{prefix}:image", lambda picture: picture.key, in_batches(self._pictures)
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
        return int(self._model.num_parameters())

    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        """Returns vectors of length 1, shape (texts, width), float32, on the CPU; long texts are cut off."""
        inputs = self._processor.tokenizer(
            list(texts),
            padding=True,
            padding_side="right",
            truncation=True,
            max_length=self._max_text_length,
            return_tensors="pt",
        )
        return self._normalized(self._model.get_text_features, inputs)

    def _pictures(self, pictures: Sequence[QueryImage]) -> torch.Tensor:
        images = [picture.load().convert("RGB") for picture in pictures]
        inputs = self._processor.image_processor(images, return_tensors="pt")
        return self._normalized(self._model.get_image_features, inputs)

    def _normalized(self, features: Callable[..., Any], inputs: Any) -> torch.Tensor:
        with torch.no_grad():
            output = features(**inputs.to(self._model.device))
        # transformers 5 returns an object with the projected vector as pooler_output, transformers 4 the vector itself.
        vectors = output if isinstance(output, torch.Tensor) else output.pooler_output
        return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu()


def _picture(query: Query) -> QueryImage:
    pictures = query.pictures()
    if len(pictures) != 1:
        raise DataError(f"mscke: the request {query.question!r:.80} has {len(pictures)} images. Expected one.")
    return pictures[0]
