"""Models and a server for the tests with real engines. ``make engines`` runs them; nothing else collects them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_models
from engines.toys import HEAD_SIZE, VARIABLES, Server


@pytest.fixture(scope="session", autouse=True)
def engine_variables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def text_model(tmp_path_factory) -> Path:
    """A Qwen2 of random weights with a chat template."""
    return tiny_models.make_tiny_lm(tmp_path_factory.mktemp("models") / "text", HEAD_SIZE)


@pytest.fixture(scope="session")
def vision_model(tmp_path_factory) -> Path:
    """An InternVL of random weights with a processor and a chat template."""
    return tiny_models.make_tiny_vlm(tmp_path_factory.mktemp("models") / "vision", HEAD_SIZE)


@pytest.fixture(scope="session")
def _shared_server(text_model, tmp_path_factory) -> Iterator[Server]:
    server = Server(text_model, tmp_path_factory.mktemp("server") / "log.txt")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(_shared_server) -> Server:
    """``vllm serve`` with the text model, running: the same for all tests, started again after a test that stops it."""
    if not _shared_server.is_running:
        _shared_server.start()
    return _shared_server
