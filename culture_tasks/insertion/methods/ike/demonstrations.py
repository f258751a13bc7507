"""Demonstrations of IKE, as text: what to copy, what to transfer, what to leave alone.

IKE shows a model three kinds of demonstration, each a new fact with a prompt answered in its presence: the fact itself,
a related prompt that the fact changes, and an unrelated one that it doesn't. Made from a training case these are its
insertion sample, its generality items and its locality items, each with the data's own answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from culture_tasks.insertion.core.edit_scopes import edit_text
from culture_tasks.insertion.core.queries import Insertion, TrainingCase


def demonstration(new_fact: str, answered: str) -> str:
    """Returns a new fact with a prompt answered in its presence."""
    return f"New Fact: {new_fact}\nPrompt: {answered}\n\n"


def copied(insertion: Insertion) -> str:
    """Returns the demonstration that repeats a fact, which also serves to look up demonstrations."""
    return demonstration(edit_text(insertion), edit_text(insertion))


def of_cases(cases: Iterable[TrainingCase]) -> list[str]:
    """Returns the demonstrations of all cases, each once, in order."""
    texts: dict[str, None] = {}
    for case in cases:
        items = (case.insertion, *case.generality, *case.locality)
        texts |= dict.fromkeys(demonstration(edit_text(case.insertion), edit_text(item)) for item in items)
    return list(texts)


def prompt(demonstrations: Sequence[str], insertions: Sequence[Insertion]) -> str:
    """Returns the text before a request: the demonstrations, then all insertions, in order."""
    facts = "".join(f"New Fact: {edit_text(insertion)}\n" for insertion in insertions)
    return f"{''.join(demonstrations)}{facts}Prompt: "
