"""The report as JSON: everything but the samples."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from culture_tasks.report.model import Report
from culture_tasks.text import storable

FORMAT = 1
"""Version of the layout of ``report.json``."""

_LEFT_OUT = frozenset(("samples", "times"))


def write_json(report: Report, folder: Path) -> list[Path]:
    """Writes ``report.json``, a line for every entry of a list, and returns its path; a missing number is null."""
    path = folder / "report.json"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f'{{\n"format": {FORMAT}')
        for name in _names(Report):
            file.write(storable(f',\n"{name}": {_in_lines(getattr(report, name))}'))
        file.write("\n}\n")
    return [path]


def _in_lines(value: Any) -> str:
    if isinstance(value, Mapping):
        (start, end), entries = "{}", [f"{_encode(str(key))}: {_encode(one)}" for key, one in value.items()]
    elif isinstance(value, tuple):
        (start, end), entries = "[]", [_encode(one) for one in value]
    else:
        return _encode(value)
    return start + ",".join(f"\n {entry}" for entry in entries) + ("\n" if entries else "") + end


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """Returns an object as JSON has it; all numbers are in dataclasses."""
    if not is_dataclass(value):
        return dict(value)
    kind: Any = type(value)
    values = {name: getattr(value, name) for name in _names(kind)}
    return {name: None if type(one) is float and not math.isfinite(one) else one for name, one in values.items()}


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in _LEFT_OUT)
