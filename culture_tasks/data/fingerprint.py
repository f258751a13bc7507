"""Fingerprints of data: two runs can be compared only if they saw the same rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any


def fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns the first 16 hexadecimal digits of the SHA-256 of the rows as canonical JSON, in their order."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode("ascii"))
        digest.update(b"\n")
    return digest.hexdigest()[:16]
