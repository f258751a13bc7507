"""A judge whose verdicts a test writes down."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Verdict


class _Ticket:
    def __init__(self, future):
        self._future = future

    def verdict(self) -> Verdict:
        return self._future.result(timeout=60)


class ScriptedJudge(Judge):
    """Gives the verdict that a function gives, from separate threads, and remembers the items."""

    def __init__(self, script: Callable[[JudgeItem], Verdict], model: str = "scripted", threads: int = 8) -> None:
        self.script = script
        self.model = model
        self.asked: list[tuple[str, JudgeItem]] = []
        self.checked = 0
        self.sampling = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(threads)

    def identity(self, rubric):
        prompt = {"prompt": rubric.user, "prompt_sha256": "0" * 64, "delimiters": True}
        return JudgeIdentity("openai", self.model, rubric.name, **prompt, sampling=self.sampling)

    def submit(self, rubric, item):
        with self._lock:
            self.asked.append((rubric.name, item))
        return _Ticket(self._pool.submit(self.script, item))

    def check(self, expected, *, responses_known=False):
        self.checked += len(list(expected))

    def close(self):
        self._pool.shutdown()


def install(monkeypatch, judge: Judge) -> Judge:
    """Makes a judge the one that every session uses."""
    monkeypatch.setattr("culture_tasks.harness.session.shared_judge", lambda settings, model: judge)
    return judge


def install_by_name(monkeypatch, **scripts: Callable[[JudgeItem], Verdict]) -> dict[str, ScriptedJudge]:
    """Makes scripted judges those of all sessions, by the models that ``openai:`` names."""
    judges = {f"openai:{model}": ScriptedJudge(script, model) for model, script in scripts.items()}
    monkeypatch.setattr("culture_tasks.harness.session.shared_judge", lambda settings, model: judges[settings.judge])
    return judges
