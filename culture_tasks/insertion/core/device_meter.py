"""Time and memory of a device."""

from __future__ import annotations

import sys
import time
from collections import Counter

import torch

_GIB = 2**30


def now(device: torch.device) -> float:
    """Returns the time in seconds, once the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def forget_peak() -> None:
    """Begins a new peak on the GPUs; that of a process on a CPU begins with the process."""
    if torch.cuda.is_initialized():
        for number in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(number)


def peak_gib(device: torch.device) -> float | None:
    """Returns the most memory that was in use, in GiB; None where the system doesn't say.

    For a GPU the tensors of this process on all GPUs together are counted, for a CPU the memory of the process.
    """
    if device.type == "cuda":
        numbers = range(torch.cuda.device_count())
        return float(sum(torch.cuda.max_memory_allocated(number) for number in numbers)) / _GIB
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
