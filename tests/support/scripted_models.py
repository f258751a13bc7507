"""Test doubles that answer by the document, for both harnesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from support import scripted_lm
from support.in_process import run_lm_eval, run_lmms_eval
from support.lmms_models import ChatEcho, ModelInput

Script = Callable[[Mapping[str, Any]], str]


class ScriptedChat(ChatEcho):
    """For lmms-eval: says what the script says to a document, and keeps its inputs."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    def answer(self, model_input: ModelInput) -> str:
        return self.script(model_input.doc)


class ScriptedLM(scripted_lm.ScriptedLM):
    """For lm-eval, with and without images.

    Attributes:
        seen: The requests' arguments.
    """

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.seen: list[tuple[Any, ...]] = []

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        for request in requests:
            self.seen.append(request.args)
            list(request.args[2]["visual"] if len(request.args) > 2 else ())  # looks at them
        return [self.script(request.doc) for request in requests]


def run_scripted(harness: str, script: Script, tasks: list[str], **options: Any) -> tuple[Any, dict[str, Any]]:
    """Runs tasks in a harness with a model that answers by a script; returns the model and the results."""
    evaluate = run_lm_eval if harness == "lm_eval" else run_lmms_eval
    model = (ScriptedLM if harness == "lm_eval" else ScriptedChat)(script)
    return model, evaluate(model, tasks, bootstrap_iters=0, **options)
