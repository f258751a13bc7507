"""One event loop in one background thread for the process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_SECONDS_TO_STOP = 10.0


class LoopThread:
    """An event loop that runs in a daemon thread until the interpreter ends."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._closers: list[Callable[[], None]] = []
        self._thread = threading.Thread(target=self._run, name="culture-tasks-judges", daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], object]) -> None:
        """Has the loop call a function soon; from any thread."""
        self._loop.call_soon_threadsafe(function)

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine in the loop and waits for its result; from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def before_stop(self, closer: Callable[[], None]) -> None:
        """Has a function called, in the stopping thread, before the loop stops."""
        self._closers.append(closer)

    def stop(self) -> None:
        """Calls the closers, cancels what still runs, and ends the thread. In a forked child, does nothing."""
        if self.pid != os.getpid() or self._loop.is_closed():
            return
        for closer in reversed(self._closers):
            closer()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS_TO_STOP)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._cancel_all()
            self._loop.close()

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())


_lock = threading.Lock()
_running: LoopThread | None = None


def shared_loop() -> LoopThread:
    """Returns the process's loop, started on first use. A forked child gets one of its own."""
    global _running
    with _lock:
        if _running is None or _running.pid != os.getpid():
            _running = LoopThread()
            atexit.register(_running.stop)
        return _running
