"""Result folders of both harnesses, of stored runs with models and a judge that follow scripts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.stored_runs import RUNS
from support.toy_report import hostile_report, toy_report

from culture_tasks.report.model import Report


@pytest.fixture(scope="session")
def results(tmp_path_factory) -> Path:
    """Two text models in lm-eval and one image model in lmms-eval, graded by one judge."""
    return shutil.copytree(RUNS / "graded", tmp_path_factory.mktemp("runs") / "results")


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Report:
    """Of four models, which were written by hand."""
    return toy_report(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Path:
    """The folder of a report in which every text is hostile."""
    return hostile_report(tmp_path_factory.mktemp("hostile"))
