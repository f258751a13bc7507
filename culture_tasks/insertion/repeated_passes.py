"""Passing one input through a model many times while some of its last weights change.

All that a model computes before it comes to these weights is the same each time: the vision tower and most layers of
the language model. It is computed in the first pass alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import nn

Result = TypeVar("Result")


class RepeatedPass(Generic[Result]):
    """A computation with a model that can be repeated at the cost of the changing part.

    The first call records what modules return that run before the first module with a changing weight. Later calls
    take it from there, so the input and all other weights must be the same.

    Args:
        model: The model.
        weights: Names of the parameters that change between calls.
        compute: Passes the input through the model.
    """

    def __init__(self, model: nn.Module, weights: Collection[str], compute: Callable[[], Result]) -> None:
        self._compute = compute
        owners = {name.rpartition(".")[0] for name in weights}
        self._changing = [model.get_submodule(name) for name in owners]
        self._frozen = list(_frozen(model, owners))
        self._recorded: dict[nn.Module, list[Any]] | None = None

    def __call__(self) -> Result:
        """Computes with the weights as they are now."""
        with self._replaying(self._recorded) if self._recorded is not None else self._recording():
            return self._compute()

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Records what frozen modules return until a changing one is reached."""
        recorded: dict[nn.Module, list[Any]] = {}
        reached = False

        def note(module: nn.Module, _inputs: object, output: Any) -> None:
            if not reached:
                recorded.setdefault(module, []).append(_copied(output))

        def reach(_module: nn.Module, _inputs: object) -> None:
            nonlocal reached
            reached = True

        with ExitStack() as stack:
            for module in self._frozen:
                stack.callback(module.register_forward_hook(note).remove)
            for module in self._changing:
                stack.callback(module.register_forward_pre_hook(reach).remove)
            yield
        self._recorded = recorded

    @contextmanager
    def _replaying(self, recorded: Mapping[nn.Module, list[Any]]) -> Iterator[None]:
        """Lets modules return what was recorded, as often as it was."""
        with ExitStack() as stack:
            for module, outputs in recorded.items():
                # An object's own forward takes precedence over its class's; one of these may be there (device_map).
                own = module.__dict__.get("forward")
                stack.callback(_set_forward, module, own)
                _set_forward(module, _replay(module.forward, outputs))
            yield


def _frozen(model: nn.Module, owners: Collection[str]) -> Iterator[nn.Module]:
    """Yields the largest modules that hold none of the changing weights."""
    pending = [("", model)]
    while pending:
        name, module = pending.pop()
        prefix = f"{name}." if name else ""
        if name in owners:
            continue
        if any(owner.startswith(prefix) for owner in owners):
            pending += [(f"{prefix}{inner}", child) for inner, child in module.named_children()]
        else:
            yield module


def _replay(forward: Callable[..., Any], outputs: Collection[Any]) -> Callable[..., Any]:
    left = iter(outputs)
    nothing = object()

    def replayed(*inputs: Any, **named: Any) -> Any:
        output = next(left, nothing)
        return forward(*inputs, **named) if output is nothing else _copied(output)

    return replayed


def _set_forward(module: nn.Module, forward: Callable[..., Any] | None) -> None:
    if forward is None:
        del module.forward
    else:
        module.forward = forward


def _copied(value: Any) -> Any:
    """Copies tensors, so that nobody who changes them in place changes what was recorded."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return type(value)(**{key: _copied(part) for key, part in value.items()})
    if type(value) in (list, tuple):
        return type(value)(_copied(part) for part in value)
    return value
