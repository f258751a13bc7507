"""How well the people of a project agree, beside the numbers that CEDAR prints of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, MODALITIES, Emotion
from culture_tasks.benchmarks.cedar.metrics import top2_macro_f1
from culture_tasks.benchmarks.cedar.scenes import CHECK, LABEL, SECOND, WORDS_BACK, Scenes
from culture_tasks.benchmarks.cultures import Figure
from culture_tasks.metrics.intervals import Interval, mean_interval, proportion_interval
from culture_tasks.metrics.rater_agreement import krippendorff_alpha
from culture_tasks.metrics.resampling import replicates

_Labels: TypeAlias = Sequence[Sequence[Emotion]]
"""Labels of each scene."""

_Measure: TypeAlias = Callable[[NDArray[np.int64]], float]
"""A measure of some of the scenes, by their places."""

FEWEST = 10
"""Scenes from which a figure is computed: fewer say nothing of the people, whatever the number is."""

_PRINTED = {  # lowest and highest of the seven languages in Table 2: alpha, mean pairwise F1
    "multimodal": ("0.693 to 0.773", "0.577 to 0.715"),
    "text": ("0.792 to 0.931", "0.650 to 0.810"),
}


def figures(scenes: Scenes) -> Iterator[Figure]:
    """Yields the agreement of labels by modality, what the check found, and how words came back.

    Table 2 doesn't say between whom it measures. Here alpha (nominal) is of the gold label and the second labels of
    each scene, and F1 the mean over the second labellers of macro F1 against the gold labels.
    """
    options = scenes.state.config.options
    for kind in MODALITIES:
        rows = [scene.row for scene in scenes.all if scene.modality == kind and scene.row in scenes.texts]
        if not rows:
            continue
        labels = [found for row in rows if len(found := scenes.labels(LABEL, row)) > 1]
        second = [
            (gold, *found)
            for row in rows
            if (gold := scenes.decisions[row].gold) and (found := scenes.labels(SECOND, row))
        ]
        alpha, f1 = _PRINTED[kind]
        yield _figure("raw agreement of the first labels", kind, _resampled(_raw_agreement, labels))
        yield _figure("alpha of the first labels", kind, _resampled(_alpha, labels))
        beside = _resampled(_alpha, second)
        yield _figure("alpha, second labels and gold", kind, beside, alpha, options[f"floor_{kind}"])
        yield _figure("mean F1 of second labels against gold", kind, _resampled(_mean_f1, second), f1)
    checks = [entry.values for scene in scenes.all for entry in scenes.state.of(CHECK, scene.row)]
    if scenes.is_new:
        clean = [bool(values["clean"]) for values in checks if "clean" in values]
        yield _figure("share without words for emotions", CHECK, _share(clean), "0.93")
        golds = {scene.id: scenes.decisions[scene.row].gold for scene in scenes.all if scene.row in scenes.texts}
        differs = [
            any(other != gold for other in scenes.contrast[identifier])
            for identifier, gold in golds.items()
            if gold and identifier in scenes.contrast
        ]
        if scenes.contrast:
            yield _figure("share of scenes on which the cultures differ", LABEL, _share(differs))
    else:
        for name, title, printed in (("fluency", "mean fluency", "9.36"), ("fidelity", "mean fidelity", "9.16")):
            ratings = [values[name] for values in checks if name in values]
            yield _figure(title, CHECK, mean_interval(ratings), printed)
    back = [
        str(entry.values["english"]).strip().casefold() == emotion
        for emotion in EMOTIONS
        for entry in scenes.state.of(WORDS_BACK, emotion)
    ]
    yield _figure("share of words that come back as the same emotion", WORDS_BACK, _share(back))


def _figure(name: str, of: str, interval: Interval, printed: str = "", floor: float | None = None) -> Figure:
    n = interval.n
    if n < FEWEST:
        missing = f"{n} of the {FEWEST} that it needs at least"
        return Figure(name, of, math.nan, n, printed=printed, floor=floor, missing=missing)
    missing = (interval.reason or "") if math.isnan(interval.value) else ""
    return Figure(name, of, interval.value, n, interval.low, interval.high, printed, floor, missing)


def _share(values: Sequence[bool]) -> Interval:
    return proportion_interval(sum(values), len(values))


def _resampled(measure_of: Callable[[_Labels], _Measure], labels: _Labels) -> Interval:
    """Returns a measure of the labels of scenes, with the percentiles of a bootstrap over scenes."""
    n = len(labels)
    if n < FEWEST:
        return Interval(n=n)
    measure = measure_of(labels)
    value = measure(np.arange(n))
    if math.isnan(value):
        return Interval(n=n, reason="all labels are alike")
    draws = replicates(measure, list(map(str, range(n))))
    low, high = np.nanquantile(draws, [0.025, 0.975]).tolist()
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
            both = [(found[0], found[person]) for found in drawn if person < len(found)]
            golds, others = [gold for gold, _ in both], [other for _, other in both]
            scores.append(top2_macro_f1(others, golds, [None] * len(both)))
        return float(np.mean(scores))

    return measure
