"""Weights of a model: which are edited, and computing with others in their place."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import nn

from culture_tasks.errors import CultureTasksError, SettingsError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Result = TypeVar("Result")

Weights = Mapping[str, torch.Tensor]
"""Tensors by the names of the parameters that they replace."""


def decoder_layers(model: PreTrainedModel) -> list[str]:
    """Returns the names of the language model's layers, in their order."""
    layers = getattr(model.get_decoder(), "layers", None)
    name = next((name for name, module in model.named_modules() if module is layers), None)
    if layers is None or name is None:
        raise SettingsError(
            f"insertion: {type(model).__name__} has no list of layers in its language model, so its weights can't be "
            "edited. Name another model, or a method that leaves weights alone."
        )
    return [f"{name}.{number}" for number in range(len(layers))]


def decoder_layer(model: PreTrainedModel, layer: int, *, method: str) -> str:
    """Returns the name of a layer that the options of a method name."""
    names = decoder_layers(model)
    if not -len(names) <= layer < len(names):
        raise SettingsError(
            f"insertion: option layer={layer} of {method}. The model has layers 0 to {len(names) - 1}; -1 is the last."
        )
    return names[layer]


def layer_weights(model: PreTrainedModel, layer: str) -> dict[str, nn.Parameter]:
    """Returns the weight matrices of a layer's attention, linear attention too, and of its MLP."""
    children = dict(model.get_submodule(layer).named_children())
    weights = {
        f"{layer}.{name}.{inner}": parameter
        for name, module in children.items()
        if ("attn" in name or "mlp" in name) and "norm" not in name
        for inner, parameter in module.named_parameters()
        if parameter.dim() >= 2
    }
    if not weights:
        raise SettingsError(
            f"insertion: {layer} of {type(model).__name__} has no attention and no MLP (it has {', '.join(children)}). "
            "Name another model."
        )
    for name, weight in weights.items():
        _check_editable(name, weight)
    return weights


def layer_linears(model: PreTrainedModel, layers: Iterable[str], names: Collection[str]) -> dict[str, nn.Linear]:
    """Returns linear maps of layers, by name; ``names`` are those inside a layer, such as ``mlp.up_proj``."""
    linears: dict[str, nn.Linear] = {}
    for layer in layers:
        modules = model.get_submodule(layer).named_modules()
        inner_linears = {inner: module for inner, module in modules if isinstance(module, nn.Linear)}
        for name in names:
            if name not in inner_linears:
                raise SettingsError(
                    f"insertion: {layer} of {type(model).__name__} has no linear map {name!r}. "
                    f"It has {', '.join(inner_linears) or 'none'}."
                )
            linears[f"{layer}.{name}"] = inner_linears[name]
            _check_editable(f"{layer}.{name}.weight", inner_linears[name].weight)
    return linears


def _check_editable(name: str, weight: torch.Tensor) -> None:
    if weight.is_meta or weight.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        raise SettingsError(
            f"insertion: {name} can't be edited: it is {weight.dtype} on {weight.device.type}. Expected 16 or 32 bits "
            "on a device: name a checkpoint that isn't quantised, or use more GPUs."
        )


def with_weights(model: nn.Module, weights: Weights, compute: Callable[[], Result]) -> Result:
    """Computes something while named parameters of a model are other tensors, to which gradients flow.

    Nothing is copied, and the model is as before afterwards, whatever happens.
    """
    tensors = {f"model.{name}": tensor for name, tensor in weights.items()}
    return torch.func.functional_call(_Calling({"model": model}), tensors, (compute,))  # type: ignore[no-any-return]


class _Calling(nn.ModuleDict):  # type: ignore[misc]  # torch is not followed by mypy
    """A module whose forward pass is any computation, for ``functional_call``."""

    def forward(self, compute: Callable[[], Any]) -> Any:
        return compute()


