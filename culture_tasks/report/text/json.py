"""The report as JSON: everything but the samples."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
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
    """Writes ``report.json`` and returns its path; a number that isn't there is null."""
    path = folder / "report.json"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(storable(piece) for piece in _pieces(report))
    return [path]


def _pieces(report: Report) -> Iterator[str]:
    """Yields the text, with a line for every entry of a list: so a large report is never whole in memory."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
    yield f'{{\n"format": {FORMAT}'
    for name in _names(Report):
        value = getattr(report, name)
        yield f',\n"{name}": '
        if isinstance(value, Mapping):
            yield from _lines(
                "{}", (f"{encoder.encode(str(key))}: {encoder.encode(each)}" for key, each in value.items())
            )
        elif isinstance(value, tuple):
            yield from _lines("[]", map(encoder.encode, value))
        else:
            yield encoder.encode(value)
    yield "\n}\n"


def _lines(brackets: str, entries: Iterator[str]) -> Iterator[str]:
    yield brackets[0]
    separator = "\n"
    for entry in entries:
        yield f"{separator} {entry}"
        separator = ",\n"
    yield brackets[1] if separator == "\n" else f"\n{brackets[1]}"


def _plain(value: Any) -> Any:
    """Returns what JSON has in place of an object; numbers stand in dataclasses alone."""
    kind: type[Any] = type(value)
    if is_dataclass(kind):
        return {name: _known(getattr(value, name)) for name in _names(kind)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"report.json: no place for {type(value).__name__}")


def _known(value: Any) -> Any:
    return None if type(value) is float and not math.isfinite(value) else value


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.name not in _LEFT_OUT)
