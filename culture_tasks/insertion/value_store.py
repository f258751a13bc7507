"""Values by key in one SQLite file: they survive a crash, and other processes see them at once."""

from __future__ import annotations

import sqlite3
import weakref
from pathlib import Path
from types import TracebackType

from culture_tasks.errors import CultureTasksError

_SECONDS_TO_LOCK = 60.0
_APPLICATION_ID = 0x43554B49
SCHEMA_VERSION = 1
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS entries (key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""


class ValueStore:
    """A file of values; every ``put`` is committed before it returns.

    Args:
        file: The file, created with its folders if it doesn't exist; None keeps values in memory.

    Raises:
        CultureTasksError: If the file can't be opened, or is something else.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        try:
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._database = _connected(":memory:" if file is None else str(file))
            weakref.finalize(self, self._database.close)
        except (sqlite3.Error, OSError) as error:
            raise CultureTasksError(
                f"insertion: {file} can't be used as a store ({error}). Delete it, name another file, or name 'off'."
            ) from None

    def __enter__(self) -> ValueStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: str) -> bytes | None:
        """Returns a value, or None."""
        row = self._database.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Stores a value; an existing one stays.

        Raises:
            CultureTasksError: If the file can't be written.
        """
        try:
            with self._database:
                self._database.execute("INSERT OR IGNORE INTO entries VALUES (?, ?)", (key, value))
        except sqlite3.Error as error:
            raise CultureTasksError(f"insertion: {self._file} can't be written ({error}). Free the disk.") from error

    def __len__(self) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM entries").fetchone()[0])

    def close(self) -> None:
        """Closes the file."""
        self._database.close()


def _connected(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=_SECONDS_TO_LOCK, check_same_thread=False)
    try:
        found = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, _APPLICATION_ID) or version > SCHEMA_VERSION:
            raise sqlite3.DatabaseError("another program's file, or one by a newer version of culture-tasks")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        if version < SCHEMA_VERSION:
            database.executescript(_SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database
