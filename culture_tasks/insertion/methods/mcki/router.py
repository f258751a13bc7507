"""The router mapping phi of section 4.1, which takes frozen hidden states to a normalised vector."""

from __future__ import annotations

import torch
from torch import nn


class Router(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """Maps the means of question and visual states to a vector of length 1.

    Two norms, two projections and a fusion projection (section D.1). The paper names no activation between them, and
    the parameter count of its Table 4 leaves no room for more layers.
    """

    def __init__(self, hidden_size: int, route_dim: int) -> None:
        super().__init__()
        self.question_norm = nn.LayerNorm(hidden_size)
        self.visual_norm = nn.LayerNorm(hidden_size)
        self.question_projection = nn.Linear(hidden_size, route_dim)
        self.visual_projection = nn.Linear(hidden_size, route_dim)
        self.fusion = nn.Linear(2 * route_dim, route_dim)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Maps features of shape (..., 2, hidden size), of the question and of the image, to vectors (..., route dim)."""
        features = features.to(self.fusion.weight.device)
        text = self.question_projection(self.question_norm(features[..., 0, :]))
        image = self.visual_projection(self.visual_norm(features[..., 1, :]))
        return nn.functional.normalize(self.fusion(torch.cat([text, image], dim=-1)), dim=-1)


def make_router(hidden_size: int, route_dim: int, seed: int) -> Router:
    """Makes a router whose first weights depend on the seed alone, and leaves torch's own random state as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Router(hidden_size, route_dim)


def similarities(keys: torch.Tensor, request: torch.Tensor) -> torch.Tensor:
    """Returns the cosine similarities of a request's vector with each key (equation 1), shape (keys,), in [-1, 1]."""
    return nn.functional.cosine_similarity(keys, request[None], dim=-1).clamp(-1.0, 1.0)
