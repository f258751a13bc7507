"""Files that anybody may have put in place: only plain ones are read, and none is written through a link."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """Opens a file to be read; a pipe, which would be waited for, a device or a socket is an OSError."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(file, "rb", buffering=1 << 16)  # sample files are large
    os.close(file)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a plain file, but a pipe or a device", str(path))


def read_plain(path: Path) -> bytes:
    """Returns the content of a file; what is no plain file is an OSError (see :func:`open_plain`)."""
    with open_plain(path) as file:
        return file.read()


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Gives a path to write to, which becomes ``path`` in one step when the block ends without an error.

    A link in its place is replaced, and what it leads to is left alone. A pipe or a device, such as ``/dev/stdout``,
    is written to directly.
    """
    in_devices = path.absolute().parent in (Path("/dev"), Path("/dev/fd"))
    if in_devices or (path.exists() and not path.is_symlink() and not path.is_file()):
        yield path
        return
    part = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex}")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def written(path: Path, encoding: str = "utf-8") -> Iterator[IO[str]]:
    """Opens a text file that takes its name once everything is in it (see :func:`replaced`); line ends stay as given.

    Half of a surrogate pair isn't UTF-8; it is written as JSON escapes it.
    """
    with replaced(path) as part, part.open("w", encoding=encoding, errors="backslashreplace", newline="") as file:
        yield file


def write_whole(path: Path, text: str) -> None:
    """Writes a text file as :func:`written` does."""
    with written(path) as file:
        file.write(text)
