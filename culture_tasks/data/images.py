"""Images of rows: finding the files, and making sure that each can be decoded before a model sees one."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.data.files import Rows
from culture_tasks.data.rows import or_raise
from culture_tasks.errors import DataError

if TYPE_CHECKING:
    import datasets
    from PIL.Image import Image

KEY_LENGTH = 16
"""Hexadecimal digits of an image's SHA-256 that identify it; two of a million images collide once in 10^7 data sets."""

_SMALL = (64, 64)
_LARGE, _ONE_LARGE = 8_000_000, threading.Lock()
"""Pixels from which images are decoded one at a time: each takes up to four bytes a pixel."""
_MOST_BYTES = 400_000_000
"""Bytes of a file that is read: more than the most pixels that are allowed by default take without compression."""
_PILLOW_LOCK = threading.Lock()
_FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "MPO", "PNG", "PPM", "TIFF", "WEBP")
"""Formats that are read. Of Pillow's others, some are programs: it has Ghostscript run PostScript."""
_EXPECTED = f"Expected one of {', '.join(_FORMATS)}. Replace the image, or remove the row."
_MODES = frozenset(["1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV"])
"""Pillow's modes of at most eight bits that it can convert to RGB."""


def read_image(content: bytes) -> Image:
    """Returns the image that a file's content holds, turned as its EXIF data say, by :func:`as_rgb`."""
    import datasets

    return as_rgb(datasets.Image().decode_example({"bytes": content, "path": None}))


def as_rgb(image: Image) -> Image:
    """Returns an image in RGB as people see it, with transparency on white; one in RGB is returned as it is.

    Raises DataError if it has more than eight bits, or a mode that Pillow can't convert.
    """
    from PIL.Image import alpha_composite, new

    if image.mode not in _MODES:
        raise DataError(f"found Pillow's mode {image.mode}. Expected RGB with 8 bits. Save the image in this mode.")
    if image.has_transparency_data:
        straight = image.convert({"La": "LA", "RGBa": "RGBA"}.get(image.mode, image.mode)).convert("RGBA")
        image = alpha_composite(new("RGBA", image.size, "white"), straight)
    return image if image.mode == "RGB" else image.convert("RGB")


def image_key(content: bytes) -> str:
    """Returns the key of an image with these bytes: the first digits of their SHA-256."""
    return hashlib.sha256(content).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True)
