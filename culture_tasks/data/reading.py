"""What data were read from, which results and manifests name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DataReading:
    """What data were read from.

    Attributes:
        commits: The commit of the Hub that was read, by data set.
        differences: How a user's file differs from the authors' release, by file.
    """

    commits: Mapping[str, str] = field(default_factory=dict)
    differences: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: DataReading) -> DataReading:
        """Returns both as one."""
        return DataReading({**self.commits, **other.commits}, {**self.differences, **other.differences})
