"""The verdict cache: raw completions in one SQLite file, safe for several processes, never fatal and never silent.

Completions that can't be written for the moment, since the disk is full or another process holds the file, wait in
memory and are written later. Refusals and failures are not stored.

A thread writes: callers hand over completions and go on, and each is committed as it arrives. A commit takes all
completions that have arrived since the one before, and never waits for more: alone, a completion is committed at once;
under load, several share a commit, so that fewer are on their way at a kill, not more.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from culture_tasks.judges.cache.cache_files import LAYOUT, CachedRow, read_row, refuse_foreign
from culture_tasks.judges.completions import Answer
from culture_tasks.key_value_store import KeyValueStore, is_read_only
from culture_tasks.settings import user_cache_file

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

_SECONDS_TO_RETRY = 30.0
_BYTES_OF_A_PLACE = 7


class VerdictCache:
    """The cache, for one thread at a time.

    No method raises: a row that can't be read is not there, and a completion that can't be written waits. One warning
    begins a time of trouble, and one message ends it. Without a file, completions are kept in memory. A read-only one
    is read, and new completions are written to :func:`writable_file`.
    """

    def __init__(self, file: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = writable_file(file)
        self._clock = clock
        self._store = KeyValueStore(self._file, LAYOUT)
        self._read_only = [] if file == self._file else [KeyValueStore(file, LAYOUT)]
        if self._read_only:
            here = "for this process alone. Name a writable file, made with `culture-tasks cache merge`, to keep them"
            where = f"in {self._file}" if self._file else here
            logger.warning("verdict cache: %s is read-only: new completions are kept %s", file, where)
        self._waiting: dict[bytes, CachedRow] = {}
        self._in_trouble = False
        self._retry_at = 0.0

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Reads the completions of these keys, as far as they are there."""
        waiting = [self._waiting[key] for key in keys if key in self._waiting]
        completions = {row.request.key: Answer(row.completion, kept_since=row.created) for row in waiting}
        for store in (self._store, *self._read_only):
            damaged: list[bytes] = []
            try:
                for row in store.get_many([key for key in keys if key not in completions]):
                    if (answer := read_row(row)) is not None:
                        completions[row[0]] = answer
                    elif store is self._store:
                        damaged.append(row[0])
                if damaged:
                    logger.warning(
                        "verdict cache: %s: %d rows are not as they were written; they are deleted and asked again",
                        self._file,
                        len(damaged),
                    )
                    store.put_many([], replaced=damaged)
            except (sqlite3.Error, OSError) as error:
                if store is self._store:
                    self._begin_trouble(error)
                    continue
                self._read_only = []
                logger.warning(
                    "verdict cache: the read-only file can't be used (%s): its completions are asked again", error
                )
        return completions

    def put_many(self, rows: Sequence[CachedRow]) -> None:
        """Stores completions, in one transaction; one that is there stays, unless the row replaces it."""
        for row in rows:
            if row.replaces or row.request.key not in self._waiting:
                self._waiting[row.request.key] = row
        if self._clock() >= self._retry_at:
            self._write()

    def close(self) -> None:
        """Writes the completions that wait, and closes the file."""
        self._write()
        if self._waiting:
            logger.warning(
                "verdict cache: %s could not be written until the end: %d completions are lost, and their verdicts "
                "will be asked for again",
                self._file,
                len(self._waiting),
            )
        for store in (self._store, *self._read_only):
            store.close()

    def _write(self) -> None:
        rows = self._waiting.values()
        if not rows:
            return
        try:
            self._store.put_many(
                [row.values() for row in rows], replaced=[row.request.key for row in rows if row.replaces]
            )
        except (sqlite3.InterfaceError, sqlite3.DataError, sqlite3.ProgrammingError, OverflowError, UnicodeError):
            logger.exception("verdict cache: %d completions can't be stored, and are not kept", len(rows))
        except (sqlite3.Error, OSError) as error:
            self._begin_trouble(error)
            return
        if self._in_trouble:
            self._in_trouble = False
            logger.warning("verdict cache: %s works again: all completions that waited are kept", self._file)
        self._waiting.clear()

    def _begin_trouble(self, error: Exception) -> None:
        self._retry_at = self._clock() + _SECONDS_TO_RETRY
        if not self._in_trouble:
            self._in_trouble = True
            logger.warning(
                "verdict cache: %s can't be used for now (%s): completions wait in memory until it can. Free the disk "
                "or the file, or name a writable one with CULTURE_JUDGE_CACHE.",
                self._file,
                error,
            )


