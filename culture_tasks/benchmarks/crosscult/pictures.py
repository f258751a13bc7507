"""The images of raw cases as checked files.

A raw case's image is shown by dozens of documents. Images embedded in a table are therefore written out once, under the
hash of their content, instead of being copied into each document.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from culture_tasks.benchmarks.crosscult.raw_cases import RawCases
from culture_tasks.data.images import image_column

_FOLDER = "culture-tasks-images"


class Pictures:
    """Finds and checks images, each once, when a task needs it."""

    def __init__(self, raw: RawCases) -> None:
        """Checks nothing yet.

        Args:
            raw: The raw cases.
        """
        self._raw = raw
        self._files: dict[int, str] = {}

    def files(self, rows: Iterable[int]) -> list[str]:
        """Returns the image files of these raw cases, in the same order.

        Raises:
            DataError: For the first one that is missing or broken.
        """
        asked = list(rows)
        new = sorted(set(asked) - self._files.keys())
        if new:
            self._files |= dict(zip(new, self._checked(new), strict=True))
        return [self._files[row] for row in asked]

    def _checked(self, rows: list[int]) -> list[str]:
        import datasets

        names = [self._raw.image_names[row] for row in rows]
        images = image_column(self._raw.table.part(rows), names, self._raw.folder)
        cells = images.cast_column("image", datasets.Image(decode=False))
        return [_file(cell["image"]["bytes"], cell["image"]["path"]) for cell in cells]


def _file(content: bytes | None, path: str) -> str:
    if content is None:
        return path
    import datasets

    folder = Path(os.fspath(datasets.config.HF_DATASETS_CACHE)) / _FOLDER
    file = folder / hashlib.sha256(content).hexdigest()
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{file.name}.{uuid.uuid4().hex}"
        unfinished.write_bytes(content)
        unfinished.replace(file)
    return str(file)
