"""MSCKE: a smaller model answers where image and text of a request are in the scope of an edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field

from culture_tasks.errors import DataError, SettingsError
from culture_tasks.insertion.core.adapter import explained
from culture_tasks.insertion.core.devices import read_ahead
from culture_tasks.insertion.core.edit_scopes import ScopeEncoder, Subject, in_batches, stored_vectors
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.requests import Request, image_key, loaded
from culture_tasks.insertion.core.scoped_method import ScopedConfig, ScopedMethod
from culture_tasks.insertion.core.state import identify_encoder, text_key
from culture_tasks.insertion.core.store import Store

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
        return ClipScopes(self.config, self.model.device)


def fused(texts: torch.Tensor, images: torch.Tensor, fusion: Fusion) -> torch.Tensor:
    """Makes one vector of a text's and an image's, all of length 1, (..., width), or (..., 2 * width) if concatenated.

    ``dot`` multiplies them element by element. The product of two vectors of length 1 is so short that no distance
    between two of them passes for large, so it gets length 1 again; the concatenation does too.
    """
    vectors = images * texts if fusion == "dot" else torch.cat([texts, images], dim=-1)
    return torch.nn.functional.normalize(vectors, dim=-1)


class ClipScopes(ScopeEncoder):
    """A CLIP model, frozen and in float32, as the encoder of an image with a text; long texts are cut off."""

    def __init__(self, config: MsckeConfig, device: torch.device) -> None:
        from transformers import AutoModel, AutoProcessor

        super().__init__()
        name, length = config.encoder, config.max_text_length
        advice = "Download one, such as openai/clip-vit-large-patch14, and name its folder with encoder=DIR."
        with explained(f"mscke: encoder={name!r} can't be loaded as a CLIP model", advice):
            self._processor = AutoProcessor.from_pretrained(name, trust_remote_code=False)
            self._model = AutoModel.from_pretrained(name, dtype=torch.float32, trust_remote_code=False)
            self.width = int(self._model.config.projection_dim) * (1 if config.fusion == "dot" else 2)
            positions = int(self._model.config.text_config.max_position_embeddings)
        if length > positions:
            raise SettingsError(
                f"mscke: max_text_length={length}, but {name!r} reads at most {positions} tokens. Lower it."
            )
        self._model.to(device).eval()
        self._fusion, self._length = config.fusion, length
        self.parameters = int(self._model.num_parameters())
        settings = {"max_text_length": length, "images": self._processor.image_processor.to_dict()}
        vocabulary = self._processor.tokenizer.get_vocab()
        self.identity = identify_encoder(self._model, vocabulary, source=name, settings=settings)

    def encode(self, subjects: Sequence[Subject], store: Store, size: int, title: str = "") -> torch.Tensor:
        """Encodes each text and each image once."""
        pictures = [_picture(request) for request, _ in subjects]
        text_keys = [text_key(text) for _, text in subjects]
        image_keys = list(read_ahead(pictures, image_key))
        prefix = f"vector:{self.identity.run}"
        by_text, by_image = in_batches(self._text_vectors), in_batches(self._image_vectors)
        distinct_texts = dict(zip(text_keys, (text for _, text in subjects), strict=True))
        distinct_images = dict(zip(image_keys, pictures, strict=True))
        of_texts = stored_vectors(store, f"{prefix}:text", distinct_texts, by_text, size, title)
        of_images = stored_vectors(store, f"{prefix}:image", distinct_images, by_image, size, title)
        texts, images = ([of[key] for key in keys] for of, keys in ((of_texts, text_keys), (of_images, image_keys)))
        return fused(torch.stack(texts), torch.stack(images), self._fusion)

    def _text_vectors(self, texts: Sequence[str]) -> torch.Tensor:
        cut = {"truncation": True, "max_length": self._length, "padding": True, "padding_side": "right"}
        return self._normalized("text", self._processor.tokenizer(list(texts), return_tensors="pt", **cut))

    def _image_vectors(self, pictures: Sequence[Any]) -> torch.Tensor:
        return self._normalized(
            "image", self._processor.image_processor(list(map(loaded, pictures)), return_tensors="pt")
        )

    def _normalized(self, kind: str, inputs: Any) -> torch.Tensor:
        with torch.no_grad():
            output = getattr(self._model, f"get_{kind}_features")(**inputs.to(self._model.device))
        # transformers 5 returns an object with the projected vector as pooler_output, transformers 4 the vector itself.
        vectors = output if isinstance(output, torch.Tensor) else output.pooler_output
        return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu()


def _picture(request: Request) -> Any:
    pictures = request.pictures()
    if len(pictures) != 1:
        raise DataError(f"mscke: the request {request.question!r:.80} has {len(pictures)} images. Expected one.")
    return pictures[0]
