"""Data sets whose rows are at hand as Python objects.

A harness walks over its documents two or three times, and a ``datasets.Dataset`` decodes each row from Arrow each time,
which costs more than all that a task does with it. Our documents are Python objects before they are a data set. Their
images are decoded when a row is read; rows that show the same image share it as long as anybody holds it, since lm-eval
holds all of a task's documents and requests at once.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import datasets

from culture_tasks.data.images import image_key, read_image

if TYPE_CHECKING:
    from PIL.Image import Image

_images: WeakValueDictionary[str, Image] = WeakValueDictionary()


class DecodedDataset(datasets.Dataset):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """A data set that hands out the rows that it was made of; what is derived from it is an ordinary data set."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], images: datasets.Dataset | None = None) -> None:
        """Takes the rows as they would be decoded, with lists where tuples could be, and columns of images."""
        self._plain = datasets.Dataset.from_list([dict(row) for row in rows])
        self._rows = rows
        self._image_columns: list[str] = []
        if images is not None:
            self._plain = datasets.concatenate_datasets([self._plain, images], axis=1)
            self._image_columns = [name for name, kind in images.features.items() if kind.decode]
            for name in self._image_columns:
                images = images.cast_column(name, datasets.Image(decode=False))
        self._images = images
        super().__init__(self._plain.data, info=self._plain.info, fingerprint=self._plain._fingerprint)

    @property
    def content_key(self) -> str:
        """Hash of all rows, images included."""
        digest = hashlib.sha256(json.dumps(list(self._rows), default=str, sort_keys=True).encode())
        for cells in self._images or ():
            for name in self._image_columns:
                digest.update(image_key(_content(cells[name])).encode())
        return digest.hexdigest()

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self._has_format else map(self._row, range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int) and not self._has_format:
            return self._row(key)
        return super().__getitem__(key)

    def _row(self, index: int) -> dict[str, Any]:
        if self._images is None:
            return dict(self._rows[index])
        cells = self._images[index]
        return {**self._rows[index], **cells, **{name: _shared_image(cells[name]) for name in self._image_columns}}

    @property
    def _has_format(self) -> bool:
        return self._format_type is not None or self._format_columns is not None

    def __deepcopy__(self, memo: dict[int, Any]) -> datasets.Dataset:
        """Copies for a derived data set, which has other columns: the rows at hand aren't its rows."""
        derived = copy.deepcopy(self._plain)
        if self._has_format:
            derived.set_format(**self.format)
        return derived


def _content(cell: Mapping[str, Any]) -> bytes:
    return Path(cell["path"]).read_bytes() if cell["bytes"] is None else bytes(cell["bytes"])


def _shared_image(cell: Mapping[str, Any]) -> Image:
    """Returns an image in RGB, the same object for the same content."""
    content = _content(cell)
    key = image_key(content)
    image = _images.get(key)
    if image is None:
        image = _images[key] = read_image(content)
    return image
