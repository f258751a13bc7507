"""The router mapping phi of section 4: frozen hidden states in, a normalised vector out."""

from __future__ import annotations

import torch
from torch import nn


class Router(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """Maps the means of question and visual states to a vector of length 1.

    Two norms, two projections and a fusion projection (section D.1). The paper names no activation between them, and
    the parameter count of its Table 4 leaves no room for more layers.

    Args:
        hidden_size: Width of the model's hidden states.
        route_dim: Width of the vector.
    """

    def __init__(self, hidden_size: int, route_dim: int) -> None:
        super().__init__()
        self.question_norm = nn.LayerNorm(hidden_size)
        self.visual_norm = nn.LayerNorm(hidden_size)
        self.question_projection = nn.Linear(hidden_size, route_dim)
        self.visual_projection = nn.Linear(hidden_size, route_dim)
        self.fusion = nn.Linear(2 * route_dim, route_dim)

    def forward(self, question: torch.Tensor, visual: torch.Tensor) -> torch.Tensor:
        """Maps requests.

        Args:
            question: Means over question tokens, shape (..., hidden size).
            visual: Means over visual tokens, of the same shape.

        Returns:
            Vectors of length 1, shape (..., route dim).
        """
        text = self.question_projection(self.question_norm(question))
        image = self.visual_projection(self.visual_norm(visual))
        return nn.functional.normalize(self.fusion(torch.cat([text, image], dim=-1)), dim=-1)


def make_router(hidden_size: int, route_dim: int, seed: int) -> Router:
    """Makes a router whose first weights depend on the seed alone, and leaves torch's own random state as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Router(hidden_size, route_dim)
