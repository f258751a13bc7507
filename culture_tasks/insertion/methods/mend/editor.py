"""MEND's editors: small networks that turn the gradient of a weight into an edit of it.

The gradient of a linear map's weight is a sum over tokens of delta u^T, with u the map's input and delta the gradient
of the loss at its output. An editor transforms u and delta of each token, so it never sees the weight's full gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import torch
from pydantic import Field
from torch import nn

from culture_tasks.insertion.core.training import GradientConfig, full_precision

EPSILON = 1e-7
"""Is added to deviations before gradients are divided by them."""


class MendConfig(GradientConfig):
    """Options of MEND, by the paper's Table 5; where it has no value, by MEND's published configuration.

    Attributes:
        layers: How many of the last layers are edited.
        weights: Names of the edited linear maps inside a layer, joined by ``+``.
        rank: Rank of the editors' layers.
        hidden_layers: Number of the editors' hidden layers.
        normalize: Whether editors see gradients less their running mean, divided by their running deviation.
        edit_rate: How far an edit goes at first, the "insert learning rate" of Table 5; learned for each weight.
        learning_rate: Of the editors, the "meta learning rate" of Table 5.
        edit_rate_learning_rate: Of the edit rates themselves.
        edit_weight: Weight of the edited model's loss on the insertion sample.
        generality_weight: Weight of its loss on each generality item.
        locality_weight: Weight of its divergence from the plain model on each locality item.
        cases_per_step: Training cases that make one step.
    """

    layers: int = Field(default=3, ge=1)
    weights: str = Field(default="mlp.up_proj+mlp.down_proj", min_length=1)
    rank: int = Field(default=1920, ge=1)
    hidden_layers: int = Field(default=1, ge=0)
    normalize: bool = True
    edit_rate: float = Field(default=1e-4, gt=0)
    learning_rate: float = Field(default=1e-6, gt=0)
    edit_rate_learning_rate: float = Field(default=1e-4, ge=0)
    edit_weight: float = Field(default=0.1, ge=0)
    generality_weight: float = Field(default=0.1, ge=0)
    locality_weight: float = Field(default=1.0, ge=0)
    cases_per_step: int = Field(default=2, ge=1)
    clip_norm: float = Field(default=100.0, ge=0)


def token_gradients(
    linears: Mapping[str, nn.Linear], losses: Callable[[], torch.Tensor]
) -> list[dict[str, torch.Tensor]]:
    """Returns for each row of a batch, by linear map, u and delta of each token: (tokens, inputs + outputs), float32.

    Tokens without any gradient are left out: in a model's last layer all but those of the answer. Nothing below the
    first of these maps is differentiated, and no weight gets a gradient. Each map is used once in the losses.
    """
    passes: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def watch(name: str, _module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        if not output.requires_grad:
            output.requires_grad_()
        passes[name] = inputs[0].detach(), output

    with ExitStack() as stack:
        for name, linear in linears.items():
            stack.callback(linear.register_forward_hook(functools.partial(watch, name)).remove)
        with torch.enable_grad():
            values = losses()
    with full_precision(values.device):
        gradients = torch.autograd.grad(values.sum(), [output for _, output in passes.values()])
    rows: list[dict[str, torch.Tensor]] = [{} for _ in values]
    for (name, (inputs, _)), gradient in zip(passes.items(), gradients, strict=True):
        for row, u, delta in zip(rows, inputs, gradient, strict=True):
            used = (u != 0).any(dim=1) & (delta != 0).any(dim=1)
            row[name] = torch.cat([u[used], delta[used]], dim=1).float()
    return rows


def weight_gradient(rows: torch.Tensor, inputs: int) -> torch.Tensor:
    """Returns the sum of outer products of delta and u, of the weight's shape (outputs, inputs)."""
    return rows[:, inputs:].T @ rows[:, :inputs]


def moments_of(rows: torch.Tensor) -> torch.Tensor:
    """Returns count, means and sums of squared deviations of rows: one vector, shape (1 + 2 * width,), float64."""
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

    ``width`` is the number of a weight's inputs and outputs together.
    """

    def __init__(self, width: int, *, weights: int, rank: int, hidden_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _ResidualLayer(width, weights=weights, rank=min(rank, width)) for _ in range(hidden_layers + 1)
        )
        self.register_buffer("moments", torch.zeros(1 + 2 * width, dtype=torch.float64))

    def forward(self, rows: torch.Tensor, weight: int) -> torch.Tensor:
        """Transforms the gradient of one of the weights, shape (tokens, width)."""
        for layer in self.layers:
            rows = layer(rows, weight)
        return rows


class _ResidualLayer(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """x + f(scale * (U V x + bias) + shift), with U = 0 at first; each weight has its own scale and shift.

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

    def moments(self, gradients: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns the moments of gradients by the shape of their weights."""
        device = self.rates.device
        return {
            shape: functools.reduce(merged, [moments_of(gradients[name].to(device)) for name in names])
            for shape, names in self._sharing.items()
        }

    def absorb(self, moments: Mapping[str, torch.Tensor]) -> None:
        """Adds moments to the running ones."""
        for shape, editor in self.of_shape.items():
            editor.moments.copy_(merged(editor.moments, moments[shape]))

    def transformed(
        self, gradients: Mapping[str, torch.Tensor], more: Mapping[str, torch.Tensor] | None = None
    ) -> dict[str, torch.Tensor]:
        """Returns the transformed gradients of one edit, normalised by the running moments and by ``more``."""
        results: dict[str, torch.Tensor] = {}
        for shape, names in self._sharing.items():
            editor = self.of_shape[shape]
            moments = merged(editor.moments, more[shape]) if more else editor.moments
            for place, name in enumerate(names):
                rows = gradients[name].to(self.rates.device)
                results[name] = editor(normalized(rows, moments) if self._normalize else rows, place)
        return results

    def edited(
        self, transformed: Mapping[str, torch.Tensor], rates: torch.Tensor, before: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Returns the edited weights in float32: W - rate * (sum of outer products of the transformed gradient)."""
        weights: dict[str, torch.Tensor] = {}
        for rate, (name, linear) in zip(rates, self.linears.items(), strict=True):
            weight = before[f"{name}.weight"].detach()
            with full_precision(self.rates.device):
                edit = rate * weight_gradient(transformed[name].float(), linear.in_features)
                weights[f"{name}.weight"] = weight.float() - edit.to(weight.device)
        return weights
