"""Which models were trained from which: what the user says, or an adapter beside the model that it was put on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from culture_tasks.errors import SettingsError, hint
from culture_tasks.results.loaded_runs import Entered


class TrainingStage(NamedTuple):
    """The runs of a model before training, or after it: keys of entrants, and a name where they are several models."""

    entrants: tuple[str, ...]
    name: str


class Lineage(NamedTuple):
    """A model before and after training."""

    base: TrainingStage
    trained: TrainingStage


def lineages(entered: Sequence[Entered], chosen: Sequence[str]) -> list[Lineage]:
    """Returns the pairs of base and trained model, those of one base together.

    A run with an adapter (``peft=``, ``lora_local_path=``) says by itself that it was trained from the model that it
    names beside it; a ``TRAINED=BASE`` pair of patterns that the user names counts before that.

    Raises:
        SettingsError: If a pair can't be read, or a pattern fits nothing.
    """
    pairs = [_chosen(entered, text) for text in dict.fromkeys(chosen)]
    named = {key for pair in pairs for key in pair.trained.entrants}
    pairs += _by_adapter([one for one in entered if one.entrant.key not in named], entered)
    order = [one.entrant.key for one in entered]
    return sorted(pairs, key=lambda pair: (order.index(pair.base.entrants[0]), order.index(pair.trained.entrants[0])))


def _chosen(entered: Sequence[Entered], text: str) -> Lineage:
    trained, _, base = (part.strip() for part in text.partition("="))
    if not trained or not base:
        raise SettingsError(
            f"report: --trained {text!r} isn't TRAINED=BASE. Expected, say, --trained 'dpo-zh-*=Qwen2.5-7B'; "
            "write ? for an = in the name of a trained model."
        )
    after, before = (_fitting(entered, pattern, text) for pattern in (trained, base))
    before = [one for one in before if one not in after]
    if not before:
        raise SettingsError(f"report: --trained {text}: {base} fits no model but the trained ones. Name their base.")
    return Lineage(_stage(before, base), _stage(after, trained))


def _fitting(entered: Sequence[Entered], pattern: str, text: str) -> list[Entered]:
    """Returns the entrants whose model a pattern fits: its name in the report or in the result file, or its label."""
    fitting = []
    for one in entered:
        names = (one.entrant.model, one.entrant.label, *(each.result.model for each in one.runs.values()))
        if any(fnmatchcase(name, pattern) for name in names):
            fitting.append(one)
    if not fitting:
        models = list(dict.fromkeys(one.entrant.model for one in entered))
        raise SettingsError(f"report: --trained {text}: {pattern} fits no model.{hint(pattern, models)}")
    return fitting


def _by_adapter(trained: Sequence[Entered], entered: Sequence[Entered]) -> Iterator[Lineage]:
    """Yields each model with an adapter and the model below it, where that was run too."""
    bases: dict[str, list[Entered]] = {}
    models: dict[str, list[Entered]] = {}
    for one in entered:
        results = [each.result for each in one.runs.values()]
        if not any(result.adapter or "method" in dict(result.model_args) for result in results):
            bases.setdefault(_only(result.pretrained for result in results), []).append(one)
    for one in trained:
        models.setdefault(one.entrant.model, []).append(one)
    for model, own in models.items():
        results = [each.result for one in own for each in one.runs.values()]
        below = _only(result.pretrained if result.adapter else "" for result in results)
        if below and below in bases:
            yield Lineage(_stage(bases[below], bases[below][0].entrant.model), _stage(own, model))


def _only(names: Iterable[str]) -> str:
    """Returns the one name that all are; empty where they differ."""
    different = set(names)
    return different.pop() if len(different) == 1 else ""


def _stage(entered: Sequence[Entered], name: str) -> TrainingStage:
    return TrainingStage(tuple(one.entrant.key for one in entered), name)
