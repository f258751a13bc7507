"""Tests of cultures may use a form of their own, ``toy``."""

from __future__ import annotations

import pytest
from support.toy_culture import Toy


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """Makes the registry of forms hold ``toy`` alone."""
    monkeypatch.setattr("culture_tasks.cultures.project.benchmarks", lambda: {"toy": Toy()})
