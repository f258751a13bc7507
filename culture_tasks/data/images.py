"""Image columns: finding the files, and making sure that every image can be decoded before a model sees one."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from culture_tasks.data.files import RowTable
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
_BATCH = 64
_PILLOW_LOCK = threading.Lock()
_FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "MPO", "PNG", "PPM", "TIFF", "WEBP")
"""Formats that are read. Of Pillow's others, some are programs: it has Ghostscript run PostScript."""
_EXPECTED = f"Expected one of {', '.join(_FORMATS)}. Replace the image, or remove the row."

_MODES = frozenset(["1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV"])
"""Pillow's modes of at most eight bits that it can convert to RGB."""
_BITS, _WHITE_IS = 258, 262  # tags of TIFF: bits per sample, and whether white is 0

_EXPECTED_MODE = "Expected grey, a palette, RGB or CMYK. Save the image as RGB with 8 bits."

_Reader: TypeAlias = Callable[[], bytes]


def read_image(content: bytes) -> Image:
    """Returns the image that a file's content holds, turned as its EXIF data say, by :func:`as_rgb`."""
    import datasets

    return as_rgb(datasets.Image().decode_example({"bytes": content, "path": None}))


def as_rgb(image: Image) -> Image:
    """Returns an image in RGB as people see it: more than eight bits are scaled, and transparency lies on white.

    An image in RGB is returned as it is.

    Raises:
        DataError: If its values have no known white, or its mode is another.
    """
    from PIL.Image import alpha_composite, new

    if image.mode[0] in "IF":
        image = _in_eight_bits(image)
    if image.mode not in _MODES:
        raise DataError(f"found Pillow's mode {image.mode}. {_EXPECTED_MODE}")
    if image.has_transparency_data:
        straight = image.convert({"La": "LA", "RGBa": "RGBA"}.get(image.mode, image.mode)).convert("RGBA")
        image = alpha_composite(new("RGBA", image.size, "white"), straight)
    return image if image.mode == "RGB" else image.convert("RGB")


def _in_eight_bits(image: Image) -> Image:
    """Scales grey of 12 or 16 bits, or of floats from 0 to 1, to eight bits."""
    import numpy as np
    from PIL.Image import fromarray

    tags: Mapping[int, Any] = getattr(image, "tag_v2", {})
    if image.mode == "I" and image.format not in ("PNG", "PPM"):  # of these, Pillow reads 16 bits so
        raise DataError(f"found integers of 32 bits. {_EXPECTED_MODE}")
    white = 1.0 if image.mode == "F" else 2.0 ** tags.get(_BITS, (16,))[0] - 1.0
    values = np.asarray(image).astype(np.float32)
    if not (values.min() >= 0.0 and values.max() <= white):
        raise DataError(f"found values from {values.min():g} to {values.max():g}, not 0 to {white:g}. {_EXPECTED_MODE}")
    grey = fromarray(np.rint((white - values if tags.get(_WHITE_IS) == 0 else values) * (255.0 / white)).astype("u1"))
    if "transparency" in image.info:
        grey.putalpha(fromarray(np.where(values == image.info["transparency"], 0, 255).astype("u1")))
    return grey


def image_column(table: RowTable, names: Sequence[str | None], folder: Path, most: int) -> datasets.Dataset:
    """Returns the images of a table as :func:`column_of` does, checked by :func:`image_problems`."""
    list(or_raise(image_problems(table, names, folder, most, set())))
    return column_of(table, names, folder)


def column_of(table: RowTable, names: Sequence[str | None], folder: Path) -> datasets.Dataset:
    """Returns the images of a table as a one-column data set named ``image``, not decoded yet."""
    import datasets

    if table.images is not None:
        images = _undecoded_images(table.images)
    else:
        paths = [_find_file(table.where(index), name, folder) for index, name in enumerate(names)]
        images = datasets.Dataset.from_dict({"image": list(map(str, paths))})
    return images.cast_column("image", datasets.Image())


def image_keys(table: RowTable, names: Sequence[str | None], folder: Path) -> list[str]:
    """Returns for each row a hash of its image's bytes, which is the same for copies of one image.

    A file that can't be read is identified by its name, and a row without image by an empty text.
    """
    keys = []
    for index, (name, read) in enumerate(zip(names, _embedded_readers(table), strict=True)):
        try:
            content = read() if read else _find_file(table.where(index), name, folder).read_bytes()
        except (DataError, OSError):
            content = (name or "").encode("utf-8", "surrogatepass")
        keys.append(image_key(content) if content else "")
    return keys


