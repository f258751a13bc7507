"""How well the people of a project agree, beside the numbers that CEDAR prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, MODALITIES, Emotion
from culture_tasks.benchmarks.cedar.metrics import top2_macro_f1
from culture_tasks.benchmarks.cedar.scenes import contrast_labels, scenes_of
from culture_tasks.benchmarks.culture_rows import figure_of, nominal_alpha, resampled
from culture_tasks.benchmarks.cultures import Figure, State
from culture_tasks.metrics.intervals import Interval, mean_interval, proportion_interval

_Labels: TypeAlias = Sequence[Sequence[Emotion]]
"""Labels of each scene."""

_FEWEST = 10
"""Scenes from which a figure is computed: fewer say nothing of the people, whatever the number is."""

_PRINTED = {  # lowest and highest of the seven languages in Table 2: alpha, mean pairwise F1
    "multimodal": ("0.693 to 0.773", "0.577 to 0.715"),
    "text": ("0.792 to 0.931", "0.650 to 0.810"),
}


def figures(state: State) -> Iterator[Figure]:
    """Yields the agreement of labels by modality, what the check found, and how words came back.

    Table 2 doesn't say between whom it measures. Here alpha (nominal) is of the gold label and the second labels of
    each scene, and F1 the mean over the second labellers of macro F1 against the gold labels.
    """
    scenes, contrast = scenes_of(state), contrast_labels(state)
    labelled = [scene for scene in scenes if not scene.why_unlabelled]
    gold = [(scene, scene.decision.gold) for scene in labelled if scene.decision.gold]
    for kind in MODALITIES:
        some = [scene.labels("label") for scene in labelled if scene.modality == kind]
        if not some:
            continue
        first = [labels for labels in some if len(labels) > 1]
        second = [(label, *scene.labels("second")) for scene, label in gold if scene.modality == kind]
        second = [labels for labels in second if len(labels) > 1]
        alpha, f1 = _PRINTED[kind]
        floor = state.config.options[f"floor_{kind}"] or None
        yield _figure("raw agreement of the first labels", kind, _measured(_raw_agreement, first))
        yield _figure("alpha of the first labels", kind, _measured(_alpha, first))
        yield _figure("alpha, second labels and gold", kind, _measured(_alpha, second), alpha, floor)
        yield _figure("mean F1 of second labels against gold", kind, _measured(_mean_f1, second), f1)
    checks = [entry.values for scene in scenes for entry in state.of("check", scene.row)]
    for name, title, printed in (("fluency", "mean fluency", "9.36"), ("fidelity", "mean fidelity", "9.16")):
        if ratings := [values[name] for values in checks if values.get(name)]:
            yield _figure(title, "check", mean_interval(ratings), printed)
    if clean := [bool(values["clean"]) for values in checks if "clean" in values]:
        yield _figure("share without words for emotions", "check", proportion_interval(sum(clean), len(clean)), "0.93")
    if differs := [set(contrast[scene.id]) != {label} for scene, label in gold if scene.id in contrast]:
        yield _figure(
            "share of scenes on which the cultures differ", "label", proportion_interval(sum(differs), len(differs))
        )
    back = [
        str(entry.values["english"]).strip().casefold() == emotion
        for emotion in EMOTIONS
        for entry in state.of("words_back", emotion)
    ]
    yield _figure(
        "share of words that come back as the same emotion", "words_back", proportion_interval(sum(back), len(back))
    )


def _figure(name: str, of: str, interval: Interval, printed: str = "", floor: float | None = None) -> Figure:
    missing = f"{interval.n} of the {_FEWEST} that it needs at least" if interval.n < _FEWEST else ""
    return figure_of(name, of, interval, missing=missing, printed=printed, floor=floor)


def _measured(measure: Callable[[_Labels], Interval], labels: _Labels) -> Interval:
    """Returns a measure of the labels of scenes, where they are enough."""
    interval = measure(labels) if len(labels) >= _FEWEST else Interval(n=len(labels))
    return interval._replace(reason="all labels are alike")


def _alpha(labels: _Labels) -> Interval:
    return nominal_alpha(labels, EMOTIONS)


def _raw_agreement(labels: _Labels) -> Interval:
    pairs = [[one == other for one, other in combinations(found, 2)] for found in labels]
    shares = np.array([sum(each) / len(each) for each in pairs])
    return resampled(lambda places: float(shares[places].mean()), len(labels))


def _mean_f1(labels: _Labels) -> Interval:
    """Mean of macro F1 against the first label of each scene, over the others in their order."""

    def measure(places: NDArray[np.int64]) -> float:
        drawn = [labels[place] for place in places]
        scores = []
        for person in range(1, max(map(len, drawn))):
            golds, others = zip(*((found[0], found[person]) for found in drawn if person < len(found)), strict=True)
            scores.append(top2_macro_f1(others, golds, [None] * len(golds)))
        return float(np.mean(scores))

    return resampled(measure, len(labels))
