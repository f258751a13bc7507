"""The verdict cache: raw completions in one SQLite file, safe for several processes, never fatal and never silent.

What can't be written for the moment, since the disk is full or another process holds the file, waits in memory and is
written later. A damaged file is set aside, and what can still be read of it is kept. A read-only one is read. Refusals
and failures are not stored.

The cache has a thread of its own: callers hand over completions and go on, and each is committed as it arrives. A
commit takes what has arrived since the one before, and never waits for more: alone, a completion is committed at once;
under load, several share a commit, so that fewer are on their way at a kill, not more.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from culture_tasks.judges.cache_files import (
    COLUMNS,
    SECONDS_TO_LOCK,
    Kept,
    OtherLayoutError,
    Row,
    insert,
    is_damage,
    is_read_only,
    opened,
    read_row,
    salvage,
    set_aside,
)
from culture_tasks.judges.claims import Claims

logger = logging.getLogger(__name__)
T = TypeVar("T")

_KEYS_A_QUERY = 500
_MOST_ROWS_A_COMMIT = 256
_FIRST_RETRY, _LONGEST_RETRY = 1.0, 30.0
_SECONDS_TO_LOCK_IN_TROUBLE = 0.25
_SECONDS_TO_LOCK_AT_THE_END = 30.0
_MOST_WAITING_CHARACTERS = 256 * 1024 * 1024
_CHARACTERS_BESIDE_TEXT = 1000
_UNSTORABLE = (OverflowError, UnicodeEncodeError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)


class VerdictCache:
    """The cache, for one thread.

    Every method does its best and returns: what can't be read is not there, what can't be written waits. One warning
    begins a time of trouble, and one message ends it.

    Args:
        file: The file, made with its folders if it isn't there; None keeps completions in memory, for this process.
        clock: Seconds of a clock that never goes back.
    """

    def __init__(self, file: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._database: sqlite3.Connection | None = None
        self._inode = 0
        self._waiting: dict[bytes, Row] = {}
        self._waiting_characters = 0
        self._lost = 0
        self._unreadable: set[bytes] = set()
        self._in_trouble = False
        self._read_only = False
        self._pause = _FIRST_RETRY
        self._retry_at = 0.0
        self._usable()

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Kept]:
        """Reads the completions of these keys, as far as they are there."""
        rows = ((key, self._waiting.get(key)) for key in keys)
        found = {key: Kept(row.completion, row.created) for key, row in rows if row is not None}
        missing = [key for key in keys if key not in found]
        for start in range(0, len(missing), _KEYS_A_QUERY):
            for row in self._select(missing[start : start + _KEYS_A_QUERY]):
                kept = read_row(row)
                if kept is None:
                    self._note_unreadable(row[0])
                else:
                    found[row[0]] = kept
        return found

    def put_many(self, rows: Sequence[Row]) -> None:
        """Stores completions; those that are there already stay, unless a row is meant to replace one."""
        for row in rows:
            if row.request.key in self._waiting and not row.replaces:
                continue
            size = len(row.completion.text) + _CHARACTERS_BESIDE_TEXT
            if self._waiting_characters + size > _MOST_WAITING_CHARACTERS:
                self._lose(1)
            else:
                self._waiting[row.request.key] = row
                self._waiting_characters += size
        self.write_waiting()

    @property
    def seconds_to_retry(self) -> float | None:
        """Seconds until :meth:`write_waiting` is worth calling again; None where nothing waits to be written."""
        return max(0.0, self._retry_at - self._clock()) if self._waiting and not self._read_only else None

    def write_waiting(self) -> None:
        """Writes what waits, unless the file was in trouble a moment ago."""
        if not self._waiting or self._read_only or self._clock() < self._retry_at:
            return
        rows = list(self._waiting.values())
        replaced = [row.request.key for row in rows if row.replaces or row.request.key in self._unreadable]
        values = [row.values() for row in rows]
        if self._done(lambda database: _stored(database, values, replaced)) is None:
            return
        self._unreadable.difference_update(replaced)
        self._waiting.clear()
        self._waiting_characters = 0
        if self._in_trouble:
            self._end_trouble(len(rows))

    def close(self) -> None:
        """Writes what waits, with more patience than before, and closes the file."""
        if self._waiting:
            self._retry_at = 0.0
            self._wait_for_locks(_SECONDS_TO_LOCK_AT_THE_END)
            self.write_waiting()
        if (self._waiting or self._lost) and not self._read_only:
            logger.warning(
                "verdict cache: %s could not be written until the end: %d completions are lost, and their verdicts "
                "will be asked for again",
                self._file,
                len(self._waiting) + self._lost,
            )
        self._let_go()

    def _select(self, keys: Sequence[bytes]) -> list[Any]:
        query = f"SELECT {COLUMNS} FROM completions WHERE key IN ({','.join('?' * len(keys))})"  # noqa: S608
        return self._done(lambda database: database.execute(query, keys).fetchall()) or []

    def _done(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Does work on the file and returns its result, or None; a damaged file is set aside, and the work redone."""
        for _ in range(2):
            database = self._usable()
            if database is None:
                return None
            try:
                return work(database)
            except sqlite3.Error as error:
                if not is_damage(error):
                    self._begin_trouble(error)
                    return None
                self._replace_file("damaged", error)
        return None

    def _usable(self) -> sqlite3.Connection | None:
        """Returns the open file, opened again if it was closed or somebody replaced it; None where it can't be."""
        if self._database is not None and self._file is not None and _inode(self._file) != self._inode:
            self._let_go()
        if self._database is None and self._clock() >= self._retry_at:
            try:
                self._open()
            except OtherLayoutError as error:
                self._replace_file("other-layout", error)
            except (sqlite3.Error, OSError) as error:
                if is_damage(error):
                    self._replace_file("damaged", error)
                else:
                    self._begin_trouble(error)
        return self._database

    def _open(self) -> None:
        self._database = opened(self._file)
        if self._file is None:
            return
        self._inode = _inode(self._file)
        was_read_only, self._read_only = self._read_only, is_read_only(self._file)
        if self._read_only and not was_read_only:
            logger.warning(
                "verdict cache: %s can only be read: new completions are not kept. Name a writable file with "
                "CULTURE_JUDGE_CACHE to keep them.",
                self._file,
            )

    def _replace_file(self, why: str, error: Exception) -> None:
        """Begins a new file; the old one is renamed, unless another process has done so, and copied as far as it goes.

        Args:
            why: What is wrong with it: becomes part of its new name.
            error: What said so.
        """
        assert self._file is not None
        replaced = self._database is not None and _inode(self._file) != self._inode
        self._let_go()
        aside, saved = None, 0
        try:
            aside = None if replaced else set_aside(self._file, why)
            self._open()
            if aside is not None and self._database is not None:
                saved = salvage(aside, self._database)
        except (sqlite3.Error, OtherLayoutError, OSError) as again:
            self._begin_trouble(again)
        if aside is not None:
            logger.warning(
                "verdict cache: %s can't be read (%s): set aside as %s; %d completions were saved from it",
                self._file,
                error,
                aside.name,
                saved,
            )

    def _begin_trouble(self, error: Exception) -> None:
        if self._in_trouble:
            self._pause = min(2 * self._pause, _LONGEST_RETRY)
        else:
            self._in_trouble = True
            logger.warning(
                "verdict cache: %s can't be used for now (%s): completions wait in memory until it can. Free the disk "
                "or the file, or name a writable one with CULTURE_JUDGE_CACHE.",
                self._file,
                error,
            )
            self._wait_for_locks(_SECONDS_TO_LOCK_IN_TROUBLE)
        self._retry_at = self._clock() + self._pause

    def _end_trouble(self, written: int) -> None:
        self._in_trouble = False
        self._pause = _FIRST_RETRY
        self._wait_for_locks(SECONDS_TO_LOCK)
        logger.warning("verdict cache: %s works again: the %d completions that waited are kept", self._file, written)

    def _wait_for_locks(self, seconds: float) -> None:
        if self._database is not None:
            self._database.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")

    def _lose(self, count: int) -> None:
        if not self._lost:
            logger.warning(
                "verdict cache: too many completions wait for %s: further ones are not kept. Free the disk or the "
                "file, or their verdicts will be asked for again by the next run.",
                self._file,
            )
        self._lost += count

    def _note_unreadable(self, key: bytes) -> None:
        self._unreadable.add(key)
        count = len(self._unreadable)
        if count == 10 ** (len(str(count)) - 1):
            logger.warning(
                "verdict cache: %s: %d rows so far are not as they were written; they are asked again and replaced",
                self._file,
                count,
            )

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def _stored(database: sqlite3.Connection, values: list[tuple[Any, ...]], replaced: list[bytes]) -> bool:
    """Stores rows; True once that is done. One that SQLite can't take must not keep the others out."""
    try:
        insert(database, values, replaced)
    except _UNSTORABLE:
        unstorable = 0
        for row in values:
            try:
                insert(database, [row], [row[0]] if row[0] in replaced else [])
            except _UNSTORABLE:
                unstorable += 1
        logger.warning("verdict cache: %d completions can't be stored, and are not kept", unstorable)
    return True


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class _Call:
    function: Callable[[VerdictCache], Any]
    future: Future[Any]