def writable_file(file: Path | None) -> Path | None:
    """Returns the file that new completions are written to: beside a read-only one that of the user's cache folder.

    None where that can't be written either: completions are kept in memory.
    """
    if file is None or not is_read_only(file):
        return file
    user_file = user_cache_file()
    folder = next(folder for folder in user_file.parents if folder.exists())
    return None if is_read_only(user_file) or not os.access(folder, os.W_OK) else user_file


class Claims:
    """What this process is asking for, as other processes of this machine see it.

    A claim is a lock on one byte of an empty file beside the cache, at a place that the completion's key determines.
    The system drops a process's locks when it ends, however that happens. Where there are no locks (on Windows, a
    read-only disk, some network file systems), every claim succeeds.
    """

    def __init__(self, cache: Path | None) -> None:
        self._keys: set[bytes] = set()
        self._file: int | None = None
        if cache is not None and sys.platform != "win32":
            with suppress(OSError):
                cache.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(
                    cache.with_name(f"{cache.name}-claims"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666
                )

    def claim(self, key: bytes) -> bool:
        """Claims a completion; False where another process has done so."""
        if self._file is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except OSError as error:
            return error.errno not in (errno.EACCES, errno.EAGAIN)
        self._keys.add(key)
        return True

    def release(self, key: bytes) -> None:
        """Gives up a claim, if there is one."""
        if self._file is not None and key in self._keys:
            self._keys.discard(key)
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(key))

    def close(self) -> None:
        """Gives up all claims."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _place(key: bytes) -> int:
    return int.from_bytes(key[:_BYTES_OF_A_PLACE])


class CacheThread:
    """A thread with a :class:`VerdictCache`, for several judges: a completion can be read once ``put`` has returned."""

    def __init__(self, file: Path | None) -> None:
        self.users = 0
        self.claims = Claims(writable_file(file))  # each ends when the completion is committed
        self._file = file
        self._lock = threading.Lock()
        self._arrived: list[CachedRow] = []
        # Keys to look up, with the future that takes what is there; None ends the thread.
        self._calls: SimpleQueue[tuple[Sequence[bytes], Future[dict[bytes, Answer]]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="culture-tasks-cache", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[CachedRow]) -> None:
        """Stores completions soon, together with others that arrive meanwhile."""
        with self._lock:
            wakes = not self._arrived
            self._arrived += rows
        if wakes:
            self.get_many([])

    def get_many(self, keys: Sequence[bytes]) -> Future[dict[bytes, Answer]]:
        """Commits all rows that were put, then reads the completions of these keys, as far as they are there."""
        future: Future[dict[bytes, Answer]] = Future()
        self._calls.put((keys, future))
        return future

    def flush(self) -> None:
        """Waits until all that was put is committed, or waits for a file that can't be written for now."""
        self.get_many([]).result()

    def close(self) -> None:
        """Commits all rows that were put, closes the file and ends the thread."""
        self.get_many([])
        self._calls.put(None)
        self._thread.join()
        self.claims.close()

    def _run(self) -> None:
        cache = VerdictCache(self._file)
        while (call := self._calls.get()) is not None:
            keys, future = call
            with self._lock:
                rows, self._arrived = self._arrived, []
            completions: dict[bytes, Answer] = {}
            try:
                cache.put_many(rows)
                completions = cache.get_many(keys) if keys else {}
            except Exception:
                # Broad: the cache handles errors of files itself, and no other may end the thread that others need.
                logger.exception("verdict cache: completions can't be kept or looked up")
            for row in rows:
                self.claims.release(row.request.key)
            if future.set_running_or_notify_cancel():
                future.set_result(completions)
        cache.close()


_lock = threading.Lock()
_open: dict[tuple[int, Path | None], CacheThread] = {}


def open_cache(file: Path | None) -> CacheThread:
    """Returns the process's thread for this file; to be given back with :func:`release_cache`.

    A file that is no verdict cache is a ``JudgeError``.
    """
    place = (os.getpid(), file)
    refuse_foreign(file)
    with _lock:
        if place not in _open:
            _open[place] = CacheThread(file)
        _open[place].users += 1
        return _open[place]


def release_cache(file: Path | None) -> None:
    """Closes the thread for this file after its last user."""
    place = (os.getpid(), file)
    with _lock:
        thread = _open[place]
        thread.users -= 1
        if thread.users:
            return
        del _open[place]
    thread.close()
