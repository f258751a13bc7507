"""What every test gets: an environment of its own, no network, no state left by other tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
OURS = ("CULTURE_", "OPENAI_", "AZURE_")
CACHES = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "HF_ASSETS_CACHE", "HF_XET_CACHE", "HUGGINGFACE_HUB_CACHE")

# Keeps away from the network and the user's caches. Libraries read these variables when they are first imported, which
# the conftest.py of a folder that is named on the command line does before pytest_configure is called.
HF_HOME = tempfile.mkdtemp(prefix="culture-tasks-hf-")
for name in CACHES:
    os.environ.pop(name, None)
os.environ |= {"HF_HOME": HF_HOME, "HF_HUB_OFFLINE": "1"}

gc.disable()  # until all tests are collected: importing torch and both harnesses has no garbage worth the time

settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts files with slow tests first, so that no worker is left with a long one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    gc.enable()


def pytest_unconfigure() -> None:
    shutil.rmtree(HF_HOME, ignore_errors=True)
    gc.unfreeze()  # what support.in_process froze, so that it is cleared away before Python ends


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory):
    """Takes the user's variables out of the environment, and closes and forgets what a test opened."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(OURS)]:
            patch.delenv(name)
        cache = tmp_path_factory.getbasetemp() / "verdicts" / f"{uuid.uuid4().hex}.sqlite3"
        patch.setenv("CULTURE_JUDGE_CACHE", str(cache))
        yield
        _forget()


def _forget():
    """Resets what the process remembers, in those modules that a test has imported."""
    if selection := sys.modules.get("culture_tasks.judges.selection"):
        selection.close_judges()
    if session := sys.modules.get("culture_tasks.harness.session"):
        session._current = None
    if loading := sys.modules.get("culture_tasks.harness.loading"):
        loading._tasks.clear()
    if plugin := sys.modules.get("culture_tasks.harness.lmms_eval.plugin"):
        plugin._in_a_command = False


@pytest.fixture(scope="session")
def fixture_data() -> Path:
    """The bundled synthetic data, as a folder for CULTURE_TASKS_DATA."""
    return ROOT / "examples" / "data"


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory) -> Path:
    """A language model with random weights."""
    import tiny_models

    return tiny_models.make_tiny_lm(tmp_path_factory.mktemp("tiny") / "lm")


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory) -> Path:
    """A model of images and text with random weights."""
    import tiny_models

    return tiny_models.make_tiny_vlm(tmp_path_factory.mktemp("tiny") / "vlm")


@pytest.fixture(scope="session")
def real_model() -> Path:
    """SmolLM2-135M-Instruct. Where it can't be had tests are skipped, or fail by CULTURE_TASKS_REAL_MODEL=required."""
    import real_model
    from filelock import FileLock

    real_model.FOLDER.mkdir(parents=True, exist_ok=True)
    with FileLock(real_model.FOLDER / "lock"):  # of two workers one makes it
        folder = real_model.make()
    if folder is None:
        end = pytest.fail if os.environ.get("CULTURE_TASKS_REAL_MODEL") == "required" else pytest.skip
        end(f"SmolLM2 can't be had here: see {real_model.FOLDER / 'log'}")
    return folder
