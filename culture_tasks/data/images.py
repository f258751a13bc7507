"""Image columns: finding the files, and making sure that every image can be decoded before a model sees one."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError

if TYPE_CHECKING:
    import datasets

_SMALL = (64, 64)
_BATCH = 64


def image_column(table: Table, names: Sequence[str | None], folder: Path) -> datasets.Dataset:
    """Returns the checked images of a table as a one-column data set named ``image``, not decoded yet.

    Args:
        table: The rows; embedded images go before file names.
        names: For each row its image file, absolute or relative to ``folder`` or to ``folder/images``.
        folder: Folder of the table's file.

    Raises:
        DataError: For the first row whose image is missing, outside the folder, or broken.
    """
    import datasets

    if table.images is not None:
        column = table.images.rename_columns({table.images.column_names[0]: "image"})
        raw = column.cast_column("image", datasets.Image(decode=False))
        _check(table, (_embedded(row["image"]) for row in raw))
        return column.cast_column("image", datasets.Image())
    paths = [_file(table, index, name, folder) for index, name in enumerate(names)]
    _check(table, (path.read_bytes for path in paths))
    return datasets.Dataset.from_dict({"image": [str(path) for path in paths]}).cast_column("image", datasets.Image())


def _embedded(cell: dict[str, Any] | None) -> Callable[[], bytes]:
    if cell is None or (cell.get("bytes") is None and not cell.get("path")):
        return lambda: b""
    content, path = cell["bytes"], cell["path"]
    return (lambda: content) if content is not None else Path(path).read_bytes


def _file(table: Table, index: int, name: str | None, folder: Path) -> Path:
    where = f"{table.where(index)}, field 'image'"
    if not name:
        raise DataError(f"{where}: found nothing. Needed is the name of an image file.")
    for candidate in (folder / name, folder / "images" / name):
        path = candidate.resolve()
        if not path.is_file():
            continue
        if not path.is_relative_to(folder.resolve()):
            raise DataError(f"{where}: {name!r} lies outside {folder}. Needed is a file inside it.")
        return path
    raise DataError(f"{where}: no file {name!r} in {folder} or {folder / 'images'}. Add the file, or correct the name.")


def _check(table: Table, readers: Iterable[Callable[[], bytes]]) -> None:
    with ThreadPoolExecutor() as pool:
        for index, problem in enumerate(_problems(pool, iter(readers))):
            if problem is not None:
                raise DataError(
                    f"{table.where(index)}, field 'image': {problem}. Needed is a PNG, JPEG or other image that Pillow "
                    "can open. Replace the image, or remove the row."
                )


def _problems(pool: ThreadPoolExecutor, readers: Iterator[Callable[[], bytes]]) -> Iterator[str | None]:
    """Checks images in small batches, so that only a batch of them is in memory at a time."""
    while batch := list(itertools.islice(readers, _BATCH)):
        yield from pool.map(_problem, batch)


def _problem(read: Callable[[], bytes]) -> str | None:
    """Decodes an image at the smallest size that its format offers, which still reads all of its data."""
    from PIL import Image

    try:
        content = read()
        if not content:
            return "found an empty image"
        with Image.open(io.BytesIO(content)) as image:
            image.draft(image.mode, _SMALL)
            image.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return f"broken image ({error})"
    return None
