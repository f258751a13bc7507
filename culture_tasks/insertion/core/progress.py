"""Loops over inputs: showing how far one is, and reading the next inputs while a device works on the present one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Progress:
    """Shows the progress of a loop by a bar on standard error, or nothing."""

    hidden: bool = False

    def __call__(
        self, items: Iterable[Item], description: str, note: Callable[[], str] | None = None, total: int | None = None
    ) -> Iterable[Item]:
        """Yields the items as they are consumed.

        ``note`` is called after each item and returns a text to show beside, such as the loss; ``total`` is the number
        of items that have no length.
        """
        from tqdm import tqdm

        bar = tqdm(items, desc=description, total=total, disable=self.hidden)
        for item in bar:
            yield item
            if note is not None and not self.hidden:
                bar.set_postfix_str(note(), refresh=False)


silent = Progress(hidden=True)

READERS = 3
"""Threads that read, and inputs that are read while the device works; image processors hold Python's lock briefly."""


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of the process: each keeps one copy of the processor, since copying is costly."""
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
