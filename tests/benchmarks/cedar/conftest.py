"""Where the real excerpts and the paper's text lie, if they are there."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[4] / "shared"


@pytest.fixture(scope="session")
def cedar_paper() -> str:
    path = SHARED / "papers" / "cedar.txt"
    if not path.exists():
        pytest.skip(f"the paper's text is not at {path}")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def cedar_excerpts() -> Path:
    path = SHARED / "data" / "cedar"
    if not path.exists():
        pytest.skip(f"no excerpts at {path}")
    return path
