"""The report as JSON: everything but the samples."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from culture_tasks.report.model import Report
from culture_tasks.text import storable

FORMAT = 1
"""Version of the layout of ``report.json``."""

_LEFT_OUT = frozenset(("samples", "times"))


def write_json(report: Report, folder: Path) -> list[Path]:
    """Writes ``report.json`` and returns its path."""
    path = folder / "report.json"
    path.write_text(as_json(report), encoding="utf-8", newline="\n")
    return [path]


def as_json(report: Report) -> str:
    """Returns the report as JSON; a number that isn't there is null."""
    return (
        storable(json.dumps({"format": FORMAT} | _plain(report), ensure_ascii=False, indent=1, allow_nan=False)) + "\n"
    )


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value) if each.name not in _LEFT_OUT}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, frozenset)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
