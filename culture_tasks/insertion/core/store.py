"""Answers and vectors by key in one SQLite file: they survive a crash, and other processes see them at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from culture_tasks.errors import CultureTasksError

_SECONDS_TO_LOCK = 60.0


class Store:
    """A file of values, None for memory. ``hits`` counts values found."""

    def __init__(self, file: Path | None) -> None:
        self.hits = 0
        self._file = file
        with self._explained():
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(file or ":memory:", _SECONDS_TO_LOCK, check_same_thread=False)
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS entries (key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL)"
            )

    def get(self, key: str) -> bytes | None:
        """Returns a value, or None."""
        with self._explained():
            row = self._database.execute("SELECT value FROM entries WHERE key = ?", [key]).fetchone()
        self.hits += row is not None
        return None if row is None else bytes(row[0])

    def put(self, values: Mapping[str, bytes]) -> None:
        """Stores values, all of them or none, before it returns; existing ones stay."""
        with self._explained(), self._database:
            self._database.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?)", values.items())

    def __len__(self) -> int:
        with self._explained():
            return int(self._database.execute("SELECT count(*) FROM entries").fetchone()[0])

    def __del__(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CultureTasksError(
                f"insertion: {self._file} can't be used as a store ({error}). Free the disk, delete the file, name "
                "another one, or name 'off'."
            ) from error
