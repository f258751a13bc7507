"""Lines of JSON, read fast and one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of a file that are not blank, each with its offset."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if not line.isspace():
                yield offset, line
            offset += len(line)


def parse(line: bytes) -> Any:
    """Parses JSON; what the fast parser refuses, such as half of a surrogate pair, is tried again.

    Raises:
        ValueError: If it isn't JSON in UTF-8.
    """
    try:
        return from_json(line, cache_strings="keys")
    except ValueError:
        return json.loads(line)
