"""What data were read from, which results and manifests name, and the fingerprint of rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DataReading:
    """What data were read from."""

    commits: Mapping[str, str] = field(default_factory=dict)  # of the Hub that was read, by data set
    differences: Mapping[str, str] = field(default_factory=dict)  # of a user's file from the authors' release, by file

    def __or__(self, other: DataReading) -> DataReading:
        """Returns both as one."""
        return DataReading({**self.commits, **other.commits}, {**self.differences, **other.differences})


def fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns a hash of data: two runs compare only where they saw the same rows.

    It is the first 16 hexadecimal digits of the SHA-256 of the rows as canonical JSON, one a line, in their order.
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n")
    return digest.hexdigest()[:16]
