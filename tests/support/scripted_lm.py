"""A language model for lm-eval whose answers a test writes down."""

from __future__ import annotations

from collections.abc import Callable

from lm_eval.api.model import LM


class ScriptedLM(LM):
    """Answers each prompt by a function of the prompt and of how often it was asked before."""

    MULTIMODAL = True

    def __init__(self, script: Callable[[str, int], str]) -> None:
        super().__init__()
        self.script = script
        self.prompts: list[str] = []
        self.images: list[list] = []

    def generate_until(self, requests, disable_tqdm=False):
        answers = []
        times: dict[str, int] = {}
        for request in requests:
            prompt = request.args[0]
            self.prompts.append(prompt)
            media = request.args[2].get("visual", []) if len(request.args) > 2 else []
            self.images.append(list(media))
            answers.append(self.script(prompt, times.get(prompt, 0)))
            times[prompt] = times.get(prompt, 0) + 1
        return answers

    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError
