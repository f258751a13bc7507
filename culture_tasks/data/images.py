"""Image columns: finding the files, and making sure that every image can be decoded before a model sees one."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.data.tables import RowTable
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    import datasets

KEY_LENGTH = 16
"""Hexadecimal digits of an image's SHA-256 that identify it; two of a million images collide once in 10^7 data sets."""

_SMALL = (64, 64)
_LARGE = 8_000_000
"""Pixels from which images are decoded one at a time, by one thread: each takes up to four bytes a pixel."""
_BATCH = 64
_PILLOW_LOCK = threading.Lock()

_most_pixels: ContextVar[int] = ContextVar("image_pixels", default=int(Settings.model_fields["image_pixels"].default))


@contextlib.contextmanager
def image_pixels(most: int) -> Iterator[None]:
    """Sets, for a block of code, how many pixels an image may have."""
    token = _most_pixels.set(most)
    try:
        yield
    finally:
        _most_pixels.reset(token)


def image_column(
    table: RowTable, names: Sequence[str | None], folder: Path, checked: set[Path] | None = None
) -> datasets.Dataset:
    """Returns the checked images of a table as a one-column data set named ``image``, not decoded yet.

    Args:
        table: The rows; embedded images take precedence over file names.
        names: For each row its image file, absolute or relative to ``folder`` or to ``folder/images``.
        folder: Folder of the table's file.
        checked: Files that were checked before, where several tables share images; this table's are added.

    Raises:
        DataError: For the first row whose image is missing, outside the folder, or broken.
    """
    import datasets

    if table.images is not None:
        raw = _undecoded(table.images)
        _check(table, (_embedded(row["image"], table.local) for row in raw))
        return raw.cast_column("image", datasets.Image())
    paths = [_file(table.where(index), name, folder) for index, name in enumerate(names)]
    known = set() if checked is None else checked
    _check(table, (None if path in known else path.read_bytes for path in paths))
    known.update(paths)
    return datasets.Dataset.from_dict({"image": [str(path) for path in paths]}).cast_column("image", datasets.Image())


def broken_images(table: RowTable, names: Sequence[str | None], folder: Path) -> Iterator[str]:
    """Checks images in batches, looks for the broken ones in a bad batch, and says what is wrong with each.

    Args:
        table: The rows.
        names: As for ``image_column``.
        folder: As for ``image_column``.
    """
    for start in range(0, len(names), _BATCH):
        indices = range(start, min(start + _BATCH, len(names)))
        if _image_problem(table.part(indices), [names[index] for index in indices], folder) is not None:
            each = (_image_problem(table.part([index]), [names[index]], folder) for index in indices)
            yield from (problem for problem in each if problem is not None)


def _image_problem(table: RowTable, names: Sequence[str | None], folder: Path) -> str | None:
    try:
        image_column(table, names, folder)
    except DataError as error:
        return str(error)
    return None


def image_keys(table: RowTable, names: Sequence[str | None], folder: Path, *, needed: bool = True) -> list[str | None]:
    """Returns for each row a hash of its image's bytes, which is the same for copies of one image.

    Args:
        table: The rows.
        names: As for ``image_column``.
        folder: As for ``image_column``.
        needed: Whether each row must have its image. If not, a file that can't be read is identified by its name, and
            a row without image gets None.

    Raises:
        DataError: For the first row whose image is missing or outside the folder, if it is needed.
    """
    if table.images is not None:
        contents = (_embedded(row["image"], table.local)() for row in _undecoded(table.images))
        return [image_key(content) if content or needed else None for content in contents]
    return [_file_key(table.where(index), name, folder, needed=needed) for index, name in enumerate(names)]


def _file_key(where: str, name: str | None, folder: Path, *, needed: bool) -> str | None:
    try:
        return image_key(_file(where, name, folder).read_bytes())
    except (DataError, OSError):
        if needed:
            raise
        return image_key(name.encode("utf-8", "surrogatepass")) if name else None


def image_key(content: bytes) -> str:
    """Returns the key of an image with these bytes: the first digits of their SHA-256."""
    return hashlib.sha256(content).hexdigest()[:KEY_LENGTH]


def _undecoded(images: datasets.Dataset) -> datasets.Dataset:
    import datasets

    return images.rename_columns({images.column_names[0]: "image"}).cast_column("image", datasets.Image(decode=False))


def _embedded(cell: dict[str, Any] | None, local: bool) -> Callable[[], bytes]:
    """Returns a reader of an embedded image; the user's own file may not point to an arbitrary file by its path."""
    content, path = (None, None) if cell is None else (cell["bytes"], cell["path"])
    if content is None and path and not local:
        return Path(path).read_bytes
    return lambda: content or b""


def _file(where: str, name: str | None, folder: Path) -> Path:
    if not name:
        raise DataError(f"{where}, field 'image': found nothing. Expected the name of an image file.")
    for candidate in (folder / name, folder / "images" / name):
        if not _is_file(candidate):
            continue
        path = candidate.resolve()
        if not path.is_relative_to(folder.resolve()):
            raise DataError(f"{where}, field 'image': {name!r:.200} is outside {folder}. Expected a file inside it.")
        return path
    raise DataError(
        f"{where}, field 'image': no file {name!r:.200} in {folder} or {folder / 'images'}. "
        "Add the file, or correct the name."
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long or that no file can have, such as an image's own bytes
        return False


Reader = Callable[[], bytes]


def _check(table: RowTable, readers: Iterable[Reader | None]) -> None:
    """Checks the images of a table's rows; None is one that was checked before."""
    most = _most_pixels.get()
    with _strict_pillow(), ThreadPoolExecutor() as pool, ThreadPoolExecutor(1) as alone:
        check = partial(_problem, most=most, alone=alone)
        for index, problem in enumerate(_problems(pool, check, iter(readers))):
            if problem is not None:
                raise DataError(f"{table.where(index)}, field 'image': {problem}")


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


def _problems(
    pool: ThreadPoolExecutor, check: Callable[[Reader | None], str | None], readers: Iterator[Reader | None]
) -> Iterator[str | None]:
    """Checks images in batches, of which one is in memory at a time."""
    while batch := list(itertools.islice(readers, _BATCH)):
        yield from pool.map(check, batch)


def _problem(read: Reader | None, most: int, alone: ThreadPoolExecutor) -> str | None:
    """Decodes an image at the smallest size that its format offers, which still reads all data of the file.

    Its header alone says whether it has too many pixels.
    """
    from PIL import Image

    if read is None:
        return None
    try:
        content = read()
        if not content:
            return f"found an empty image. {_EXPECTED}"
        with Image.open(io.BytesIO(content)) as image:
            pixels = image.width * image.height
            if pixels > most:
                return (
                    f"found {image.width:,} x {image.height:,} pixels, {pixels:,} in all. Expected {most:,} at most. "
                    "Scale the image down, or set CULTURE_TASKS_IMAGE_PIXELS."
                )
            image.draft(image.mode, _SMALL)
            if pixels > _LARGE:
                alone.submit(image.load).result()
            else:
                image.load()
    except (OSError, ValueError, SyntaxError) as error:
        return f"broken image ({error}). {_EXPECTED}"
    return None


_EXPECTED = "Expected a PNG, JPEG or other image that Pillow can open. Replace the image, or remove the row."
