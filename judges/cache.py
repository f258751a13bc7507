"""The verdict cache: raw completions in one SQLite file, safe for several processes, never fatal and never silent.

Completions are stored, not verdicts: they are parsed after reading, so a better parser needs no new calls. Refusals and
failures are not stored. A damaged file is set aside; a file that can't be written is done without, with one warning.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.verdicts import Usage

logger = logging.getLogger(__name__)
T = TypeVar("T")

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x43554C54
_SECONDS_TO_LOCK = 30.0
_KEYS_A_QUERY = 500
_PAGE_CACHE_KILOBYTES = 65_536
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS completions (
    key BLOB NOT NULL PRIMARY KEY,
    subject BLOB NOT NULL,
    endpoint TEXT NOT NULL,
    model TEXT NOT NULL,
    rubric TEXT NOT NULL,
    sample INTEGER NOT NULL,
    text TEXT NOT NULL,
    finish_reason TEXT,
    reply_model TEXT,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    sampling TEXT,
    created REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS completions_subject ON completions (subject);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
_INSERT = f"INSERT OR IGNORE INTO completions VALUES ({','.join('?' * 13)})"  # noqa: S608  # question marks
_COLUMNS = "key, text, finish_reason, reply_model, prompt_tokens, completion_tokens, sampling"


@dataclass(frozen=True, slots=True)
class Row:
    """One completion on its way into the cache."""

    request: ChatRequest
    subject: bytes
    rubric: str
    completion: Completion

    def values(self) -> tuple[object, ...]:
        """Returns the row's columns."""
        request, reply, sampling = self.request, self.completion, self.completion.sampling
        return (
            *(request.key, self.subject, request.endpoint, request.model, self.rubric, request.sample),
            *(reply.text, reply.finish_reason, reply.model, reply.usage.prompt_tokens, reply.usage.completion_tokens),
            *(None if sampling is None else json.dumps(sampling, sort_keys=True), time.time()),
        )


class VerdictCache:
    """The cache file, for one thread.

    Every method does its best and returns: what can't be read is not there, what can't be written is lost with one
    warning for the process.

    Args:
        file: The file, made with its folders if it isn't there; None keeps completions in memory, for this process.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._inode: int | None = None
        self._warned = False
        self._writable = True
        self._database = self._opened()

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        """Reads the completions of these keys, as far as they are there."""
        found: dict[bytes, Completion] = {}
        for start in range(0, len(keys), _KEYS_A_QUERY):
            some = keys[start : start + _KEYS_A_QUERY]
            places = ",".join("?" * len(some))
            query = f"SELECT {_COLUMNS} FROM completions WHERE key IN ({places})"  # noqa: S608  # question marks
            found.update((row[0], _completion(row)) for row in self._read(query, some))
        return found

    def put_many(self, rows: Sequence[Row]) -> None:
        """Stores completions, in one transaction; those that are there already stay as they are."""
        if self._writable:
            values = [row.values() for row in rows]
            self._guarded(partial(self._insert, values), None)

    def first_of(self, subject: bytes) -> Completion | None:
        """Reads any completion about this subject (see :func:`~culture_tasks.judges.completions.subject_key`)."""
        query = f"SELECT {_COLUMNS} FROM completions WHERE subject = ? LIMIT 1"  # noqa: S608  # our own columns
        return next((_completion(row) for row in self._read(query, [subject])), None)

    def holds_all(self, subjects: Iterable[bytes]) -> bool:
        """Whether there is a completion about each of these subjects."""
        return all(self._read("SELECT 1 FROM completions WHERE subject = ? LIMIT 1", [each]) for each in subjects)

    def close(self) -> None:
        """Closes the file."""
        self._database.close()

    def _read(self, query: str, values: Sequence[bytes]) -> list[Any]:
        return self._guarded(partial(self._select, query, values), [])

    def _select(self, query: str, values: Sequence[bytes]) -> list[Any]:
        return self._database.execute(query, values).fetchall()

    def _insert(self, values: Sequence[tuple[object, ...]]) -> None:
        with self._database:
            self._database.executemany(_INSERT, values)

    def _guarded(self, work: Callable[[], T], otherwise: T) -> T:
        """Does work on the file; a damaged file is set aside and the work done once more."""
        try:
            return work()
        except sqlite3.OperationalError as error:
            self._writable = False
            self._warn(error)
        except sqlite3.DatabaseError as error:
            self._set_aside(error)
            self._database = self._opened()
            try:
                return work()
            except sqlite3.Error as again:
                self._warn(again)
        return otherwise

    def _opened(self) -> sqlite3.Connection:
        if self._file is None:
            return _connected(":memory:")
        try:
            return self._opened_file(self._file)
        except (sqlite3.OperationalError, OSError) as error:
            self._warn(error)
        except sqlite3.DatabaseError as error:
            self._set_aside(error)
            try:
                return self._opened_file(self._file)
            except (sqlite3.Error, OSError) as again:
                self._warn(again)
        return _connected(":memory:")

    def _opened_file(self, file: Path) -> sqlite3.Connection:
        file.parent.mkdir(parents=True, exist_ok=True)
        database = _connected(str(file))
        self._inode = file.stat().st_ino
        return database

    def _set_aside(self, error: Exception) -> None:
        """Renames a damaged file, unless another process has done so already."""
        assert self._file is not None
        if hasattr(self, "_database"):
            self._database.close()
        if self._inode is not None and self._file.exists() and self._file.stat().st_ino != self._inode:
            return
        aside = f"{self._file.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
        for suffix in ("", "-wal", "-shm"):
            part = self._file.with_name(self._file.name + suffix)
            if part.exists():
                part.rename(self._file.with_name(aside + suffix))
        logger.warning("verdict cache: %s is damaged (%s): set aside as %s, and begun anew", self._file, error, aside)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "verdict cache: going on without %s (%s): verdicts of this run are not kept. Free the disk, or name a "
                "writable file with CULTURE_JUDGE_CACHE.",
                self._file,
                error,
            )


def _connected(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=_SECONDS_TO_LOCK, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KILOBYTES}")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise sqlite3.OperationalError("written by a newer version of culture-tasks")
        if version < SCHEMA_VERSION:
            database.executescript(_SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _completion(row: tuple[bytes, str, str | None, str | None, int, int, str | None]) -> Completion:
    _, text, finish_reason, model, prompt_tokens, completion_tokens, sampling = row
    usage = Usage(prompt_tokens, completion_tokens)
    return Completion(text, finish_reason, model, usage, None if sampling is None else json.loads(sampling))
