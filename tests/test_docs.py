"""The documents for developers name functions that the harnesses have, and paths that this repository has."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HARNESSES, CONTRIBUTING = ((ROOT / name).read_text("utf-8") for name in ("docs/harnesses.md", "CONTRIBUTING.md"))

# A dotted name in backticks that begins with a harness, such as `lm_eval.api.model.LM`.
NAMES = sorted(set(re.findall(r"`((?:lm|lmms)_eval(?:\.\w+)+)`", HARNESSES)))

# A path in backticks: it has a slash and ends like a file. Folders of the package may leave `culture_tasks/` out.
PATHS = sorted(set(re.findall(r"`([\w.]+(?:/[\w.-]+)+\.(?:py|md|toml))`", HARNESSES + CONTRIBUTING)))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_is_in_the_installed_harness(name):
    parts = name.split(".")
    found, rest = importlib.import_module(parts[0]), parts[1:]
    for place, part in enumerate(rest, start=1):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[: place + 1]))
        found = getattr(found, part)


@pytest.mark.parametrize("path", PATHS)
def test_what_the_page_names_is_in_this_repository(path):
    assert (ROOT / path).is_file() or (ROOT / "culture_tasks" / path).is_file()


def test_names_and_paths_are_found():
    assert len(NAMES) > 30
    assert len(PATHS) > 25
