"""The knowledge memory of section 4.1: entries m_j = (k_j, e_j)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from culture_tasks.insertion.queries import Insertion


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
        """Stores an entry; nothing is replaced, the same sample can stand in it twice.

        Args:
            key: k_j, shape (route dim,).
            entry: e_j.
        """
        self._keys.append(key)
        self._entries.append(entry)

    def nearest(self, request: torch.Tensor) -> Match:
        """Returns the entry with the largest cosine similarity (equation 1); of equal ones the one inserted first.

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
