"""What all tests of BLEnD share."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.blend import official


@pytest.fixture(autouse=True)
def forgotten_lemmatisers():
    """Forgets the lemmatisers that a test made."""
    caches = (official._lemmatiser, official._lemmas)
    yield
    for each in caches:
        each.cache_clear()