class Images:
    """The images of rows: embedded in them, or else files."""

    found: Rows[Any]
    names: Sequence[str | None]  # of each row's file, absolute or relative to the rows' folder or `images` in it

    @cached_property
    def _embedded(self) -> datasets.Dataset | None:
        """The embedded images, undecoded, as a column ``image``."""
        import datasets

        if self.found.embedded is None:
            return None
        images = self.found.embedded.rename_columns({self.found.embedded.column_names[0]: "image"})
        return images.cast_column("image", datasets.Image(decode=False))

    def read(self, index: int) -> bytes:
        """Returns the bytes of a row's image; the user's own file may not point to an arbitrary file by its path."""
        if self._embedded is None:
            return self._file(index).read_bytes()
        cell: dict[str, Any] = self._embedded[index]["image"] or {"bytes": None, "path": None}
        if cell["bytes"] is None and cell["path"] and not self.found.local:
            return Path(cell["path"]).read_bytes()
        return bytes(cell["bytes"] or b"")

    def keys(self) -> list[str]:
        """Returns for each row a hash of its image's bytes, which is the same for copies of one image.

        A file that can't be read is identified by its name, and a row without image by an empty text.
        """
        keys = []
        for index, name in enumerate(self.names):
            try:
                content = self.read(index)
            except (DataError, OSError):
                content = (name or "").encode("utf-8", "surrogatepass")
            keys.append(image_key(content) if content else "")
        return keys

    def column(self, most: int | None = None) -> datasets.Dataset:
        """Returns them as a data set of one column ``image``, not decoded yet; checked before for ``most`` pixels."""
        import datasets

        if most is not None:
            list(or_raise(self.problems(most, set())))
        images = self._embedded
        if images is None:
            paths = [str(self._file(index)) for index in range(len(self.names))]
            images = datasets.Dataset.from_dict({"image": paths})
        return images.cast_column("image", datasets.Image())

    def problems(self, most: int, seen: set[Path]) -> Generator[str, None, None]:
        """Yields what is wrong with images, of which a few are in memory at a time.

        ``most`` is the largest number of pixels. Files in ``seen`` are passed over, where several rows or tables share
        images; these rows' are added.
        """
        indices = []
        for index, name in enumerate(self.names):
            file = self.found.folder / name if name and self._embedded is None else None
            if file is None or file not in seen:
                indices.append(index)
                seen.update([file] if file else [])

        def problem(index: int) -> str | None:
            try:
                reason = _problem(self.read(index), most)
            except DataError as error:
                return str(error)
            except OSError as error:
                reason = f"broken image ({error}). {_EXPECTED}"
            return reason and f"{self.found.where(index)}, field 'image': {reason}"

        with _strict_pillow():
            pool = ThreadPoolExecutor()
            try:
                yield from filter(None, pool.map(problem, indices))
            finally:
                pool.shutdown(cancel_futures=True)

    def _file(self, index: int) -> Path:
        name, folder = self.names[index], self.found.folder
        where = f"{self.found.where(index)}, field 'image'"
        for candidate in (folder / name, folder / "images" / name) if name else ():
            try:
                size = candidate.stat().st_size if candidate.is_file() else None
            except (OSError, ValueError):  # a name that no file can have, such as an image's own bytes
                continue
            if size is None:
                continue
            if not _is_inside(candidate, folder):
                raise DataError(f"{where}: {name!r:.200} is outside {folder}. Expected a file inside it.")
            if size > _MOST_BYTES:
                raise DataError(f"{where}: {name!r:.200} has {size:,} bytes. Expected {_MOST_BYTES:,} at most.")
            return candidate.resolve()
        raise DataError(
            f"{where}: {f'no file {name!r:.200}' if name else 'found nothing'} in {folder} or {folder / 'images'}. "
            "Expected an image file. Add the file, or correct the name."
        )


def _is_inside(file: Path, folder: Path) -> bool:
    """Whether a file is in a folder or in a linked folder below it; not if it is itself a link that leads elsewhere."""
    if file.resolve().is_relative_to(folder.resolve()):
        return True
    return not file.is_symlink() and Path(os.path.abspath(file)).is_relative_to(os.path.abspath(folder))  # noqa: PTH100


@contextlib.contextmanager
def _strict_pillow() -> Iterator[None]:
    """Makes Pillow refuse damaged images, whose missing part lmms-eval makes it fill with grey in the whole process.

    Large images are left to us: Pillow's own warning and error don't say which one it is.
    """
    from PIL import Image, ImageFile

    with _PILLOW_LOCK:
        lenient, most = ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS
        ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = False, None
        try:
            yield
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = lenient, most


def _problem(content: bytes, most: int) -> str | None:
    """Decodes an image at the smallest size that its format offers, which still reads all data of the file.

    Its header alone says whether it has too many pixels.
    """
    from PIL import Image, UnidentifiedImageError

    if not content:
        return f"found an empty image. {_EXPECTED}"
    try:
        with Image.open(io.BytesIO(content)) as image:
            if image.format not in _FORMATS:
                return f"found the format {image.format}. {_EXPECTED}"
            pixels = image.width * image.height
            if pixels > most:
                return (
                    f"found {image.width:,} x {image.height:,} pixels, {pixels:,} in all. Expected {most:,} at most. "
                    "Scale the image down, or set CULTURE_TASKS_IMAGE_PIXELS."
                )
            image.draft(image.mode, _SMALL)
            with _ONE_LARGE if pixels > _LARGE else contextlib.nullcontext():
                image.load()
                if image.mode not in _MODES:
                    as_rgb(image)
    except DataError as error:
        return str(error)
    except UnidentifiedImageError:  # its own words name a place in memory
        return f"broken image (in no known format). {_EXPECTED}"
    except (OSError, ValueError, SyntaxError) as error:
        return f"broken image ({error}). {_EXPECTED}"
    return None