class CacheThread:
    """A :class:`VerdictCache` in a thread of its own.

    What is asked for is done in order: a completion can be read once :meth:`put` has returned.

    Attributes:
        claims: Completions that this process is asking for; a claim ends when the completion is committed.
    """

    def __init__(self, file: Path | None) -> None:
        self.claims = Claims(file)
        self._file = file
        self._queue: SimpleQueue[Sequence[Row] | _Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="culture-tasks-cache", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[Row]) -> None:
        """Stores completions soon."""
        self._queue.put(rows)

    def get_many(self, keys: Sequence[bytes]) -> Future[dict[bytes, Kept]]:
        """Reads the completions of these keys, as far as they are there."""
        return self.call(lambda cache: cache.get_many(keys))

    def call(self, function: Callable[[VerdictCache], T]) -> Future[T]:
        """Has the thread call a function with the cache."""
        future: Future[T] = Future()
        self._queue.put(_Call(function, future))
        return future

    def flush(self) -> None:
        """Waits until all that was put is committed, or waits for a file that can't be written for now."""
        self.call(lambda _: None).result()

    def close(self) -> None:
        """Commits what was put, closes the file and ends the thread."""
        self._queue.put(None)
        self._thread.join()
        self.claims.close()

    def _run(self) -> None:
        cache = VerdictCache(self._file)
        try:
            while self._serve(cache):
                pass
        finally:
            cache.close()

    def _serve(self, cache: VerdictCache) -> bool:
        """Takes all that waits, and does it in order; False at the end."""
        rows: list[Row] = []
        try:
            task = self._queue.get(timeout=cache.seconds_to_retry)
        except Empty:
            cache.write_waiting()
            return True
        while not (task is None or isinstance(task, _Call)):
            rows += task
            try:
                task = self._queue.get_nowait() if len(rows) < _MOST_ROWS_A_COMMIT else _NOTHING
            except Empty:
                task = _NOTHING
        if rows:
            _store(rows, cache)
            for row in rows:
                self.claims.release(row.request.key)
        if task is None:
            return False
        _answer(task, cache)
        return True


