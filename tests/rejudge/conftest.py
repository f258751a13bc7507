from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import stored_runs
from support.rejudged import write

_RUNS: dict[tuple[str, ...], Path] = {}


@pytest.fixture
def written(tmp_path, tmp_path_factory, monkeypatch, fixture_data) -> Callable[..., None]:
    """Writes the files of a harness's run: a stored one without a judge, else of each offline judge's run once."""
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))

    def run(harness, judge="none", tasks=("care_zh",), folder=tmp_path):
        monkeypatch.setenv("CULTURE_JUDGE", judge)
        key = (harness, judge, *tasks)
        if judge == "none" and "CULTURE_SUBSET" not in os.environ:
            stored_runs.copy(f"ungraded/{harness}", folder, tasks)
            return
        if judge.startswith("openai") or key not in _RUNS:
            _RUNS[key] = tmp_path_factory.mktemp("run")
            write(harness, _RUNS[key], *tasks)
        shutil.copytree(_RUNS[key], folder, dirs_exist_ok=True)

    return run
