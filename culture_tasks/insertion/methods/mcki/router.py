"""The knowledge memory of section 4.1, and the router that finds an entry of it.

The router mapping phi takes frozen hidden states to a normalised vector. An entry m_j = (k_j, e_j) is an insertion
sample e_j with its vector k_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from culture_tasks.insertion.queries import Insertion


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


@dataclass(frozen=True, slots=True)
class Match:
    """The entry nearest to a request.

    Attributes:
        place: j*, from 0 in the order of insertion.
        similarity: sim(x, m_j*), in [-1, 1].
        entry: The stored sample e_j*.
    """

    place: int
    similarity: float
    entry: Insertion


class Memory:
    """Insertion samples with their router keys."""

    def __init__(self) -> None:
        self._entries: list[Insertion] = []
        self._keys: list[torch.Tensor] = []

    def __len__(self) -> int:
        return len(self._entries)

    def write(self, key: torch.Tensor, entry: Insertion) -> None:
        """Stores an entry; nothing is replaced, so the same sample may be stored twice.

        Args:
            key: k_j, shape (route dim,).
            entry: e_j.
        """
        self._keys.append(key)
        self._entries.append(entry)

    def nearest(self, request: torch.Tensor) -> Match:
        """Returns the entry with the largest cosine similarity (equation 1); of equal ones the first inserted.

        Args:
            request: r(x), shape (route dim,).

        Raises:
            LookupError: If the memory is empty.
        """
        if not self._entries:
            raise LookupError("mcki: the memory is empty. Insert a sample first.")
        similarities = torch.nn.functional.cosine_similarity(torch.stack(self._keys), request[None], dim=-1).tolist()
        place = max(range(len(similarities)), key=similarities.__getitem__)
        return Match(place, min(1.0, max(-1.0, similarities[place])), self._entries[place])

    def clear(self) -> None:
        """Forgets all entries."""
        self._entries.clear()
        self._keys.clear()
