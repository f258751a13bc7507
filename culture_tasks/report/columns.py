"""Samples as columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]


class Vocabulary:
    """Numbers names from 0 on in the order in which they come; shared by files, so that equal names are one number."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        """Returns the number of a name."""
        return self.codes.setdefault(name, len(self.codes))

    @property
    def names(self) -> list[str]:
        """The names in the order of their numbers."""
        return list(self.codes)


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names.

    Attributes:
        codes: One number a sample.
        names: The names that the numbers stand for.
    """

    codes: Codes
    names: tuple[str, ...]

    def equals(self, name: str) -> Mask:
        """Returns which samples have this name."""
        if name not in self.names:
            return np.zeros(self.codes.size, dtype=np.bool_)
        found: Mask = self.codes == self.names.index(name)
        return found

    def present(self) -> list[str]:
        """Returns the names that occur, in the order in which they first came."""
        counts = np.bincount(self.codes, minlength=len(self.names))
        return [name for name, count in zip(self.names, counts, strict=True) if count]


@dataclass(frozen=True, slots=True)
class Columns:
    """The samples of one run.

    Attributes:
        items: The item of each sample, numbered alike in all runs.
        scores: Its score on the benchmark's scale; NaN without one.
        scored: Number of its verdicts that were scored.
        verdicts: Number of its verdicts.
        clusters: What it shares with others, numbered alike in all runs.
        offsets: Where its line begins in the file.
        groups: Its groups, by field.
        extra: Its second score, or an empty array.
    """

    items: Codes
    scores: Floats
    scored: NDArray[np.int16]
    verdicts: NDArray[np.int16]
    clusters: Codes
    offsets: NDArray[np.int64]
    groups: Mapping[str, Coded]
    extra: Floats

    def where(self, pairs: Sequence[tuple[str, str]]) -> Mask:
        """Returns which samples belong to all of these groups; none where a field isn't there."""
        mask = np.ones(self.items.size, dtype=np.bool_)
        for name, value in pairs:
            mask &= self.groups[name].equals(value) if name in self.groups else False
        return mask
