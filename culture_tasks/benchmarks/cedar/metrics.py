"""Metrics of CEDAR, section 3.3 and Appendix B.

Most give one value for each document: the metric is their mean, and its error that of a mean
(:func:`culture_tasks.metrics.means.mean_and_error`), with clusters where documents share a scene. A document counts
once, with the shares of its runs.

Accuracies, biases, shares and F1 are fractions of 1, as both harnesses have them, propensities are ratios, and the
variance is that of fractions. The paper prints accuracies and biases in percent: 100 times as much, and the variance
10,000 times. Where there is nothing to count, a metric is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    LANGUAGES,
    QUADRANT_NAMES,
    QUADRANTS,
    Emotion,
    Quadrant,
)
from culture_tasks.errors import DataError, nearest
from culture_tasks.metrics.means import contributions, numbered, ratio_contributions, stratum_means

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Labels: TypeAlias = "Sequence[str | None]"
"""Language, gold label and the prediction of each run of a document.

The language is None in data of one culture that isn't among :data:`LANGUAGES`; a prediction that can't be read is None.
"""

_TINY = 1e-9  # shares of runs add up to 1 but for rounding
_MEMBERSHIP: Floats = np.array([[float(e in QUADRANTS[q]) for q in QUADRANT_NAMES] for e in EMOTIONS])


@dataclass(frozen=True, slots=True)
class Replies:
    """What was replied to documents, with a row for each."""

    predicted: Floats  # share of a document's runs that name each emotion; the rest to 1 couldn't be read
    gold: Floats  # 1 for its gold label, 0 for the other emotions
    languages: Codes  # number of its language

    @property
    def scores(self) -> Floats:
        """Share of each document's runs that are right."""
        scores: Floats = (self.predicted * self.gold).sum(axis=1)
        return scores


def replies_of(documents: Iterable[Labels | None]) -> Replies:
    """Returns the replies to documents, by their labels; None is a document that a metric leaves out.

    Raises:
        DataError: If a label is not allowed.

    Examples:
        >>> replies = replies_of([("en", "awe", "awe", "fear"), ("ja", "fear", None), None])
        >>> replies.scores.tolist(), replies.predicted.sum(axis=1).tolist()
        ([0.5, 0.0], [1.0, 0.0])
    """
    labels = [of_document for of_document in documents if of_document is not None]
    predicted = np.zeros((len(labels), len(EMOTIONS)))
    languages = np.zeros(len(labels), dtype=np.intp)
    for row, (language, _, *runs) in enumerate(labels):
        languages[row] = _number(language, (*LANGUAGES, None), row)
        for prediction in runs:
            if prediction is not None:
                predicted[row, _number(prediction, EMOTIONS, row)] += 1.0 / len(runs)
    return Replies(predicted, indicators([gold for _, gold, *_ in labels]), languages)


def indicators(labels: Sequence[str | None]) -> Floats:
    """Returns a row for each label with 1 for its emotion and 0 for the others, or 0 for all where it is None.

    Raises:
        DataError: If a label is not allowed.
    """
    rows = np.zeros((len(labels), len(EMOTIONS)))
    for row, label in enumerate(labels):
        if label is not None:
            rows[row, _number(label, EMOTIONS, row)] = 1.0
    return rows


def _number(label: str | None, labels: Sequence[str | None], row: int) -> int:
    if label in labels:
        return labels.index(label)
    names = [name for name in labels if name is not None]
    raise DataError(
        f"cedar: {label!r} (record {row}) is not allowed.{nearest(str(label), names)} Expected one of: "
        f"{', '.join(names)}."
    )


def acc_avg(scores: Floats, languages: Codes) -> Floats:
    """Macro-average accuracy over languages.

    Formula: mean of the accuracies of the languages that have documents, each weighing the same. Range 0-1 (a
    fraction), higher is better. Source: section 4.1, Table 1 (Avg.), where languages that the model does not
    officially support stay out.

    Examples:
        >>> replies = replies_of([("en", "awe", "awe"), ("ja", "awe", "awe"), ("ja", "fear", "awe")])
        >>> float(acc_avg(replies.scores, replies.languages).mean())
        0.75
    """
    return contributions(scores, numbered(languages)[1])


