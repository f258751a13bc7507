"""The verdict cache's own thread: callers hand over completions and go on, each is committed as it arrives.

A commit takes what has arrived since the one before, and never waits for more: alone, a completion is committed at
once; under load, several share a commit, so that fewer are on their way at a kill, not more.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from culture_tasks.judges.cache import VerdictCache
from culture_tasks.judges.cache_files import Kept, Row

logger = logging.getLogger(__name__)
T = TypeVar("T")

_MOST_ROWS_A_COMMIT = 256


@dataclass(frozen=True, slots=True)
class _Call:
    function: Callable[[VerdictCache], Any]
    future: Future[Any]


class CacheThread:
    """A :class:`~culture_tasks.judges.cache.VerdictCache` in a thread of its own.

    What is asked for is done in order: a completion can be read once :meth:`put` has returned.
    """

    def __init__(self, file: Path | None) -> None:
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
        if task is None:
            return False
        _answer(task, cache)
        return True


def _store(rows: list[Row], cache: VerdictCache) -> None:
    try:
        cache.put_many(rows)
    except Exception:
        # The cache takes care of what files do; whatever else it is must not end the thread that others wait for.
        logger.exception("verdict cache: %d completions are not kept", len(rows))


_NOTHING = _Call(lambda _: None, Future())


def _answer(call: _Call, cache: VerdictCache) -> None:
    if call is _NOTHING or not call.future.set_running_or_notify_cancel():
        return
    try:
        result = call.function(cache)
    except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to the caller
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
    """Closes the thread for this file once nobody uses it any more."""
    place = (os.getpid(), file)
    with _lock:
        thread, users = _open.pop(place, (None, 0))
        if users > 1 and thread is not None:
            _open[place] = (thread, users - 1)
            thread = None
    if thread is not None:
        thread.close()
