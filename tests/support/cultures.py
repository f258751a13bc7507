"""Own cultures in a test: the registry as it is for a user who has some."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from culture_tasks.benchmarks import registry
from culture_tasks.harness import records
from culture_tasks.people import rated_responses
from culture_tasks.preferences import held_out


@contextmanager
def cultures_in(*folders: Path) -> Iterator[None]:
    """Makes the cultures of folders known in a block of code, and nothing else by ``CULTURE_TASKS_CULTURES``."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as cache:
        patch.setenv("XDG_CACHE_HOME", cache)
        patch.setenv("CULTURE_TASKS_CULTURES", ",".join(map(str, folders)))
        forget_benchmarks()
        try:
            yield
        finally:
            forget_benchmarks()


def forget_benchmarks() -> None:
    """Lets the package look again for the benchmarks that are there."""
    for module in (registry, records, rated_responses, held_out):
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()
