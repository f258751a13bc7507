"""What judges of one process share: for each endpoint one engine, with its loop, connections, limits and cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from culture_tasks.judges.addresses import Address
from culture_tasks.judges.asker import Asker
from culture_tasks.judges.cache_thread import opened_cache, released
from culture_tasks.judges.client import Client
from culture_tasks.judges.engine import Engine, Job
from culture_tasks.judges.loop import shared_loop
from culture_tasks.judges.pacing import Patience
from culture_tasks.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Place:
    """What connections must have in common to be one."""

    pid: int
    address: Address
    concurrency: int
    timeout: float
    cache: str | None
    patience: Patience


class Connection:
    """An endpoint's engine, as a judge uses it from its own threads."""

    def __init__(self, address: Address, settings: Settings, patience: Patience) -> None:
        self.pid = os.getpid()
        self.users = 0
        self.checked: set[tuple[str, ...]] = set()
        self.check_lock = threading.Lock()
        self._file = settings.cache_file
        self.cache = opened_cache(self._file)
        proxy = settings.proxy_for(address.url)
        self.asker = Asker(
            lambda: Client(address, settings.judge_timeout, proxy),
            name=f"judge at {address.shown}",
            concurrency=settings.judge_concurrency,
            patience=patience,
        )
        self._engine = Engine(self.asker, self.cache)
        self._loop = shared_loop()
        self._loop.before_stop(self.close)
        self._closed = False

    def submit(self, job: Job) -> None:
        """Puts a job; returns at once."""
        if self._engine.put(job):
            self._loop.call(self._engine.wake)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the event loop and waits for its result."""
        return self._loop.run(work)

    def close(self) -> None:
        """Ends what runs, commits what came, and closes connections and cache."""
        if not self._closed:
            self._closed = True
            self._loop.run(self._engine.close())
            released(self._file)


_lock = threading.Lock()
_connections: dict[_Place, Connection] = {}


def connect(address: Address, settings: Settings, patience: Patience) -> Connection:
    """Returns the process's connection to this endpoint; to be given back with :func:`disconnect`."""
    place = _place(address, settings, patience)
    with _lock:
        connection = _connections.get(place)
        if connection is None:
            connection = _connections[place] = Connection(address, settings, patience)
        connection.users += 1
        return connection


def disconnect(connection: Connection) -> None:
    """Gives a connection back; the last user's closes it."""
    with _lock:
        connection.users -= 1
        if connection.users > 0 or connection.pid != os.getpid():
            return
        for place in [place for place, known in _connections.items() if known is connection]:
            del _connections[place]
    connection.close()


def _place(address: Address, settings: Settings, patience: Patience) -> _Place:
    cache = str(settings.cache_file) if settings.cache_file else None
    return _Place(os.getpid(), address, settings.judge_concurrency, settings.judge_timeout, cache, patience)
