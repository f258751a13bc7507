"""Values by key in one SQLite file: they survive a crash, and other processes see them at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from culture_tasks.errors import CultureTasksError
from culture_tasks.key_value_store import KeyValueStore, T, TableLayout

_LAYOUT = TableLayout(0x43554B49, 1, "entries", {"key": "TEXT", "value": "BLOB NOT NULL"})


class ValueStore(KeyValueStore):
    """A file of values, None for memory; every ``put`` is committed before it returns. ``hits`` counts values found."""

    def __init__(self, file: Path | None) -> None:
        super().__init__(file, _LAYOUT)
        self.hits = 0
        self.get_many([])  # a file that can't be used is refused now

    def __del__(self) -> None:
        """Closes the file."""
        self.close()

    def get(self, key: str) -> bytes | None:
        """Returns a value, or None."""
        rows = self.get_many([key])
        self.hits += len(rows)
        return bytes(rows[0][1]) if rows else None

    def put(self, key: str, value: bytes) -> None:
        """Stores a value; an existing one stays."""
        self.put_many([(key, value)])

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return super()._run(work)
        except (sqlite3.Error, OSError) as error:
            raise CultureTasksError(
                f"insertion: {self._file} can't be used as a store ({error}). Free the disk, delete the file, name "
                "another one, or name 'off'."
            ) from error
