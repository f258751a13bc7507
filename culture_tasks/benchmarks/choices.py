"""The score of a choice: prompts, metrics and records of the benchmarks that give options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from culture_tasks import prompt_files
from culture_tasks.benchmarks.choice_reader import read_choice
from culture_tasks.benchmarks.interface import Doc, MeanScore, Picture, Prompt, Scale, Score
from culture_tasks.benchmarks.reporting import Groups

PERCENT = Scale("percent", 0.0, 100.0, digits=1, times=100.0)
ACCURACY = MeanScore(name="acc", title="accuracy", scale=PERCENT)
UNPARSED = MeanScore(name="unparsed", title="replies without a choice", scale=replace(PERCENT, better="lower"))


def filled(package: str, name: str, *before: Picture) -> Callable[[Doc], Prompt]:
    """Returns what fills a prompt file with a document's fields, and its slots ``{a}``, ``{b}`` … with the options."""

    def prompt(doc: Doc) -> Prompt:
        options = {letter.lower(): option for letter, option in lettered(doc.get("options", ())).items()}
        return Prompt((*before, prompt_files.load(package, name).fill({**doc, **options})))

    return prompt


def share(labels: Sequence[str | None], label: str | None) -> float:
    """Returns the share of labels that are this one."""
    return labels.count(label) / len(labels)


def lettered(options: Sequence[str]) -> dict[str, str]:
    """Returns options by their letters, from A."""
    return {chr(ord("A") + number): option for number, option in enumerate(options)}


def score_options(
    doc: Doc,
    responses: Sequence[str],
    options: Mapping[str, str],
    groups: Mapping[str, Groups],
    *,
    values: Callable[[Sequence[str | None]], Mapping[str, Any]] = lambda _: {},
    **fields: Any,
) -> Score:
    """Reads which of some options the responses choose; the document's ``answer`` is the label of the right one.

    ``values`` gives the values of further metrics by the labels that were read; the rest is as in
    :func:`score_choices`.
    """
    labels, right = [read_choice(response, options) for response in responses], doc["answer"]
    references = (f"{right}. {options[right]}" if options[right] else right,)
    fields = {"values": values(labels), "references": references, **fields}
    return score_choices(doc, responses, labels, right, groups, **fields)


def score_choices(
    doc: Doc,
    responses: Sequence[str],
    labels: Sequence[str | None],
    right: str,
    groups: Mapping[str, Groups],
    *,
    values: Mapping[str, Any],
    **fields: Any,
) -> Score:
    """Returns a document with the share of its labels that are right; None is a reply without a certain choice.

    ``values`` are for further metrics than :data:`ACCURACY` and :data:`UNPARSED`; the rest is as in :meth:`Score.of`.
    """
    values = {**values, UNPARSED.name: share(labels, None)}
    return Score.of(doc, responses, groups, labels=tuple(labels), score=share(labels, right), values=values, **fields)
