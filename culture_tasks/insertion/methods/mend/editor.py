"""MEND's editors: small networks that turn the gradient of a weight into an edit of it.

The gradient of a linear map's weight is a sum over tokens of delta u^T, with u the map's input and delta the gradient
of the loss at its output. An editor transforms u and delta of each token, so it never sees the weight's full gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import nn

from culture_tasks.insertion.core.training import full_precision
from culture_tasks.insertion.methods.mend.config import MendConfig

EPSILON = 1e-7
"""Is added to deviations before gradients are divided by them."""


def token_gradients(
    linears: Mapping[str, nn.Linear], losses: Callable[[], torch.Tensor]
) -> list[dict[str, torch.Tensor]]:
    """Computes the gradients of losses at linear maps, token by token; tokens without any gradient are left out.

    Nothing below the first of these maps is differentiated, and no weight gets a gradient.

    Args:
        linears: Linear maps by name; each is used once in the losses.
        losses: Computes the loss of each row of a batch, shape (rows,).

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


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, mean and sum of squared deviations of rows, which can be merged with the moments of other rows.

    ``values`` is one vector of the count, the means and the sums; shape (1 + 2 * width,), float64.
    """

    values: torch.Tensor

    @classmethod
    def none(cls, width: int) -> Moments:
        """Returns the moments of no rows."""
        return cls(torch.zeros(1 + 2 * width, dtype=torch.float64))

    @classmethod
    def of(cls, rows: torch.Tensor) -> Moments:
        """Returns the moments of rows, shape (rows, width)."""
        if not len(rows):
            return cls(torch.zeros(1 + 2 * rows.shape[1], dtype=torch.float64, device=rows.device))
        wide = rows.double()
        mean = wide.mean(0)
        return cls(torch.cat([wide.new_tensor([len(wide)]), mean, (wide - mean).square().sum(0)]))

    def merged(self, other: Moments) -> Moments:
        """Returns the moments of both sets of rows together."""
        mine, theirs = self.values, other.values.to(self.values.device)
        width = (len(mine) - 1) // 2
        count = mine[:1] + theirs[:1]
        share = theirs[:1] / count.clamp(min=1)
        difference = theirs[1 : 1 + width] - mine[1 : 1 + width]
        mean = mine[1 : 1 + width] + difference * share
        squares = mine[1 + width :] + theirs[1 + width :] + difference.square() * mine[:1] * share
        return Moments(torch.cat([count, mean, squares]))

    def normalized(self, rows: torch.Tensor) -> torch.Tensor:
        """Returns rows less the mean, divided by the deviation; as they are if fewer than two rows were seen."""
        width, count = rows.shape[1], self.values[0]
        if count < 2:
            return rows
        mean, squares = self.values[1 : 1 + width], self.values[1 + width :]
        deviation = (squares / (count - 1)).sqrt()
        return ((rows.double() - mean) / (deviation + EPSILON)).float()


class Editor(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """Transforms the gradients of all weights of one shape; before training it changes nothing.

    Each of the ``weights`` that share it has its own scale and shift.
    """

    def __init__(self, *, inputs: int, outputs: int, weights: int, rank: int, hidden_layers: int) -> None:
        super().__init__()
        width = inputs + outputs
        self.layers = nn.ModuleList(
            _ResidualLayer(width, weights=weights, rank=min(rank, width)) for _ in range(hidden_layers + 1)
        )
        self.register_buffer("moments", Moments.none(width).values)

    def forward(self, rows: torch.Tensor, weight: int, moments: Moments | None) -> torch.Tensor:
        """Transforms a gradient, token by token; without moments it isn't normalised."""
        if moments is not None:
            rows = moments.normalized(rows)
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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.of_shape = nn.ModuleDict(
                {
                    shape: Editor(
                        inputs=linears[names[0]].in_features,
                        outputs=linears[names[0]].out_features,
                        weights=len(names),
                        rank=config.rank,
                        hidden_layers=config.hidden_layers,
                    )
                    for shape, names in self._sharing.items()
                }
            )
        self.rates = nn.Parameter(torch.full((len(linears),), config.edit_rate))
        self.requires_grad_(requires_grad=False)
        self.to(next(iter(linears.values())).weight.device)

    def moments(self, gradients: Mapping[str, torch.Tensor]) -> dict[str, Moments]:
        """Returns the moments of gradients, by the shape of their weights."""
        return {
            shape: functools.reduce(Moments.merged, (Moments.of(self._placed(gradients[name])) for name in names))
            for shape, names in self._sharing.items()
        }

    def absorb(self, moments: Mapping[str, Moments]) -> None:
        """Adds moments to the running ones."""
        for shape, more in moments.items():
            running = self._running(shape)
            running.values.copy_(running.merged(more).values)

    def transformed(
        self, gradients: Mapping[str, torch.Tensor], more: Mapping[str, Moments] | None = None
    ) -> dict[str, torch.Tensor]:
        """Returns the transformed gradients of one edit, normalised by the running moments and by ``more``."""
        results: dict[str, torch.Tensor] = {}
        for shape, names in self._sharing.items():
            moments = self._running(shape) if more is None else self._running(shape).merged(more[shape])
            for place, name in enumerate(names):
                rows = self._placed(gradients[name])
                results[name] = self.of_shape[shape](rows, place, moments if self._normalize else None)
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

    def _placed(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.rates.device)

    def _running(self, shape: str) -> Moments:
        return Moments(self.of_shape[shape].moments)
