from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from support.fault_server import FaultServer
from support.judging import BRIEF, KEY, QUICK

from culture_tasks.judges.endpoint import endpoint_judge
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.local.in_process import InProcessJudge
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.settings import Settings


class Double:
    """Takes the place of one of lm-eval's model classes."""

    made: int
    calls: list[list[str]]
    max_length = 4000
    template = True
    keeps_system = True
    opening = ""

    def __init__(self, pretrained: str = "", batch_size: int | str = 1, **options: Any) -> None:
        type(self).made += 1
        self.batch_size = batch_size

    @staticmethod
    def reply(prompt: str) -> str:
        return "Rating: [[9]]" if "[[number]]" in prompt else "rating=2"

    @classmethod
    def says(cls, reply: Callable[[str], str]) -> None:
        """Replies so from now on."""
        cls.reply = staticmethod(reply)

    @classmethod
    def create_from_arg_obj(cls, options: dict[str, Any]) -> Double:
        return cls(**options)

    def apply_chat_template(self, messages: list[dict[str, str]]) -> str:
        if not self.template:
            raise ValueError("no template")
        turns = [turn for turn in messages if self.keeps_system or turn["role"] != "system"]
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns) + "<assistant>" + self.opening

    def tok_encode(self, text: str) -> list[str]:
        return text.split()

    def set_cache_hook(self, hook: Any) -> None:
        self.cache_hook = hook

    def generate_until(self, requests: list[Any]) -> list[str]:
        type(self).calls.append([request.args[0] for request in requests])
        replies = []
        for request in requests:
            replies.append(self.reply(request.args[0]))
            self.cache_hook.add_partial("generate_until", request.args, replies[-1])
        return replies


@pytest.fixture(autouse=True)
def quick_check(monkeypatch):
    monkeypatch.setattr(endpoint_judge, "_PATIENCE_BEFORE_A_RUN", BRIEF)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with closing(FaultServer()) as running:
        yield running


@pytest.fixture
def settings_for(server: FaultServer, tmp_path: Path) -> Callable[..., Settings]:
    """Makes settings for the server, with a cache for the test alone."""

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
    with ExitStack() as stack:

        def make(model: str = "judge", patience: Patience = QUICK, **changes: Any) -> EndpointJudge:
            return stack.enter_context(closing(EndpointJudge(model, settings_for(**changes), patience)))

        yield make


@pytest.fixture
def item() -> JudgeItem:
    return JudgeItem("What is this dish?", ("biryani", "hyderabadi biryani"), "I think it is biryani.")


@pytest.fixture
def items() -> Callable[[int], list[JudgeItem]]:
    def make(count: int) -> list[JudgeItem]:
        return [JudgeItem(f"What is dish {number}?", ("biryani",), f"biryani {number}") for number in range(count)]

    return make


@pytest.fixture
def double(monkeypatch):
    import lm_eval.models  # noqa: F401
    from lm_eval.api import registry

    class Fresh(Double):
        made = 0

    Fresh.calls = []
    monkeypatch.setattr(registry, "get_model", lambda name: Fresh)
    return Fresh


@pytest.fixture
def local_judge_for(settings_for):
    with ExitStack() as stack:
        yield lambda model="hf,pretrained=somewhere", **changes: stack.enter_context(
            closing(InProcessJudge(model, settings_for(**changes)))
        )
