"""Demonstrations of IKE, as text: what to copy, what to transfer, what to leave alone.

IKE shows a model three kinds of demonstration, each a new fact with a prompt answered in its presence: the fact itself,
a related prompt that the fact changes, and an unrelated one that it doesn't. Made from a training case these are its
insertion sample, its generality items and its locality items, each with the data's own answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from culture_tasks.insertion.queries import Insertion, TrainingCase


def fact(insertion: Insertion) -> str:
    """Returns an insertion sample as one line."""
    return _line(insertion.query.question, insertion.answer)


def demonstration(new_fact: str, answered: str) -> str:
    """Returns a new fact with a prompt answered in its presence."""
    return f"New Fact: {new_fact}\nPrompt: {answered}\n\n"


def copied(insertion: Insertion) -> str:
    """Returns the demonstration that repeats a fact, which also serves to look up demonstrations."""
    return demonstration(fact(insertion), fact(insertion))


def of_case(case: TrainingCase) -> Iterator[str]:
    """Yields the demonstrations of a training case."""
    new_fact = fact(case.insertion)
    yield copied(case.insertion)
    for related in case.generality:
        yield demonstration(new_fact, fact(related))
    for unrelated in case.locality:
        yield demonstration(new_fact, _line(unrelated.query.question, unrelated.answer))


def of_cases(cases: Iterable[TrainingCase]) -> list[str]:
    """Returns the demonstrations of all cases, each once, in order."""
    return list(dict.fromkeys(text for case in cases for text in of_case(case)))


def prompt(demonstrations: Sequence[str], insertions: Sequence[Insertion]) -> str:
    """Returns what stands before a request: the demonstrations, then all that was inserted, in order."""
    facts = "".join(f"New Fact: {fact(insertion)}\n" for insertion in insertions)
    return f"{''.join(demonstrations)}{facts}Prompt: "


def _line(question: str, answer: str) -> str:
    return f"{question} {answer}"
