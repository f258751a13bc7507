"""Thumbnails of the images that samples name, from a folder of the user's."""

from __future__ import annotations

import base64
import io
import logging
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.data.images import KEY_LENGTH, image_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_logger = logging.getLogger(__name__)

_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"})
_SIDE = 280
_MOST_PIXELS = 60_000_000
_QUALITY = 70
_KEY = re.compile(rf"[0-9a-f]{{{KEY_LENGTH}}}")
"""What stands for the content of an image: the first digits of its hash."""


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
        self._made: dict[Path, str | None] = {}

    def address(self, image: str | None) -> str | None:
        """Returns a ``data:`` address of a small JPEG, or None where there is no such image or it can't be read."""
        path = self._find(image) if image else None
        if path is None:
            return None
        if path not in self._made:
            self._made[path] = _address(path, self._side)
        return self._made[path]

    def _find(self, image: str) -> Path | None:
        if image in self._files or not _KEY.fullmatch(image):
            return self._files.get(image)
        if self._by_content is None:
            self._by_content = _by_key(self._files.values())
        return self._by_content.get(image)


def _address(path: Path, side: int) -> str | None:
    try:
        return f"data:image/jpeg;base64,{base64.b64encode(_thumbnail(path, side)).decode('ascii')}"
    except (OSError, ValueError, SyntaxError, Warning) as error:
        _logger.warning("html: no thumbnail of %s: %s", path, error)
        return None


def _by_id(folder: Path) -> Mapping[str, Path]:
    """Returns the folder's images by each of their ids; where two claim one, the first in the order of paths has it."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in _SUFFIXES and path.is_file():
            for name in (path.relative_to(folder).as_posix(), path.name, path.stem):
                found.setdefault(name, path)
    return found


def _by_key(paths: Iterable[Path]) -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(set(paths)):
        try:
            found.setdefault(image_key(path.read_bytes()), path)
        except OSError as error:
            _logger.warning("html: can't read the image %s: %s", path, error)
    return found


def _thumbnail(path: Path, side: int) -> bytes:
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path) as image:
            if image.width * image.height > _MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are too many")
            image.draft("RGB", (side, side))
            small = image.convert("RGB")
    small.thumbnail((side, side))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    return buffer.getvalue()
