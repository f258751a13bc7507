"""Claims on completions, so that processes which share a verdict cache don't pay for the same one at the same time."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_BYTES_OF_A_PLACE = 7


class Claims:
    """What this process is asking for, as other processes of this machine see it.

    A claim is a lock on one byte of an empty file beside the cache, at a place that the completion's key determines.
    The system drops a process's locks when it ends, however that happens. Where there are no locks (on Windows, a
    read-only disk, some network file systems), every claim succeeds.

    Args:
        cache: The file of the verdict cache; None for a cache that no other process sees.
    """

    def __init__(self, cache: Path | None) -> None:
        self._held: set[bytes] = set()
        self._file: int | None = None
        if cache is not None and sys.platform != "win32":
            with suppress(OSError):
                cache.parent.mkdir(parents=True, exist_ok=True)
                self._file = os.open(cache.with_name(f"{cache.name}-claims"), os.O_RDWR | os.O_CREAT, 0o666)

    def claim(self, key: bytes) -> bool:
        """Claims a completion; False where another process has done so."""
        if self._file is None:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except OSError as error:
            return error.errno not in (errno.EACCES, errno.EAGAIN)
        self._held.add(key)
        return True

    def release(self, key: bytes) -> None:
        """Gives up a claim, if there is one."""
        if self._file is not None and key in self._held:
            self._held.discard(key)
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(key))

    def close(self) -> None:
        """Gives up all claims."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _place(key: bytes) -> int:
    return int.from_bytes(key[:_BYTES_OF_A_PLACE])
