"""CLIP's vectors of images and texts, and one vector for both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.identity import identify_encoder
from culture_tasks.insertion.queries import Picture

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


class ClipEncoder:
    """A frozen CLIP model, in float32.

    Args:
        name: Model on the Hub, or folder.
        max_text_length: Tokens of a text that are read, at most as many as the model has positions for.
        device: Where the model runs.

    Attributes:
        identity: Fingerprints of the model.
        width: Length of the vectors.

    Raises:
        SettingsError: If the model can't be loaded, or isn't one of images and texts.
    """

    def __init__(self, name: str, max_text_length: int, device: torch.device) -> None:
        from transformers import AutoModel, AutoProcessor

        try:
            self._processor = AutoProcessor.from_pretrained(name)
            self._model = AutoModel.from_pretrained(name, dtype=torch.float32).to(device).eval()
            self.width = int(self._model.config.projection_dim)
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
        self._max_text_length = max_text_length
        self.identity = identify_encoder(
            self._model,
            self._processor.tokenizer.get_vocab(),
            source=name,
            settings={"max_text_length": max_text_length, "images": self._processor.image_processor.to_dict()},
        )

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
        return self._vectors(self._model.get_text_features, inputs)

    def pictures(self, pictures: Sequence[Picture]) -> torch.Tensor:
        """Returns vectors of length 1, shape (pictures, width), float32, on the CPU.

        Raises:
            DataError: If an image can't be read.
        """
        images = [picture.load().convert("RGB") for picture in pictures]
        return self._vectors(
            self._model.get_image_features, self._processor.image_processor(images, return_tensors="pt")
        )

    def parameter_count(self) -> int:
        """Parameters that are loaded."""
        return sum(parameter.numel() for parameter in self._model.parameters())

    def _vectors(self, features: Any, inputs: Any) -> torch.Tensor:
        with torch.no_grad():
            found = features(**inputs.to(self._model.device))
        # transformers 5 returns an object with the projected vector as pooler_output, transformers 4 the vector itself.
        vectors = found if isinstance(found, torch.Tensor) else found.pooler_output
        return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu()
