"""The choice of a model that follows no instructions: the allowed reply with the largest log-likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from culture_tasks.benchmarks.interface import Prompt, Task


def by_likelihood(task: Task, choices: Callable[[Any], Sequence[str]], cue: str = "") -> Task:
    """Returns the variant ``<name>_ll`` of a text task, for models that continue a text and follow no instructions.

    The model writes nothing. Behind the prompt, lm-eval puts a blank and each of the allowed replies, and the reply
    with the largest sum of the log-probabilities of its tokens is scored as if the model had written it. Nothing is
    normalised by length, since a reply is a letter or a short word. lmms-eval's models give no log-likelihoods of text.

    ``choices`` gives the allowed replies to a document. The prompt ends with ``cue`` where it has none for an answer.
    """

    def prompt(doc: Any) -> Prompt:
        task_prompt = task.prompt(doc)
        *before, last = task_prompt.parts
        assert isinstance(last, str)
        return replace(task_prompt, parts=(*before, f"{last.rstrip()}{cue}"))

    return replace(
        task,
        name=f"{task.name}_ll",
        about=f"{task.about}; by log-likelihood",
        title=f"{task.title or task.name}, by log-likelihood",
        prompt=prompt,
        choices=choices,
        harnesses=("lm_eval",),
        tag=f"{task.tag}_ll" if task.tag else "",
    )


def most_likely(replies: Sequence[str], likelihoods: Sequence[float]) -> str:
    """Returns the reply with the largest log-likelihood; nothing where two are equal, or one is no number.

    Examples:
        >>> most_likely(["A", "B", "C"], [-2.5, -0.5, -1.0]), most_likely(["A", "B"], [-1.0, -1.0])
        ('B', '')
    """
    best = [reply for reply, value in zip(replies, likelihoods, strict=True) if value == max(likelihoods)]
    return best[0] if len(best) == 1 and not any(map(math.isnan, likelihoods)) else ""
