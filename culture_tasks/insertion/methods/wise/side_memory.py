"""WISE's side memories: how a request activates them, what they learn, and how shards become one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from culture_tasks.insertion.methods.wise.config import WiseConfig


@dataclass
class SideMemory:
    """One side memory W', as its difference W' - W from the main memory, in the model's data type.

    ``least`` is the smallest routing activation of the requests that were inserted here; infinite before the first.
    """

    delta: torch.Tensor
    least: float = math.inf


def routing_activations(delta: torch.Tensor, inputs: torch.Tensor, prompts: torch.Tensor) -> torch.Tensor:
    """Returns the activations of equation 3, the norm of A(x) (W' - W), as a mean over the prompt's tokens.

    ``delta`` is W' - W, shape (outputs, inputs); ``inputs`` are A(x), the feed-forward network's last activations,
    shape (requests, tokens, inputs). Activations have the shape (requests,), float32; 0 where both memories are equal.
    """
    norms = torch.linalg.vector_norm(torch.nn.functional.linear(inputs, delta).float(), dim=-1)
    return (norms * prompts).sum(-1) / prompts.sum(-1)


def margin_loss(edit: torch.Tensor, irrelevant: torch.Tensor, config: WiseConfig) -> torch.Tensor:
    """Returns the loss of equation 5, 0 if both activations are as far apart as they should be.

    max(0, i - alpha) + max(0, beta - e) + max(0, gamma - (e - i)), with e and i the activations.
    """
    return (
        torch.relu(irrelevant - config.alpha)
        + torch.relu(config.beta - edit)
        + torch.relu(config.gamma - (edit - irrelevant))
    )


def ties_merged(deltas: Sequence[torch.Tensor], density: float) -> torch.Tensor:
    """Merges shards as in equation 8: trims them, elects each entry's sign, and takes the mean of those that have it.

    Of each shard the share ``density`` of its entries stays, those of the largest size; at least one does. Where the
    sum over shards is 0, the elected sign is plus.
    """
    trimmed = torch.stack([_trimmed(delta, density) for delta in deltas])
    elected = torch.where(trimmed.sum(0) >= 0, 1.0, -1.0)
    agreeing = trimmed.sign() == elected
    return (trimmed * agreeing).sum(0) / agreeing.sum(0).clamp(min=1)


def _trimmed(delta: torch.Tensor, density: float) -> torch.Tensor:
    sizes = delta.float().abs().flatten()
    largest = sizes.topk(max(1, int(density * len(sizes)))).indices
    mask = torch.zeros_like(sizes).index_fill_(0, largest, 1.0).view_as(delta)
    return delta.float() * mask
