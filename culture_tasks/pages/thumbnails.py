"""Thumbnails of the images that samples name, from a folder of the user."""

from __future__ import annotations

import base64
import io
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.data.images import KEY_LENGTH, image_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_logger = logging.getLogger(__name__)

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"})
_SIDE = 280
_QUALITY = 70
_KEY = re.compile(rf"[0-9a-f]{{{KEY_LENGTH}}}")
"""The key of an image's content: the first digits of its hash."""


class Thumbnails:
    """Finds images by id, and makes small copies of them.

    An id is a path below the folder, a file name, a file name without its suffix, or the key of a file's content. Only
    files that lie in the folder are ever opened, whatever an id says.
    """

    def __init__(self, folder: Path | None, side: int = _SIDE) -> None:
        """Lists the folder's images.

        Args:
            folder: Where images are looked for, at any depth; None for no images at all.
            side: Most pixels of the longer side of a copy.
        """
        self._side = side
        self._files = {} if folder is None else _by_id(folder)
        self._by_content: Mapping[str, Path] | None = None
        self._addresses: dict[Path, str | None] = {}

    def address(self, image: str | None) -> str | None:
        """Returns a ``data:`` address of a small JPEG, or None where there is no such image or it can't be read."""
        path = self._find(image) if image else None
        if path is None:
            return None
        if path not in self._addresses:
            self._addresses[path] = _address(path, self._side)
        return self._addresses[path]

    def _find(self, image: str) -> Path | None:
        if image in self._files or not _KEY.fullmatch(image):
            return self._files.get(image)
        if self._by_content is None:
            paths = sorted(set(self._files.values()), reverse=True)  # of two files with one content, the first has it
            self._by_content = {image_key(path.read_bytes()): path for path in paths}
        return self._by_content.get(image)


def _by_id(folder: Path) -> Mapping[str, Path]:
    """Returns the folder's images by each of their ids; where two claim one, the first in the order of paths has it."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in _SUFFIXES and path.is_file():
            for name in (path.relative_to(folder).as_posix(), path.name, path.stem):
                found.setdefault(name, path)
    return found


def _address(path: Path, side: int) -> str | None:
    from PIL import Image

    buffer = io.BytesIO()
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            small = image.convert("RGB")
        small.thumbnail((side, side))
        small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        _logger.warning("html: no thumbnail of %s: %s", path, error)
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
