"""GRACE's codebook: keys with values, each within a radius (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

MARGIN = 1e-5
"""Is taken from the older of two split radii, so that no key is within both."""


@dataclass
class CodebookEntry:
    """A key with its learned value, both float32 vectors; a request within the radius of the key uses it."""

    key: torch.Tensor
    value: torch.Tensor
    radius: float
    answer: str


class Codebook:
    """The entries, in the order of their insertion."""

    def __init__(self, radius: float) -> None:
        self.entries: list[CodebookEntry] = []
        self._radius = radius

    def entry_for(self, key: torch.Tensor, answer: str, value: torch.Tensor) -> CodebookEntry:
        """Returns the entry that is to learn an answer, after adding, expanding or splitting.

        With d the distance of the nearest key, whose radius is r, and e the first radius: if d > e + r, a new entry
        with radius e is added. Otherwise, if the nearest entry has the same answer, its radius becomes at least d and
        its value learns on. If it has another answer, a new entry is added, and both radii become d / 2. The same
        request again, d = 0, replaces the answer.
        ``value`` is the first value of a new entry.
        """
        radius = self._radius
        if self.entries:
            distances = self._distances(key[None])[0]
            nearest = self.entries[int(distances.argmin())]
            distance = float(distances.min())
            if distance <= self._radius + nearest.radius:
                if nearest.answer == answer or distance == 0:
                    nearest.answer, nearest.radius = answer, max(nearest.radius, distance)
                    return nearest
                radius = distance / 2
                nearest.radius = radius - MARGIN
        self.entries.append(CodebookEntry(key, value, radius, answer))
        return self.entries[-1]

    def lookup(self, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the values of the entries nearest to keys, and whether each key is within its entry's radius.

        Shapes are (requests, inputs) of keys, (requests, outputs) of values and (requests,).
        """
        distances, nearest = self._distances(keys).min(dim=1)
        radii = torch.tensor([entry.radius for entry in self.entries], device=keys.device)
        values = torch.stack([self.entries[place].value for place in nearest.tolist()])
        return values, distances <= radii[nearest]

    def _distances(self, keys: torch.Tensor) -> torch.Tensor:
        """Returns Euclidean distances, shape (requests, entries), without the rounding of a matrix product."""
        own = torch.stack([entry.key for entry in self.entries])
        return torch.cdist(keys, own, compute_mode="donot_use_mm_for_euclid_dist")
