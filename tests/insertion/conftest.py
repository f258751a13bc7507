"""One tiny InternVL, its checkpoint and a small world of cases, shared by all tests of this folder."""

from __future__ import annotations

import pytest
from support.insertion_requests import adapted
from support.tiny_encoders import save_tiny_bert, save_tiny_clip
from support.tiny_families import FAMILIES, save_family
from support.tiny_world import write_release

from culture_tasks.insertion.core.training import load_training_data
from culture_tasks.settings import Settings


@pytest.fixture(scope="session")
def internvl():
    return adapted("internvl")


@pytest.fixture(params=["internvl", "qwen3_5", "gemma3"])
def model(request):
    """A model of each kind: with image tiles, with linear attention, and with a begin-of-text token."""
    return adapted(request.param)


@pytest.fixture(params=sorted(FAMILIES))
def any_model(request):
    """A model of each family."""
    return adapted(request.param)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The tiny InternVL as a folder."""
    return save_family("internvl", tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """A release: two scenarios for training, two for each test."""
    return write_release(tmp_path_factory.mktemp("world"), range(6), range(2), tests=(2, 3, 4, 5))


@pytest.fixture
def evaluating(monkeypatch, world):
    """Tasks read the release, and their judge needs no model."""
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(world))
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Six training cases of two scenarios."""
    return load_training_data(
        Settings(data=write_release(tmp_path_factory.mktemp("world"), range(2), range(4))), limit=6
    )


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Checkpoints: a replacement internvl, another, and what each method with a scope encodes with."""
    root = tmp_path_factory.mktemp("checkpoints")
    return {
        "replacement": save_family("internvl", root / "replacement", seed=1),
        "other replacement": save_family("internvl", root / "other replacement", seed=2),
        "ike": save_tiny_bert(root / "bert"),
        "serac": root / "bert",
        "mscke": save_tiny_clip(root / "clip"),
    }
