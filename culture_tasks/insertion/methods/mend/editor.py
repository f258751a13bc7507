"""MEND's editors: small networks that turn the gradient of a weight into an edit of it.

The gradient of a linear map's weight is a sum over tokens of delta u^T, with u the map's input and delta the gradient
of the loss at its output. An editor transforms u and delta of each token, so it never sees the weight's full gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from torch import nn

from culture_tasks.insertion.core.training import full_precision
from culture_tasks.insertion.methods.mend.config import MendConfig

EPSILON = 1e-7
"""Is added to deviations before gradients are divided by them."""


def token_gradients(
    linears: Mapping[str, nn.Linear], losses: Callable[[], torch.Tensor]
) -> list[dict[str, torch.Tensor]]:
    """Computes the gradients of the losses of a batch at linear maps, token by token.

    Tokens without any gradient are left out: in a model's last layer all but those of the answer. Nothing below the
    first of these maps is differentiated, and no weight gets a gradient. Each map is used once in the losses.

    Returns:
        For each row by name, u and delta of each token side by side: shape (tokens, inputs + outputs), float32.
    """
    seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def watch(name: str, _module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if not output.requires_grad:
            output.requires_grad_()
        seen[name] = inputs[0].detach(), output

    with ExitStack() as stack:
        for name, linear in linears.items():
            stack.callback(linear.register_forward_hook(functools.partial(watch, name)).remove)
        with torch.enable_grad():
            values = losses()
    with full_precision(values.device):
        gradients = torch.autograd.grad(values.sum(), [output for _, output in seen.values()])
    rows: list[dict[str, torch.Tensor]] = [{} for _ in values]
    for (name, (inputs, _)), gradient in zip(seen.items(), gradients, strict=True):
        for row, u, delta in zip(rows, inputs, gradient, strict=True):
            used = (u != 0).any(dim=1) & (delta != 0).any(dim=1)
            row[name] = torch.cat([u[used], delta[used]], dim=1).float()
    return rows


def weight_gradient(rows: torch.Tensor, inputs: int) -> torch.Tensor:
    """Returns the sum of outer products of delta and u, of the weight's shape (outputs, inputs)."""
    return rows[:, inputs:].T @ rows[:, :inputs]


def moments_of(rows: torch.Tensor) -> torch.Tensor:
    """Returns the moments of rows, shape (rows, width): their count, means, and sums of squared deviations.

    They are one vector, shape (1 + 2 * width,), float64.
    """
    if not len(rows):
        return torch.zeros(1 + 2 * rows.shape[1], dtype=torch.float64, device=rows.device)
    wide = rows.double()
    mean = wide.mean(0)
    return torch.cat([wide.new_tensor([len(wide)]), mean, (wide - mean).square().sum(0)])


