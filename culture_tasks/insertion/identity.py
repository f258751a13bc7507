"""Fingerprints of models, so that nothing computed with one is used with another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from culture_tasks.insertion import tensor_files

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SAMPLED = 64
_INCIDENTAL = (
    *("_name_or_path", "transformers_version", "_attn_implementation_autoset", "processor_class"),
    # Saving a model writes these into its configuration; they are told by the model itself.
    *("architectures", "dtype", "torch_dtype"),
)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Fingerprints of a loaded model.

    Attributes:
        source: The model's name or folder, as the user gave it.
        weights: Of the weights as loaded (including the data type), the configuration, the processor and its options: a
            trained state fits this.
        run: Of ``weights`` and all else that can change an answer (device, attention kernels, versions of libraries
            and of our own code): stored answers and features are found by this.
        parts: What ``weights`` is made of, by names for messages; hashes stand in place of what is long.
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
    """Computes a model's identity, with one pass over its weights.

    Args:
        model: The model.
        processor: Its processor.
        source: The model's name or folder, as the user gave it.
        options: How conversations are encoded: options of the chat template and of the image processor.
        version: Version of the code that asks it.
    """
    import transformers

    kind, digest, config = type(model).__name__, _weights_digest(model), _cleaned(model.config.to_dict())
    settings = _processor_settings(processor)
    weights = _hash([kind, digest, config, settings, dict(options)])
    parts = {
        "class": kind,
        "data type": str(model.dtype),
        "weights": digest[:12],
        "configuration": _hash(config)[:12],
        "processor": _hash(settings)[:12],
        **options,
    }
    run = _hash(
        [
            weights,
            _cleaned(model.generation_config.to_dict()) if model.generation_config else None,
            version,
            str(model.device.type),
            getattr(model.config, "_attn_implementation", None),
            [torch.__version__, transformers.__version__],
        ]
    )
    return ModelIdentity(source, weights, run, parts)


def identify_encoder(
    model: PreTrainedModel, vocabulary: Mapping[str, int], *, source: str, settings: Mapping[str, Any]
) -> ModelIdentity:
    """Computes the identity of a model that turns texts or images into vectors.

    Args:
        model: The model.
        vocabulary: Its tokenizer's.
        source: The model's name or folder, as the user gave it.
        settings: What else its vectors depend on, such as the length of texts.
    """
    import transformers

    words = hashlib.sha256(json.dumps(dict(vocabulary), sort_keys=True).encode()).hexdigest()
    weights = _hash(
        [
            type(model).__name__,
            _weights_digest(model),
            _cleaned(model.config.to_dict()),
            words,
            _cleaned(dict(settings)),
        ]
    )
    run = _hash([weights, str(model.device.type), [torch.__version__, transformers.__version__]])
    return ModelIdentity(source, weights, run)


def with_other_weights(identity: ModelIdentity, weights: Mapping[str, torch.Tensor]) -> ModelIdentity:
    """Returns the identity of a model after some of its weights became these."""
    changed = tensor_files.digest(weights)
    return ModelIdentity(identity.source, _hash([identity.weights, changed]), _hash([identity.run, changed]))


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _cleaned(settings: Any) -> Any:
    if isinstance(settings, Mapping):
        return {str(key): _cleaned(value) for key, value in settings.items() if key not in _INCIDENTAL}
    return [_cleaned(value) for value in settings] if isinstance(settings, list | tuple) else settings


def _processor_settings(processor: ProcessorMixin) -> Any:
    tokenizer = processor.tokenizer
    vocabulary = hashlib.sha256(json.dumps(tokenizer.get_vocab(), sort_keys=True).encode()).hexdigest()
    return [_cleaned(processor.to_dict()), getattr(processor, "chat_template", None), vocabulary]


def _weights_digest(model: PreTrainedModel) -> str:
    digest = hashlib.sha256()
    for line in _tensor_lines(model):
        digest.update(line.encode())
    return digest.hexdigest()


def _tensor_lines(model: PreTrainedModel) -> Iterator[str]:
    """Yields a line a tensor: name, shape, type, the sum of all its bits read as integers, and some of them."""
    for name, tensor in sorted(model.named_parameters()):
        opening = f"{name} {tuple(tensor.shape)} {tensor.dtype}"
        if tensor.is_meta or tensor.numel() == 0:
            yield f"{opening}\n"
            continue
        integers = tensor.detach().reshape(-1).view(_INTEGERS[tensor.element_size()])
        total = int(integers.sum(dtype=torch.int64))
        some = integers[:: max(1, integers.numel() // _SAMPLED)][:_SAMPLED].tolist()
        yield f"{opening} {total} {some}\n"
