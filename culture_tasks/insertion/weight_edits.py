"""Which weights of a model are edited or trained, computing with others in their place, and putting them back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import nn

from culture_tasks.errors import SettingsError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Result = TypeVar("Result")
Part = Literal["attention", "mlp"]

_EDITABLE = (torch.float32, torch.bfloat16, torch.float16)


def decoder_layers(model: PreTrainedModel) -> list[str]:
    """Returns the names of the language model's layers, in their order.

    Raises:
        SettingsError: If the model doesn't show its layers.
    """
    decoder = model.get_decoder()
    layers = getattr(decoder, "layers", None)
    names = {id(module): name for name, module in model.named_modules()}
    if layers is None or id(layers) not in names:
        raise SettingsError(
            f"insertion: {type(model).__name__} has no list of layers in its language model, so its weights can't be "
            "edited. Name another model, or a method that leaves weights alone."
        )
    return [f"{names[id(layers)]}.{number}" for number in range(len(layers))]


def last_layers(model: PreTrainedModel, count: int) -> list[str]:
    """Returns the names of the last layers, in their order.

    Raises:
        SettingsError: If the model has fewer.
    """
    layers = decoder_layers(model)
    if count > len(layers):
        raise SettingsError(f"insertion: layers={count}, but the model has {len(layers)}. Name fewer layers.")
    return layers[len(layers) - count :]


def layer_weights(model: PreTrainedModel, layer: str, parts: Collection[Part]) -> dict[str, nn.Parameter]:
    """Returns the weight matrices of a layer's attention, linear attention too, and of its MLP.

    Norms, biases and other parameters of one dimension are not among them.

    Args:
        model: The model.
        layer: The layer's name, as :func:`decoder_layers` gives it.
        parts: Which parts are wanted.

    Raises:
        SettingsError: If the layer lacks one of them, or its weights can't be edited.
    """
    found: dict[str, nn.Parameter] = {}
    for part in parts:
        mark = "attn" if part == "attention" else "mlp"
        modules = [(name, module) for name, module in model.get_submodule(layer).named_children() if _is(name, mark)]
        weights = {
            f"{layer}.{name}.{inner}": parameter
            for name, module in modules
            for inner, parameter in module.named_parameters()
            if parameter.dim() >= 2
        }
        if not weights:
            children = ", ".join(name for name, _ in model.get_submodule(layer).named_children())
            raise SettingsError(
                f"insertion: {layer} of {type(model).__name__} has no {part} weights (it has {children}). "
                "Name other weights, or another model."
            )
        found.update(weights)
    for name, weight in found.items():
        _check_editable(name, weight)
    return found


def _is(name: str, mark: str) -> bool:
    return mark in name and "norm" not in name


def layer_linears(model: PreTrainedModel, layers: Iterable[str], names: Collection[str]) -> dict[str, nn.Linear]:
    """Returns linear maps of layers by the names of their modules.

    Args:
        model: The model.
        layers: Names of layers.
        names: Names inside a layer, such as ``mlp.up_proj``.

    Raises:
        SettingsError: If a layer lacks one, it is no linear map, or its weight can't be edited.
    """
    found: dict[str, nn.Linear] = {}
    for layer in layers:
        modules = dict(model.get_submodule(layer).named_modules())
        for name in names:
            if not isinstance(modules.get(name), nn.Linear):
                known = ", ".join(inner for inner, module in modules.items() if isinstance(module, nn.Linear))
                raise SettingsError(
                    f"insertion: {layer} of {type(model).__name__} has no linear map {name!r}. "
                    f"It has {known or 'none'}."
                )
            found[f"{layer}.{name}"] = modules[name]
            _check_editable(f"{layer}.{name}.weight", modules[name].weight)
    return found


def _check_editable(name: str, weight: torch.Tensor) -> None:
    """Makes sure that a weight holds its numbers itself.

    Raises:
        SettingsError: If it is quantised, or its numbers are elsewhere.
    """
    if weight.is_meta:
        raise SettingsError(
            f"insertion: {name} is not on a device, since the model was spread further than the GPUs hold. Weights can "
            "only be edited where they are: use more or larger GPUs, or a smaller model."
        )
    if weight.dtype not in _EDITABLE:
        raise SettingsError(
            f"insertion: {name} is {weight.dtype}. Quantised weights can't be edited: name a checkpoint of 16 or "
            "32 bits."
        )


def with_weights(model: nn.Module, weights: Mapping[str, torch.Tensor], compute: Callable[[], Result]) -> Result:
    """Computes something while named parameters of a model are other tensors, to which gradients flow.

    Nothing is copied, and the model is as before afterwards, whatever happens.

    Args:
        model: The model.
        weights: Tensors by the names of the parameters that they replace.
        compute: What to compute.
    """
    replaced = {f"model.{name}": tensor for name, tensor in weights.items()}
    return torch.func.functional_call(_Calling(model), replaced, (compute,))  # type: ignore[no-any-return]


class _Calling(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """A module whose forward pass is any computation, so that ``functional_call`` can stand around it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, compute: Callable[[], Any]) -> Any:
        return compute()


class EditedWeights:
    """Weights of a model that change in place, and come back bit for bit.

    Args:
        weights: The weights, by name.
    """

    def __init__(self, weights: Mapping[str, nn.Parameter]) -> None:
        self._weights = dict(weights)
        self._before: dict[str, torch.Tensor] = {}

    def set(self, values: Mapping[str, torch.Tensor]) -> None:
        """Sets all weights, rounding to the nearest value of their type; the first time, copies are taken."""
        if not self._before:
            self._before = {name: weight.detach().clone() for name, weight in self._weights.items()}
        self._fill(values)

    def restore(self) -> None:
        """Puts back what was there before the first change, and drops the copies."""
        if self._before:
            self._fill(self._before)
            self._before = {}

    def _fill(self, values: Mapping[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, weight in self._weights.items():
                weight.copy_(values[name])