def acc_var(scores: Floats, languages: Codes) -> float:
    """Cross-lingual variance of accuracy.

    Formula: Σ (acc_l - acc_avg)² / (L - 1) over L languages. Range 0 to L/(4(L - 1)), the variance of fractions; 0
    means that all languages do equally well. Fewer than two languages give NaN. Source: Table 1 (Var.), whose
    accuracies are in percent, so that its variance is 10,000 times this one.

    The paper names no divisor, and neither L - 1 nor L gives its column exactly: of its 32 values, L - 1 is nearer to
    19 and L to 13.

    Examples:
        >>> replies = replies_of([("en", "awe", "awe"), ("ja", "awe", "awe"), ("ja", "fear", "awe")])
        >>> acc_var(replies.scores, replies.languages)
        0.125
    """
    of_languages = stratum_means(scores, numbered(languages)[1])
    return float(of_languages.var(ddof=1)) if of_languages.size > 1 else math.nan


def unparsed_share(replies: Replies) -> Floats:
    """Share of replies from which no label could be read.

    Formula: unparsed / replies. Range 0-1 (a fraction), 0 is best. Not in the paper.

    Examples:
        >>> float(unparsed_share(replies_of([("en", "awe", "awe"), ("en", "fear", None)])).mean())
        0.5
    """
    share: Floats = 1.0 - replies.predicted.sum(axis=1)
    return share


def gepp(replies: Replies) -> dict[Emotion, Floats]:
    """Global emotion prediction propensity; of replies in one language, the language-specific one (LSEPP).

    Formula: N(prediction = e) / N(gold = e). Range 0 to infinity (a ratio); 1 is neutral, above 1 the emotion is
    over-predicted, below 1 under-predicted. An unparsed reply predicts no emotion. An emotion without a gold label
    gives NaN. Source: equation 1, Tables 7 and 8, Figure 4.

    Examples:
        >>> replies = [("en", "awe", "awe"), ("en", "awe", "awe"), ("en", "fear", "awe"), ("en", "fear", "fear")]
        >>> propensities = gepp(replies_of(replies))
        >>> float(propensities["awe"].mean()), float(propensities["fear"].mean())
        (1.5, 0.5)
    """
    columns = zip(EMOTIONS, replies.predicted.T, replies.gold.T, strict=True)
    return {emotion: ratio_contributions(predicted, gold) for emotion, predicted, gold in columns}


def grqb(replies: Replies) -> dict[Quadrant, Floats]:
    """Global Russell quadrant bias; of replies in one language, the language-specific one (LSRQB).

    Formula: (N(prediction in q) - N(gold in q)) / N(gold); the paper prints it in percent. Range -1 to 1 (a fraction of
    all gold labels); 0 is neutral, positive is over-predicted. The four values sum to minus the unparsed share: an
    unparsed reply lies in no quadrant. Source: equation 2, Figures 5 and 6; quadrants of section 2.5.

    Examples:
        >>> replies = [("en", "awe", "awe"), ("en", "awe", "awe"), ("en", "fear", "awe"), ("en", "fear", "fear")]
        >>> {quadrant: float(values.mean()) for quadrant, values in grqb(replies_of(replies)).items()}
        {'I': 0.0, 'II': -0.25, 'III': 0.0, 'IV': 0.25}
    """
    return dict(zip(QUADRANT_NAMES, ((replies.predicted - replies.gold) @ _MEMBERSHIP).T, strict=True))


def top2_macro_f1(replies: Replies, minority: Floats) -> float:
    """Macro F1 against the two most frequent annotations of each item.

    Reading of the paper: an item's gold set is its majority label and, where there is one, its minority label. A
    prediction inside the set is a true positive of its emotion; one outside is a false positive of the predicted
    emotion and a false negative of the majority label. F1_e = 2 TP / (2 TP + FP + FN), averaged over the emotions for
    which that is defined (any of the three is not 0). An unparsed prediction is a false negative only.

    The paper says only that the gold labels are expanded to two and that Macro F1 is computed. Counting both labels
    as gold would charge a perfect single answer with a miss on every item that has two; 6,477 of the 8,162 items do,
    which caps F1 near 0.72, and Table 5 has 0.759.

    ``minority`` has the second label of each document as :func:`indicators` do; a document counts with the shares of
    its runs. Range 0-1 (a fraction), higher is better. Empty input gives NaN. Source: Appendix B, Table 5.

    Examples:
        >>> top2_macro_f1(replies_of([("en", "awe", "awe"), ("en", "awe", "desire")]), indicators([None, "desire"]))
        1.0
    """
    hits = replies.predicted * np.maximum(replies.gold, minority)
    twice_hit: Floats = 2.0 * hits.sum(axis=0)
    false_negatives = replies.gold * (1.0 - hits.sum(axis=1, keepdims=True))
    missed: Floats = (replies.predicted - hits + false_negatives).sum(axis=0)
    counted = twice_hit + missed > _TINY
    return float((twice_hit[counted] / (twice_hit + missed)[counted]).mean()) if counted.any() else math.nan
