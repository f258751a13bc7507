"""Answers and vectors by key in one SQLite file: they survive a crash, and other processes see them at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from culture_tasks.errors import CultureTasksError

_APPLICATION = 0x43554B49  # marks the file as ours
_SECONDS_TO_LOCK = 60.0


class Store:
    """A file of values, None for memory; every ``put`` is committed before it returns. ``hits`` counts values found."""

    def __init__(self, file: Path | None) -> None:
        self.hits = 0
        self._file = file
        self._run(self._open)

    def get(self, key: str) -> bytes | None:
        """Returns a value, or None."""
        row = self._run(lambda: self._database.execute("SELECT value FROM entries WHERE key = ?", [key]).fetchone())
        self.hits += row is not None
        return None if row is None else bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Stores a value; an existing one stays."""
        self._run(lambda: self._database.execute("INSERT OR IGNORE INTO entries VALUES (?, ?)", [key, value]))

    def __len__(self) -> int:
        return int(self._run(lambda: self._database.execute("SELECT count(*) FROM entries").fetchone()[0]))

    def __del__(self) -> None:
        if hasattr(self, "_database"):
            self._database.close()

    def _open(self) -> None:
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            self._file or ":memory:", _SECONDS_TO_LOCK, isolation_level=None, check_same_thread=False
        )
        is_new = self._database.execute("SELECT name FROM sqlite_master").fetchone() is None
        if not is_new and self._database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise sqlite3.OperationalError("it is another program's database")
        if is_new:
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
        until = time.monotonic() + _SECONDS_TO_LOCK
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError:  # SQLite doesn't wait for a process that switches at the same time
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS entries (key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL)"
        )

    def _run(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            raise CultureTasksError(
                f"insertion: {self._file} can't be used as a store ({error}). Free the disk, delete the file, name "
                "another one, or name 'off'."
            ) from error
