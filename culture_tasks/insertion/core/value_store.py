"""Values by key in one SQLite file: they survive a crash, and other processes see them at once."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from culture_tasks.errors import CultureTasksError
from culture_tasks.key_value_store import KeyValueStore, TableLayout

_LAYOUT = TableLayout(0x43554B49, 1, "entries", {"key": "TEXT", "value": "BLOB NOT NULL"})


class ValueStore:
    """A file of values, None for memory; every ``put`` is committed before it returns. ``hits`` counts values found."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._store = KeyValueStore(file, _LAYOUT)
        self.hits = 0
        weakref.finalize(self, self._store.close)
        with self._in_use():
            self._store.get_many([])

    def __enter__(self) -> ValueStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: str) -> bytes | None:
        """Returns a value, or None."""
        with self._in_use():
            rows = self._store.get_many([key])
        self.hits += len(rows)
        return bytes(rows[0][1]) if rows else None

    def put(self, key: str, value: bytes) -> None:
        """Stores a value; an existing one stays."""
        with self._in_use():
            self._store.put_many([(key, value)])

    def __len__(self) -> int:
        return len(self._store)

    def close(self) -> None:
        """Closes the file."""
        self._store.close()

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CultureTasksError(
                f"insertion: {self._file} can't be used as a store ({error}). Free the disk, delete the file, name "
                "another one, or name 'off'."
            ) from error
