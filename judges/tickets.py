"""Tickets: verdicts that are still on their way to whoever asked."""

from __future__ import annotations

import os
import threading
from typing import Protocol

from culture_tasks.judges.verdicts import Verdict

_lock = threading.Lock()


class Watch(Protocol):
    """Somebody to tell that a thread waits."""

    def waiting(self, event: threading.Event) -> None:
        """Waits for the event, and may show how far the work is."""
        ...  # pragma: no cover


class PendingTicket:
    """A ticket that is resolved by another thread, once.

    An event is made only for a ticket that somebody waits for: of 100,000 tickets, a handful.
    """

    __slots__ = ("_event", "_pid", "_verdict", "_watch")

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._pid = os.getpid()
        self._verdict: Verdict | None = None
        self._event: threading.Event | None = None

    def verdict(self) -> Verdict:
        """Waits for the verdict."""
        if self._verdict is None:
            if self._pid != os.getpid():
                return Verdict("failed", error="asked before this process was forked off: nobody here will answer")
            self._wait()
        assert self._verdict is not None
        return self._verdict

    def resolve(self, verdict: Verdict) -> bool:
        """Hands over the verdict; False if there was one already, which then stays."""
        with _lock:
            if self._verdict is not None:
                return False
            self._verdict = verdict
            event = self._event
        if event is not None:
            event.set()
        return True

    def _wait(self) -> None:
        with _lock:
            if self._verdict is not None:
                return
            event = self._event = self._event or threading.Event()
        self._watch.waiting(event)
