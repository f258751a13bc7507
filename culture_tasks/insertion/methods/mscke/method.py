"""MSCKE: a smaller model answers where image and text of a request are in the scope of an edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field

from culture_tasks.errors import DataError, SettingsError
from culture_tasks.insertion.core.edit_scopes import Ingredient, ScopeEncoder, StoredVectors, Subject, in_batches
from culture_tasks.insertion.core.identity import identify_encoder, text_key
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.queries import QueryImage
from culture_tasks.insertion.core.scoped_method import ScopedConfig, ScopedMethod

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
        return ClipEncoder(config.encoder, config.max_text_length, self.model.device).scopes(config.fusion)


def fused(texts: torch.Tensor, images: torch.Tensor, fusion: Fusion) -> torch.Tensor:
    """Makes one vector of a text's and an image's, all of length 1, (..., width), or (..., 2 * width) if concatenated.

    ``dot`` multiplies them element by element. The product of two vectors of length 1 is so short that no distance
    between two of them passes for large, so it gets length 1 again; the concatenation does too.
    """
    both = images * texts if fusion == "dot" else torch.cat([texts, images], dim=-1)
    return torch.nn.functional.normalize(both, dim=-1)


class ClipEncoder:
    """A frozen CLIP model in float32."""

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
        settings = {"max_text_length": max_text_length, "images": self._processor.image_processor.to_dict()}
        words = self._processor.tokenizer.get_vocab()
        self.identity = identify_encoder(self._model, words, source=name, settings=settings)

    def scopes(self, fusion: Fusion) -> ScopeEncoder:
        """Returns the encoder of edits and requests as an image with a text."""
        prefix, width = f"vector:{self.identity.run}", self.width if fusion == "dot" else 2 * self.width
        texts = StoredVectors[str](f"{prefix}:text", text_key, in_batches(self.texts))
        images = StoredVectors[QueryImage](f"{prefix}:image", lambda picture: picture.key, in_batches(self._pictures))
        ingredients = [
            Ingredient(texts, lambda subject: subject[1], "CLIP: texts"),
            Ingredient(images, _picture, "CLIP: images"),
        ]
        return ScopeEncoder(
            self.identity, width, int(self._model.num_parameters()), ingredients, partial(fused, fusion=fusion)
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


def _picture(subject: Subject) -> QueryImage:
    query, _ = subject
    pictures = query.pictures()
    if len(pictures) != 1:
        raise DataError(f"mscke: the request {query.question!r:.80} has {len(pictures)} images. Expected one.")
    return pictures[0]
