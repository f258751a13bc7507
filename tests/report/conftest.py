"""Result folders of both harnesses, of stored runs with models and a judge that follow scripts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.stored_runs import RUNS


@pytest.fixture(scope="session")
def results(tmp_path_factory) -> Path:
    """Two text models in lm-eval and one image model in lmms-eval, graded by one judge."""
    return shutil.copytree(RUNS / "graded", tmp_path_factory.mktemp("runs") / "results")
