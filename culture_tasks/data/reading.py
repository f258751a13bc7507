"""A block of code that reads data: the user's settings for it, and the commits and files that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from culture_tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class DataReading:
    """The settings for a block of code, and what it has read by them.

    Attributes:
        commits: The commit of the Hub that was read, by data set; each is read at one commit only.
        problems: Why a commit isn't known, by data set: the Hub is asked once.
        differences: How a user's file differs from the authors' release, by file.
    """

    settings: Settings = field(default_factory=Settings)
    commits: dict[str, str] = field(default_factory=dict)
    problems: dict[str, Exception] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)

    def __or__(self, other: DataReading) -> DataReading:
        """Returns both readings as one."""
        commits, differences = self.commits | other.commits, self.differences | other.differences
        return DataReading(self.settings, commits=commits, differences=differences)


_current: ContextVar[DataReading | None] = ContextVar("reading", default=None)


def current() -> DataReading:
    """Returns the reading of the block that runs; outside of all, a new one with the default settings."""
    return _current.get() or DataReading()


@contextmanager
def reading(settings: Settings) -> Iterator[DataReading]:
    """Applies the user's settings to the reading of data in a block of code, and yields this reading."""
    token = _current.set(DataReading(settings))
    try:
        yield current()
    finally:
        _current.reset(token)
