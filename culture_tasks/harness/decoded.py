"""Data sets whose rows are at hand as Python objects.

A harness walks over its documents two or three times, and a ``datasets.Dataset`` decodes each row from Arrow each time,
which costs more than all that a task does with it. Our documents are Python objects before they are a data set.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import datasets


class DecodedDataset(datasets.Dataset):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """A data set that hands out the rows that it was made of; what is derived from it is an ordinary data set."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Makes a data set.

        Args:
            rows: The rows, as they would be decoded: with the same fields each, and lists where tuples could be.
        """
        self._plain = datasets.Dataset.from_list([dict(row) for row in rows])
        self._rows = rows
        super().__init__(self._plain.data, info=self._plain.info, fingerprint=self._plain._fingerprint)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self._formatted else (dict(row) for row in self._rows)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int) and not self._formatted:
            return dict(self._rows[key])
        return super().__getitem__(key)

    @property
    def _formatted(self) -> bool:
        return self._format_type is not None or self._format_columns is not None

    def __copy__(self) -> datasets.Dataset:
        return self._derived()

    def __deepcopy__(self, memo: dict[int, Any]) -> datasets.Dataset:
        """Copies for a derived data set, which has other columns: the rows at hand aren't its rows."""
        return self._derived()

    def _derived(self) -> datasets.Dataset:
        derived = copy.deepcopy(self._plain)
        if self._formatted:
            derived.set_format(**self.format)
        return derived
