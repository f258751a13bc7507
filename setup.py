"""Refuses to build without the linked folders, which would otherwise be left out silently.

``pyproject.toml`` declares everything else.
"""

from pathlib import Path

from setuptools import setup

for link in (Path("culture_tasks", "judges"), Path("culture_tasks", "task_yamls")):
    if not link.is_dir():
        raise SystemExit(
            f"culture-tasks: {link.as_posix()} isn't a link to the folder {link.name}, so the package would lack it. "
            "Clone with `git clone -c core.symlinks=true` (Windows: in developer mode), and unpack archives with a "
            "tool that keeps symbolic links."
        )

setup()
