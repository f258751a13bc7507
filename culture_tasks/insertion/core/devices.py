"""Time and memory of a device, the progress of a loop, and reading the next inputs while a device works."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

READERS = 3
"""Threads that read, and inputs that are read while the device works; image processors hold Python's lock briefly."""

_GIB = 2**30


def shown(
    items: Iterable[Item], title: str, *, note: Callable[[], str] | None = None, total: int | None = None
) -> Iterator[Item]:
    """Yields items behind a bar of progress on standard error, with a note such as the loss; no title, no bar."""
    from tqdm import tqdm

    bar = tqdm(items, desc=title, total=total, disable=not title)
    for item in bar:
        yield item
        if note is not None:
            bar.set_postfix_str(note(), refresh=False)


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


def now(device: torch.device) -> float:
    """Returns the time in seconds, once the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def forget_peak() -> None:
    """Begins a new peak on the GPUs; that of a process on a CPU begins with the process."""
    for number in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
        torch.cuda.reset_peak_memory_stats(number)


def peak_gib(device: torch.device) -> float | None:
    """Returns the most memory that was in use, in GiB; None where the system doesn't say.

    For a GPU the tensors of this process on all GPUs together are counted, for a CPU the memory of the process.
    """
    if device.type == "cuda":
        return float(sum(map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count())))) / _GIB
    if device.type != "cpu" or sys.platform == "win32":
        return None
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / _GIB


def devices_of(module: torch.nn.Module) -> str:
    """Returns the devices that a model is on, such as ``2 x NVIDIA A100-SXM4-80GB``."""
    names = Counter(map(device_name, dict.fromkeys(weight.device for weight in module.parameters())))
    return " + ".join(f"{count} x {name}" if count > 1 else name for name, count in names.items())


def device_name(device: torch.device) -> str:
    """Returns a name for a table, such as ``NVIDIA A100-SXM4-80GB`` or ``CPU``."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else device.type.upper()
