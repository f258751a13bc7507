"""Another package with benchmarks, made known to this process as if it were installed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cultures import forget_benchmarks

from culture_tasks.benchmarks import registry
from culture_tasks.harness.task_files import write_task_files

PACKAGE = Path(__file__).parents[1] / "fixtures" / "another_package"


@contextmanager
def installed(folder: Path) -> Iterator[Path]:
    """Copies the package to a folder, with the task files that it would ship, and finds it there."""
    shutil.copytree(PACKAGE, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        _forget()
        for name in ("proverbs", "quiz"):
            benchmark = registry.benchmarks()[name]
            write_task_files(benchmark, benchmark.task_files)
        yield folder
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "proverbs"]:
        del sys.modules[name]
    forget_benchmarks()
