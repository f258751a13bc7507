"""Reading the next inputs in other threads while a device works on the present one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

READERS = 3
"""Threads that read, and inputs that are read while the device works; image processors hold Python's lock briefly."""


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of the process: each keeps a processor of its own, which is costly to copy."""
    return ThreadPoolExecutor(READERS)


def read_ahead(items: Iterable[Item], read: Callable[[Item], Result]) -> Generator[Result, None, None]:
    """Yields what a function makes of each item, in their order; errors come in their places."""
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(_pool().submit(read, item))
            if len(waiting) == READERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
