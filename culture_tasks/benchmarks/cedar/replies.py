"""Reads which emotion a model's reply names: one pure function, no judge.

The reply is folded (``folding``), its emotion words are found in all seven languages (``mentions``), denied ones and
repeated option lists are set aside, and a ladder of rules looks for a clear choice. A reply that names several
emotions without one is unparsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.choices import (
    answer,
    bare_line,
    choice,
    emphasised,
    final_answer,
    leading,
    machine_form,
    quoted,
)
from culture_tasks.benchmarks.cedar.folding import cut_reasoning, fold
from culture_tasks.benchmarks.cedar.page import Page, Unclear, read_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from culture_tasks.benchmarks.cedar.labels import Emotion

_LADDER: Final[tuple[Callable[[Page], Emotion | Unclear | None], ...]] = (
    machine_form,
    final_answer,
    answer,
    choice,
    emphasised,
    quoted,
    leading,
)
_NEW_PROMPT: Final = re.compile(
    r"\n\s{0,4}(?:\[[^\]\n]{2,20}\]\s?:|(?:question|narrative|q|user|human|pregunta|swali|السؤال|प्रश्न|质问|问题|質問)\s?:)"
)


def _before_next_prompt(text: str) -> Emotion | None:
    """A reply that answers and then goes on with a question of its own is read up to there."""
    following = _NEW_PROMPT.search(text)
    if following is None or following.start() > 400:
        return None
    verdict = bare_line(read_page(text[: following.start()]))
    return None if isinstance(verdict, Unclear) else verdict


def read_reply(reply: str) -> Emotion | None:
    r"""Returns the emotion that a reply chooses, or None where it chooses none or more than one.

    Words of all seven languages count, in any inflection that belongs to one label alone. In order: JSON,
    ``\\boxed`` and answer tags; a final answer; "Answer: …" and a line with the label alone; "the emotion is …"; a
    single label in bold, then in quotes; the label that opens the reply or is said to be felt, where others only
    explain it; the only label there is. A denied label ("not sadness") never counts, nor does a repeated option list.
    Time is linear in the length of the reply.

    Args:
        reply: The model's text, reasoning included.
    """
    text = fold(cut_reasoning(reply)).strip()
    early = _before_next_prompt(text)
    if early is not None:
        return early
    page = read_page(text)
    for rule in _LADDER:
        verdict = rule(page)
        if isinstance(verdict, Unclear):
            return None
        if verdict is not None:
            return verdict
    return None
