"""What all tests of BLEnD share."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.blend import official


@pytest.fixture(autouse=True)
def forgotten_lemmatisers():
    """Ends the thread of the lemmatisers that a test made, and them with it."""
    worker, lemmas = official._worker, official._lemmas
    yield
    if worker.cache_info().currsize:
        worker().shutdown()
    worker.cache_clear()
    lemmas.cache_clear()
