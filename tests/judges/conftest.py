from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fault_server import FaultServer
from support.judging import KEY, QUICK

from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.settings import Settings


@pytest.fixture
def server() -> Iterator[FaultServer]:
    running = FaultServer()
    yield running
    running.close()


@pytest.fixture
def settings_for(server: FaultServer, tmp_path: Path) -> Callable[..., Settings]:
    """Makes settings for the server, with a cache of the test's own."""

    def make(**changes: Any) -> Settings:
        base = {
            "openai_api_key": KEY,
            "openai_base_url": server.url,
            "judge_cache": str(tmp_path / "cache" / "verdicts.sqlite3"),
            "judge_timeout": 5.0,
        }
        return Settings.model_validate({**base, **changes})

    return make


@pytest.fixture
def judge_for(settings_for: Callable[..., Settings]) -> Iterator[Callable[..., EndpointJudge]]:
    """Makes judges that ask the server; they are closed after the test."""
    made: list[EndpointJudge] = []

    def make(model: str = "judge", patience: Patience = QUICK, **changes: Any) -> EndpointJudge:
        made.append(EndpointJudge(model, settings_for(**changes), patience))
        return made[-1]

    yield make
    for judge in made:
        judge.close()


@pytest.fixture
def item() -> JudgeItem:
    return JudgeItem("What is this dish?", ("biryani", "hyderabadi biryani"), "I think it is biryani.")


@pytest.fixture
def items() -> Callable[[int], list[JudgeItem]]:
    def make(count: int) -> list[JudgeItem]:
        return [JudgeItem(f"What is dish {number}?", ("biryani",), f"biryani {number}") for number in range(count)]

    return make