def image_key(content: bytes) -> str:
    """Returns the key of an image with these bytes: the first digits of their SHA-256."""
    return hashlib.sha256(content).hexdigest()[:KEY_LENGTH]


def _undecoded_images(images: datasets.Dataset) -> datasets.Dataset:
    import datasets

    return images.rename_columns({images.column_names[0]: "image"}).cast_column("image", datasets.Image(decode=False))


def _embedded_readers(table: RowTable) -> Iterator[_Reader | None]:
    """Yields for each row a reader of its embedded image; None where the table embeds no images.

    The user's own file may not point to an arbitrary file by its path.
    """
    if table.images is None:
        yield from itertools.repeat(None, len(table.rows))
        return
    for row in _undecoded_images(table.images):
        cell: dict[str, Any] = row["image"] or {"bytes": None, "path": None}
        is_file = cell["bytes"] is None and cell["path"] and not table.local
        yield Path(cell["path"]).read_bytes if is_file else partial(bytes, cell["bytes"] or b"")


def _find_file(where: str, name: str | None, folder: Path) -> Path:
    if not name:
        raise DataError(f"{where}, field 'image': found nothing. Expected the name of an image file.")
    for candidate in (folder / name, folder / "images" / name):
        try:
            is_file = candidate.is_file()
        except (OSError, ValueError):  # a name that no file can have, such as an image's own bytes
            continue
        if is_file and not _is_inside(candidate, folder):
            raise DataError(f"{where}, field 'image': {name!r:.200} is outside {folder}. Expected a file inside it.")
        if is_file and (size := candidate.stat().st_size) > _MOST_BYTES:
            raise DataError(
                f"{where}, field 'image': {name!r:.200} has {size:,} bytes. Expected {_MOST_BYTES:,} at most. "
                "Scale the image down."
            )
        if is_file:
            return candidate.resolve()
    raise DataError(
        f"{where}, field 'image': no file {name!r:.200} in {folder} or {folder / 'images'}. "
        "Add the file, or correct the name."
    )


def _is_inside(file: Path, folder: Path) -> bool:
    """Whether a file is in a folder or in a linked folder below it; not if it is itself a link that leads elsewhere."""
    if file.resolve().is_relative_to(folder.resolve()):
        return True
    return not file.is_symlink() and Path(os.path.abspath(file)).is_relative_to(os.path.abspath(folder))  # noqa: PTH100


def image_problems(
    table: RowTable, names: Sequence[str | None], folder: Path, most: int, seen: set[Path]
) -> Generator[str, None, None]:
    """Yields the problems of the images of a table's rows, of which one batch is in memory at a time.

    Args:
        table: The rows; embedded images take precedence over file names.
        names: For each row its image file, absolute or relative to ``folder`` or to ``folder/images``.
        folder: Folder of the images.
        most: Largest number of pixels.
        seen: Files that are passed over, where several rows or tables share images; this table's are added.
    """

    def unseen() -> Iterator[tuple[str, str | None, _Reader | None]]:
        for index, (name, read) in enumerate(zip(names, _embedded_readers(table), strict=False)):
            if read or not name or folder / name not in seen:
                seen.update([folder / name] if name else [])
                yield table.where(index), name, read

    def problem(row: tuple[str, str | None, _Reader | None]) -> str | None:
        where, name, read = row
        try:
            reason = _reason(read or _find_file(where, name, folder).read_bytes, most)
        except DataError as error:
            return str(error)
        return reason and f"{where}, field 'image': {reason}"

    rows = unseen()
    with _strict_pillow(), ThreadPoolExecutor() as pool:
        while batch := list(itertools.islice(rows, _BATCH)):
            yield from filter(None, pool.map(problem, batch))


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


def _reason(read: _Reader, most: int) -> str | None:
    """Decodes an image at the smallest size that its format offers, which still reads all data of the file.

    Its header alone says whether it has too many pixels.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        content = read()
        if not content:
            return f"found an empty image. {_EXPECTED}"
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
