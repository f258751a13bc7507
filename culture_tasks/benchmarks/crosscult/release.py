"""Loading a release: raw cases, and the draw that the user keeps or the default one."""

from __future__ import annotations

import logging
from pathlib import Path

from culture_tasks.benchmarks.crosscult.construction import Release
from culture_tasks.benchmarks.crosscult.draw import FILE_NAME, read_draw
from culture_tasks.benchmarks.crosscult.drawing import make_draw
from culture_tasks.benchmarks.crosscult.raw_cases import load

_log = logging.getLogger(__name__)


def load_release(data_folder: Path | None) -> Release:
    """Loads the raw cases with their split and pairing.

    Args:
        data_folder: The user's data folder, or None. A ``crosscult_draw.json`` in it goes before the default draw.

    Raises:
        DataError: If the data or the draw can't be used.
    """
    raw = load(data_folder)
    path = draw_file(data_folder)
    if path is None:
        return Release(raw, make_draw(raw))
    _log.info("reading %s", path)
    return Release(raw, read_draw(path, raw))


def draw_file(data_folder: Path | None) -> Path | None:
    """Returns the draw that the user keeps, or None."""
    path = None if data_folder is None else data_folder / FILE_NAME
    return path if path is not None and path.is_file() else None
