"""A block of code that reads data: the user's choices for it, and what is noted of the data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from culture_tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class DataRead:
    """What a block of code has read, by the user's settings.

    Attributes:
        commits: The commit of the Hub that was read, by data set; each is read at one commit only.
        problems: Why a commit isn't known, by data set: the Hub is asked once.
        own: How a user's file differs from the authors' release, by file.
    """

    settings: Settings = field(default_factory=Settings)
    commits: dict[str, str] = field(default_factory=dict)
    problems: dict[str, Exception] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)


_current: ContextVar[DataRead | None] = ContextVar("reading", default=None)


def current() -> DataRead:
    """Returns what the block that runs has read; outside of all, a new one with the default settings."""
    return _current.get() or DataRead()


@contextmanager
def reading(settings: Settings) -> Iterator[DataRead]:
    """Applies the user's settings to the reading of data in a block of code, and yields what it reads."""
    token = _current.set(DataRead(settings))
    try:
        yield current()
    finally:
        _current.reset(token)