def _store(rows: list[Row], cache: VerdictCache) -> None:
    try:
        cache.put_many(rows)
    except Exception:
        # Broad: the cache handles errors of files itself, and no other error may end the thread that others wait for.
        logger.exception("verdict cache: %d completions are not kept", len(rows))


_NOTHING = _Call(lambda _: None, Future())


def _answer(call: _Call, cache: VerdictCache) -> None:
    if call is _NOTHING or not call.future.set_running_or_notify_cancel():
        return
    try:
        result = call.function(cache)
    except Exception as error:  # noqa: BLE001  # broad: any error of the function is the caller's
        call.future.set_exception(error)
    else:
        call.future.set_result(result)


_lock = threading.Lock()
_open: dict[tuple[int, Path | None], tuple[CacheThread, int]] = {}


def opened_cache(file: Path | None) -> CacheThread:
    """Returns the process's thread for this file; to be given back with :func:`released`."""
    place = (os.getpid(), file)
    with _lock:
        thread, users = _open.get(place) or (CacheThread(file), 0)
        _open[place] = (thread, users + 1)
        return thread


def released(file: Path | None) -> None:
    """Closes the thread for this file after its last user."""
    place = (os.getpid(), file)
    with _lock:
        thread, users = _open.pop(place, (None, 0))
        if users > 1 and thread is not None:
            _open[place] = (thread, users - 1)
            thread = None
    if thread is not None:
        thread.close()