def merged(mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """Returns the moments of both sets of rows together."""
    theirs, width = theirs.to(mine.device), len(mine) // 2
    count = mine[:1] + theirs[:1]
    share = theirs[:1] / count.clamp(min=1)
    difference = theirs[1 : 1 + width] - mine[1 : 1 + width]
    mean = mine[1 : 1 + width] + difference * share
    squares = mine[1 + width :] + theirs[1 + width :] + difference.square() * mine[:1] * share
    return torch.cat([count, mean, squares])


def normalized(rows: torch.Tensor, moments: torch.Tensor) -> torch.Tensor:
    """Returns rows less the mean, divided by the deviation; as they are if fewer than two rows were seen."""
    width, count = rows.shape[1], moments[0]
    if count < 2:
        return rows
    mean, squares = moments[1 : 1 + width], moments[1 + width :]
    deviation = (squares / (count - 1)).sqrt()
    return ((rows.double() - mean) / (deviation + EPSILON)).float()


class Editor(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """Transforms the gradients of all weights of one shape; before training it changes nothing.

    ``width`` is the number of a weight's inputs and outputs. Each of the ``weights`` that share the editor has its own
    scale and shift.
    """

    def __init__(self, width: int, *, weights: int, rank: int, hidden_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _ResidualLayer(width, weights=weights, rank=min(rank, width)) for _ in range(hidden_layers + 1)
        )
        self.register_buffer("moments", torch.zeros(1 + 2 * width, dtype=torch.float64))

    def forward(self, rows: torch.Tensor, weight: int) -> torch.Tensor:
        """Transforms a gradient, token by token."""
        for layer in self.layers:
            rows = layer(rows, weight)
        return rows


class _ResidualLayer(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """x + f(scale * (U V x + bias) + shift), where U is 0 at first, so that it starts as the identity.

    In every layer, the last too, f cuts off what is negative, with a gradient of 1 at 0: that of a rectifier, and in
    newer versions of PyTorch that of a clamp, is 0 there, and U would never leave 0.
    """

    def __init__(self, width: int, *, weights: int, rank: int) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.zeros(width, rank))
        self.v = nn.Parameter(torch.randn(rank, width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.scale = nn.Parameter(torch.ones(weights, width))
        self.shift = nn.Parameter(torch.zeros(weights, width))

    def forward(self, rows: torch.Tensor, weight: int) -> torch.Tensor:
        """Transforms rows, shape (tokens, width)."""
        change = self.scale[weight] * (rows @ self.v.T @ self.u.T + self.bias) + self.shift[weight]
        return rows + change.masked_fill(change < 0, 0.0)


class Editors(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """The editors and edit rates of all edited weights, which MEND learns."""

    def __init__(self, linears: Mapping[str, nn.Linear], config: MendConfig) -> None:
        super().__init__()
        self.linears = dict(linears)
        self._normalize = config.normalize
        self._sharing: dict[str, list[str]] = {}
        for name, linear in linears.items():
            self._sharing.setdefault(f"{linear.out_features}x{linear.in_features}", []).append(name)
        sizes = {"rank": config.rank, "hidden_layers": config.hidden_layers}
        self.of_shape = nn.ModuleDict()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            for shape, names in self._sharing.items():
                first = linears[names[0]]
                self.of_shape[shape] = Editor(first.in_features + first.out_features, weights=len(names), **sizes)
        self.rates = nn.Parameter(torch.full((len(linears),), config.edit_rate))
        self.requires_grad_(requires_grad=False)
        self.to(next(iter(linears.values())).weight.device)

    def moments(self, gradients: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Returns the moments of gradients, those of one shape of weights together, one shape after another."""
        of_shapes = [
            functools.reduce(merged, (moments_of(gradients[name].to(self.rates.device)) for name in names))
            for names in self._sharing.values()
        ]
        return torch.cat(of_shapes)

    def absorb(self, moments: torch.Tensor) -> None:
        """Adds moments to the running ones."""
        for shape, more in self._by_shape(moments).items():
            running = self.of_shape[shape].moments
            running.copy_(merged(running, more))

    def transformed(
        self, gradients: Mapping[str, torch.Tensor], more: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """Returns the transformed gradients of one edit, normalised by the running moments and by ``more``."""
        results: dict[str, torch.Tensor] = {}
        others = {} if more is None else self._by_shape(more)
        for shape, names in self._sharing.items():
            editor = self.of_shape[shape]
            moments = editor.moments if more is None else merged(editor.moments, others[shape])
            for place, name in enumerate(names):
                rows = gradients[name].to(self.rates.device)
                results[name] = editor(normalized(rows, moments) if self._normalize else rows, place)
        return results

    def edited(
        self, transformed: Mapping[str, torch.Tensor], rates: torch.Tensor, before: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Returns the edited weights in float32: W - rate * (sum of outer products of the transformed gradient).

        The minus makes an edit a step of descent as long as an editor is the identity, with a rate above 0. ``before``
        are the weights W, by their names.
        """
        weights: dict[str, torch.Tensor] = {}
        for rate, (name, linear) in zip(rates, self.linears.items(), strict=True):
            weight = before[f"{name}.weight"].detach()
            with full_precision(self.rates.device):
                edit = rate * weight_gradient(transformed[name].float(), linear.in_features)
                weights[f"{name}.weight"] = weight.float() - edit.to(weight.device)
        return weights

    def _by_shape(self, moments: torch.Tensor) -> dict[str, torch.Tensor]:
        widths = [len(editor.moments) for editor in self.of_shape.values()]
        return dict(zip(self.of_shape, moments.split(widths), strict=True))
