"""Thumbnails of the images that samples name, from a folder of the user."""

from __future__ import annotations

import base64
import io
import logging
import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from culture_tasks.data.files import files_below
from culture_tasks.data.images import KEY_LENGTH, as_rgb, image_key
from culture_tasks.errors import DataError

_logger = logging.getLogger(__name__)

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"})
_SIDE = 280
"""Most pixels of the longer side of a thumbnail."""
_QUALITY = 70
_KEY = re.compile(rf"[0-9a-f]{{{KEY_LENGTH}}}")


class Thumbnails:
    """Finds images by id, and makes small copies of them.

    An id is a path below the folder, a file name, one without its suffix, or the key of a file's content. Only files
    that lie in the folder, at any depth, are ever opened, whatever an id says.
    """

    def __init__(self, folder: Path | None, side: int = _SIDE) -> None:
        self._side = side
        self._files: dict[str, Path] = {}
        self._addresses: dict[Path, str | None] = {}
        if folder is None:
            return
        for path in files_below(folder):
            if path.suffix.lower() in _SUFFIXES:
                self._files.setdefault(path.name, path)
                self._files.setdefault(path.stem, path)
                self._files[path.relative_to(folder).as_posix()] = path  # goes before a name

    def address(self, image: str | None) -> str | None:
        """Returns a ``data:`` address of a small JPEG, or None where there is no such image or it can't be read."""
        path = self._files.get(image or "")
        if path is None and image and _KEY.fullmatch(image):
            path = self._paths_by_key.get(image)
        if path is None:
            return None
        if path not in self._addresses:
            self._addresses[path] = _address(path, self._side)
        return self._addresses[path]

    @cached_property
    def _paths_by_key(self) -> dict[str, Path]:
        paths = {}
        for path in sorted(set(self._files.values()), reverse=True):
            with suppress(OSError):  # a file that can't be read has no key
                paths[image_key(path.read_bytes())] = path
        return paths


def _address(path: Path, side: int) -> str | None:
    from PIL import Image, ImageOps

    buffer = io.BytesIO()
    try:
        with Image.open(path) as image:
            image.draft("RGB", (side, side))
            ImageOps.exif_transpose(image, in_place=True)
            small = as_rgb(image)
            small.thumbnail((side, side))
        small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    except (DataError, OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        _logger.warning("html: no thumbnail of %s: %s", path, error)
        return None
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
