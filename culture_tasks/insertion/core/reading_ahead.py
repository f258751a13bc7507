"""Reading the next inputs in another thread while a device works on the present one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2  # inputs that are read while the device works


def read_ahead(items: Iterable[Item], read: Callable[[Item], Result]) -> Generator[Result, None, None]:
    """Yields what a function makes of each item, in their order; errors come in their places."""
    with ThreadPoolExecutor(1) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(read, item))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
