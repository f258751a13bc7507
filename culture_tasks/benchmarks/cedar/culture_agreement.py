"""How well the people of a project agree, beside the numbers that CEDAR prints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, MODALITIES, Emotion
from culture_tasks.benchmarks.cedar.metrics import top2_macro_f1
from culture_tasks.benchmarks.cedar.scenes import contrast_labels, scenes_of
from culture_tasks.benchmarks.cultures import Figure, State
from culture_tasks.metrics.intervals import Interval, mean_interval, proportion_interval
from culture_tasks.metrics.rater_agreement import krippendorff_alpha
from culture_tasks.metrics.resampling import replicates

_Labels: TypeAlias = Sequence[Sequence[Emotion]]
"""Labels of each scene."""

_Measure: TypeAlias = Callable[[NDArray[np.int64]], float]
"""A measure of some of the scenes, by their places."""

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
        yield _figure("raw agreement of the first labels", kind, _resampled(_raw_agreement, first))
        yield _figure("alpha of the first labels", kind, _resampled(_alpha, first))
        yield _figure("alpha, second labels and gold", kind, _resampled(_alpha, second), alpha, floor)
        yield _figure("mean F1 of second labels against gold", kind, _resampled(_mean_f1, second), f1)
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
    missing = "" if interval.value == interval.value else interval.reason or ""
    if interval.n < _FEWEST:
        interval, missing = Interval(n=interval.n), f"{interval.n} of the {_FEWEST} that it needs at least"
    return Figure(name, of, interval.value, interval.n, interval.low, interval.high, printed, floor, missing)


def _resampled(measure_of: Callable[[_Labels], _Measure], labels: _Labels) -> Interval:
    """Returns a measure of the labels of scenes, with the percentiles of a bootstrap over scenes."""
    n = len(labels)
    if n < _FEWEST:
        return Interval(n=n)
    measure = measure_of(labels)
    value = measure(np.arange(n))
    if math.isnan(value):
        return Interval(n=n, reason="all labels are alike")
    low, high = np.nanquantile(replicates(measure, list(map(str, range(n)))), [0.025, 0.975]).tolist()
    return Interval(value, low, high, n=n, clusters=n)


def _raw_agreement(labels: _Labels) -> _Measure:
    pairs = [[one == other for one, other in combinations(found, 2)] for found in labels]
    shares = np.array([sum(each) / len(each) for each in pairs])
    return lambda places: float(shares[places].mean())


def _alpha(labels: _Labels) -> _Measure:
    table = np.full((max(map(len, labels)), len(labels)), np.nan)
    for place, found in enumerate(labels):
        table[: len(found), place] = [EMOTIONS.index(emotion) for emotion in found]
    return lambda places: krippendorff_alpha(table[:, places], level="nominal").value


def _mean_f1(labels: _Labels) -> _Measure:
    """Mean of macro F1 against the first label of each scene, over the others in their order."""

    def measure(places: NDArray[np.int64]) -> float:
        drawn = [labels[place] for place in places]
        scores = []
        for person in range(1, max(map(len, drawn))):
            golds, others = zip(*((found[0], found[person]) for found in drawn if person < len(found)), strict=True)
            scores.append(top2_macro_f1(others, golds, [None] * len(golds)))
        return float(np.mean(scores))

    return measure
