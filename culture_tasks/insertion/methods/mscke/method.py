"""MSCKE: a smaller model answers where image and text of a request are in the scope of an edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field

from culture_tasks.data.images import as_rgb
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.insertion.core.adapter import explained
from culture_tasks.insertion.core.edit_scopes import ScopeEncoder, StoredVectors, Subject, in_batches
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
        return clip_encoder(self.config, self.model.device)


def fused(texts: torch.Tensor, images: torch.Tensor, fusion: Fusion) -> torch.Tensor:
    """Makes one vector of a text's and an image's, all of length 1, (..., width), or (..., 2 * width) if concatenated.

    ``dot`` multiplies them element by element. The product of two vectors of length 1 is so short that no distance
    between two of them passes for large, so it gets length 1 again; the concatenation does too.
    """
    vectors = images * texts if fusion == "dot" else torch.cat([texts, images], dim=-1)
    return torch.nn.functional.normalize(vectors, dim=-1)


def clip_encoder(config: MsckeConfig, device: torch.device) -> ScopeEncoder:
    """Loads a CLIP model, frozen and in float32, as the encoder of an image with a text; long texts are cut off."""
    from transformers import AutoModel, AutoProcessor

    name, length = config.encoder, config.max_text_length
    advice = "Download one, such as openai/clip-vit-large-patch14, and name its folder with encoder=DIR."
    with explained(f"mscke: encoder={name!r} can't be loaded as a CLIP model", advice):
        processor = AutoProcessor.from_pretrained(name, trust_remote_code=False)
        model = AutoModel.from_pretrained(name, dtype=torch.float32, trust_remote_code=False).to(device).eval()
        width = int(model.config.projection_dim) * (1 if config.fusion == "dot" else 2)
        positions = int(model.config.text_config.max_position_embeddings)
    if length > positions:
        raise SettingsError(
            f"mscke: max_text_length={length}, but {name!r} reads at most {positions} tokens. Lower it."
        )
    settings = {"max_text_length": length, "images": processor.image_processor.to_dict()}
    identity = identify_encoder(model, processor.tokenizer.get_vocab(), source=name, settings=settings)

    def normalized(features: Callable[..., Any], inputs: Any) -> torch.Tensor:
        with torch.no_grad():
            output = features(**inputs.to(device))
        # transformers 5 returns an object with the projected vector as pooler_output, transformers 4 the vector itself.
        vectors = output if isinstance(output, torch.Tensor) else output.pooler_output
        return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu()

    def text_vectors(subjects: Sequence[Subject]) -> torch.Tensor:
        cut = {"truncation": True, "max_length": length, "padding": True, "padding_side": "right"}
        texts = [text for _, text in subjects]
        return normalized(model.get_text_features, processor.tokenizer(texts, return_tensors="pt", **cut))

    def image_vectors(subjects: Sequence[Subject]) -> torch.Tensor:
        images = [as_rgb(_picture(subject).load()) for subject in subjects]
        return normalized(model.get_image_features, processor.image_processor(images, return_tensors="pt"))

    parts = [
        StoredVectors[Subject](f"vector:{identity.run}:{kind}", key, in_batches(encode), description=f"CLIP: {kind}s")
        for kind, key, encode in (
            ("text", lambda subject: text_key(subject[1]), text_vectors),
            ("image", lambda subject: _picture(subject).key, image_vectors),
        )
    ]
    return ScopeEncoder(identity, width, int(model.num_parameters()), parts, partial(fused, fusion=config.fusion))


def _picture(subject: Subject) -> QueryImage:
    query, _ = subject
    pictures = query.pictures()
    if len(pictures) != 1:
        raise DataError(f"mscke: the request {query.question!r:.80} has {len(pictures)} images. Expected one.")
    return pictures[0]
