"""Fingerprints of models, so that nothing computed with one is used with another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from culture_tasks.insertion.core import tensor_files

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SAMPLED = 64
_INCIDENTAL = (
    *("_name_or_path", "transformers_version", "_attn_implementation_autoset", "processor_class"),
    # Saving a model writes these into its configuration; the model itself tells them.
    *("architectures", "dtype", "torch_dtype"),
)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Fingerprints of a loaded model.

    ``weights`` is that of the weights as loaded, the configuration, the processor and its options, whose ``parts``
    messages name: a trained state fits it. ``run`` is that of ``weights`` and all else that can change an answer
    (device, attention kernels, versions of libraries and of our own code): the key of stored answers and features.
    """

    source: str
    weights: str
    run: str
    parts: Mapping[str, Any] = field(default_factory=dict, compare=False)


def identify(
    model: PreTrainedModel,
    processor: ProcessorMixin,
    *,
    source: str,
    options: Mapping[str, Any],
    version: int,
) -> ModelIdentity:
    """Computes a model's identity, with one pass over its weights; ``version`` is that of our own code."""
    import transformers

    kind, digest, config = type(model).__name__, _weights_digest(model), _clean(model.config.to_dict())
    vocabulary = value_key(processor.tokenizer.get_vocab())
    settings = [_clean(processor.to_dict()), getattr(processor, "chat_template", None), vocabulary]
    weights = value_key([kind, digest, config, settings, dict(options)])[:32]
    parts = {
        "class": kind,
        "data type": str(model.dtype),
        "weights": digest[:12],
        "configuration": value_key(config)[:12],
        "processor": value_key(settings)[:12],
        **options,
    }
    run = [
        weights,
        _clean(model.generation_config.to_dict()) if model.generation_config else None,
        version,
        str(model.device.type),
        getattr(model.config, "_attn_implementation", None),
        [torch.__version__, transformers.__version__],
    ]
    return ModelIdentity(source, weights, value_key(run)[:32], parts)


def identify_encoder(
    model: PreTrainedModel, vocabulary: Mapping[str, int], *, source: str, settings: Mapping[str, Any]
) -> ModelIdentity:
    """Computes the identity of a model of vectors; they depend on the settings too."""
    import transformers

    words, config = value_key(dict(vocabulary)), _clean(model.config.to_dict())
    weights = value_key([type(model).__name__, _weights_digest(model), config, words, _clean(dict(settings))])[:32]
    run = value_key([weights, str(model.device.type), [torch.__version__, transformers.__version__]])[:32]
    return ModelIdentity(source, weights, run)


def with_other_weights(identity: ModelIdentity, weights: Mapping[str, torch.Tensor]) -> ModelIdentity:
    """Returns the identity of a model after some of its weights became these."""
    changed = tensor_files.digest(weights)
    return ModelIdentity(
        identity.source, value_key([identity.weights, changed])[:32], value_key([identity.run, changed])[:32]
    )


def text_key(text: str) -> str:
    """Returns the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def value_key(value: Any) -> str:
    """Returns the SHA-256 of a value as JSON."""
    return text_key(json.dumps(value, sort_keys=True, default=str))


def _clean(settings: Any) -> Any:
    if isinstance(settings, Mapping):
        return {str(key): _clean(value) for key, value in settings.items() if key not in _INCIDENTAL}
    return [_clean(value) for value in settings] if isinstance(settings, list | tuple) else settings


def _weights_digest(model: PreTrainedModel) -> str:
    """Hashes one line per tensor: name, shape, type, the sum of all its bits read as integers, and some of them."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.named_parameters()):
        line = f"{name} {tuple(tensor.shape)} {tensor.dtype}"
        if not tensor.is_meta and tensor.numel():
            integers = tensor.detach().reshape(-1).view(_INTEGERS[tensor.element_size()])
            some = integers[:: max(1, integers.numel() // _SAMPLED)][:_SAMPLED].tolist()
            line = f"{line} {int(integers.sum(dtype=torch.int64))} {some}"
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()