def with_weights_by_row(model: nn.Module, rows: Sequence[Weights], compute: Callable[[], Result]) -> Result:
    """Computes something with a batch whose rows have different weights, to which gradients flow.

    Nothing is copied: a linear map is applied at once to neighbouring rows with the same object of weights. These are
    of the same linear maps in all rows, or any parameters if all rows have the same. Beam search may repeat a row.
    """
    same = (list(run) for _, run in itertools.groupby(rows, key=id))
    runs = [(run[0], len(run)) for run in same]
    if len(runs) == 1:
        return with_weights(model, rows[0], compute)
    with ExitStack() as stack:
        for name in rows[0]:
            module = model.get_submodule(name.rpartition(".")[0])
            of_runs = [(weights[name], count) for weights, count in runs]
            _replace_forward(stack, module, functools.partial(_linear_by_row, name, module, of_runs))
        return compute()


def _linear_by_row(
    name: str, module: nn.Linear, runs: Sequence[tuple[torch.Tensor, int]], inputs: torch.Tensor
) -> torch.Tensor:
    repeats, remainder = divmod(len(inputs), sum(count for _, count in runs))
    if remainder or inputs.dim() < 3:
        raise CultureTasksError(
            f"insertion: {name} is given {tuple(inputs.shape)} without the rows of a batch, so that edits of several "
            "chains can't be answered together. Use --batch_size 1."
        )
    parts = inputs.split([repeats * count for _, count in runs])
    outputs = [nn.functional.linear(part, weight, module.bias) for part, (weight, _) in zip(parts, runs, strict=True)]
    return torch.cat(outputs)


class RepeatedPass(Generic[Result]):
    """A computation with a model that can be repeated at the cost of the ``weights`` that change in between.

    Modules that run before the first one with a changing weight (the vision tower, most layers of the language model)
    return the same each time: the first call records their outputs, which later calls take.
    """

    def __init__(self, model: nn.Module, weights: Collection[str], compute: Callable[[], Result]) -> None:
        self._compute = compute
        owners = {name.rpartition(".")[0] for name in weights}
        self._changing = [model.get_submodule(name) for name in owners]
        self._frozen = list(_frozen(model, "", owners))
        self._outputs: dict[nn.Module, list[Any]] | None = None

    def __call__(self) -> Result:
        """Computes with the weights as they are now."""
        with ExitStack() as stack:
            if self._outputs is None:
                self._outputs = self._record(stack)
            else:
                for module, outputs in self._outputs.items():
                    _replace_forward(stack, module, _replay(module.forward, outputs))
            return self._compute()

    def _record(self, stack: ExitStack) -> dict[nn.Module, list[Any]]:
        """Returns a table that fills with the outputs of frozen modules until a changing one is reached."""
        outputs: dict[nn.Module, list[Any]] = {}
        reached: list[nn.Module] = []

        def note(module: nn.Module, _inputs: object, output: Any) -> None:
            if not reached:
                outputs.setdefault(module, []).append(_copy(output))

        for module in self._frozen:
            stack.callback(module.register_forward_hook(note).remove)
        for module in self._changing:
            stack.callback(module.register_forward_pre_hook(lambda module, _: reached.append(module)).remove)
        return outputs


def _frozen(module: nn.Module, name: str, owners: Collection[str]) -> Iterator[nn.Module]:
    """Yields the largest modules that hold none of the changing weights."""
    prefix = f"{name}." if name else ""
    if name in owners:
        return
    if not any(owner.startswith(prefix) for owner in owners):
        yield module
        return
    for inner, child in module.named_children():
        yield from _frozen(child, f"{prefix}{inner}", owners)


def _replay(forward: Callable[..., Any], outputs: Sequence[Any]) -> Callable[..., Any]:
    replays = list(reversed(outputs))

    def replayed(*inputs: Any, **options: Any) -> Any:
        return _copy(replays.pop()) if replays else forward(*inputs, **options)

    return replayed


def _replace_forward(stack: ExitStack, module: nn.Module, forward: Callable[..., Any]) -> None:
    """Gives a module another forward until the stack is closed; ``device_map`` may have replaced it already."""
    if "forward" in vars(module):
        stack.callback(setattr, module, "forward", module.forward)
    else:
        stack.callback(delattr, module, "forward")
    module.forward = forward


def _copy(value: Any) -> Any:
    """Copies tensors, so that in-place changes leave the record alone."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return type(value)(**{key: _copy(part) for key, part in value.items()})
    if type(value) in (list, tuple):
        return type(value)(_copy(part) for part in value)
    return value
