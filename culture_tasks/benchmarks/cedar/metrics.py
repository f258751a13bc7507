"""Metrics of CEDAR, section 3.3 and Appendix B.

All but the top-2 F1 are functions of one table of counts, language × gold label × prediction.

Accuracies, biases, shares and F1 are fractions of 1, as both harnesses have them, propensities are ratios, and the
variance is that of fractions. The paper prints accuracies and biases in percent: 100 times as much, and the variance
10,000 times. Where there is nothing to count, a metric is NaN.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    LANGUAGES,
    QUADRANT_NAMES,
    QUADRANTS,
    Emotion,
    Language,
    Quadrant,
)
from culture_tasks.errors import DataError, nearest

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Labels: TypeAlias = "Sequence[str | None]"
"""Language, gold label and the prediction of each run of a document.

The language is None in data of one culture that isn't among :data:`LANGUAGES`; a prediction that can't be read is None.
"""

_DRAWS = 1000
_SEED = 1234
_UNPARSED = len(EMOTIONS)
_MEMBERSHIP: Floats = np.array([[float(e in QUADRANTS[q]) for q in QUADRANT_NAMES] for e in EMOTIONS])
_PREDICTIONS: tuple[Hashable, ...] = (*EMOTIONS, None)


def _ratio(numerator: Floats | Counts, denominator: Floats | Counts) -> Floats:
    """Divides with broadcasting; where the denominator is 0 the result is NaN."""
    top = np.asarray(numerator, dtype=np.float64)
    bottom = np.broadcast_to(np.asarray(denominator, dtype=np.float64), top.shape)
    quotient: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
    return quotient


def quadrant_difference(predicted: Floats | Counts, gold: Floats | Counts) -> Floats:
    """Predictions minus gold labels in each quadrant, the numerator of equation 2.

    The arrays' last axis is the 14 emotions, the result's the four quadrants. Of single replies, each an array of zeros
    and at most one 1, the mean of the differences is the bias.

    Examples:
        >>> awe, fear = (np.eye(len(EMOTIONS))[EMOTIONS.index(emotion)] for emotion in ("awe", "fear"))
        >>> quadrant_difference(awe, fear).tolist()
        [0.0, -1.0, 0.0, 1.0]
    """
    difference: Floats = (np.asarray(predicted, dtype=np.float64) - gold) @ _MEMBERSHIP
    return difference


@dataclass(frozen=True, slots=True)
class CountTable:
    """How often each prediction met each gold label, by language.

    The array is 7 languages × 14 gold labels × 15 predictions, in the order of ``LANGUAGES`` and ``EMOTIONS``; the last
    prediction is "unparsed". Data of an own culture have one row in place of the seven.
    """

    counts: Counts

    def limited_to(self, languages: Collection[Language]) -> CountTable:
        """Returns a table without the records of other languages.

        Examples:
            >>> table = tabulate(["awe", "awe"], ["awe", "fear"], ["en", "ja"])
            >>> accuracy(table), accuracy(table.limited_to(["en"]))
            (0.5, 1.0)
        """
        keep = np.zeros(len(LANGUAGES), dtype=np.int64)
        keep[_codes(list(languages), LANGUAGES, "language", "cedar")] = 1
        return CountTable(self.counts * keep[:, None, None])

    @property
    def correct(self) -> Counts:
        """Right predictions of each language."""
        return cast("Counts", np.trace(self.counts[..., :_UNPARSED], axis1=1, axis2=2))

    @property
    def sizes(self) -> Counts:
        """Records of each language."""
        return cast("Counts", self.counts.sum(axis=(1, 2)))

    @property
    def accuracies(self) -> Floats:
        """Accuracy of each language that has records (columns of Table 1)."""
        return _ratio(self.correct, self.sizes)[self.sizes > 0]


def _codes(values: Sequence[Hashable], vocabulary: Sequence[Hashable], kind: str, metric: str) -> NDArray[np.intp]:
    places = {value: place for place, value in enumerate(vocabulary)}
    try:
        return np.fromiter((places[value] for value in values), dtype=np.intp, count=len(values))
    except (KeyError, TypeError):
        row = next(row for row, value in enumerate(values) if not isinstance(value, Hashable) or value not in places)
        names = [str(name) for name in vocabulary if name is not None]
        raise DataError(
            f"{metric}: {kind} {values[row]!r} (record {row}) is not allowed.{nearest(str(values[row]), names)} "
            f"Expected one of: {', '.join(names)}{' and None' if None in vocabulary else ''}."
        ) from None


def _check_lengths(metric: str, **columns: Sequence[object]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {size}" for name, size in lengths.items())
        raise DataError(f"{metric}: the columns differ in length: {sizes}. Give one value per record in each.")


def tabulate(
    predictions: Sequence[Emotion | None],
    golds: Sequence[Emotion],
    languages: Sequence[Language | None],
    *,
    times: Sequence[int] | None = None,
) -> CountTable:
    """Counts the records of three columns.

    Args:
        predictions: Label read from each reply, or None where none could be read.
        golds: English gold label of each record.
        languages: Language of each record's data; None for all records of an own culture.
        times: How often each record occurs; None means once.

    Raises:
        DataError: If the columns differ in length or hold a value that is not allowed.

    Examples:
        >>> table = tabulate(["awe", None], ["awe", "fear"], ["en", "en"])
        >>> table.counts.shape, int(table.counts.sum())
        ((7, 14, 15), 2)
    """
    _check_lengths("cedar", predictions=predictions, golds=golds, languages=languages)
    rows: Sequence[Language | None] = (None,) if None in languages else LANGUAGES
    cells = (
        _codes(languages, rows, "language", "cedar"),
        _codes(golds, EMOTIONS, "gold label", "cedar"),
        _codes(predictions, _PREDICTIONS, "prediction", "cedar"),
    )
    counts = np.zeros((len(rows), len(EMOTIONS), len(_PREDICTIONS)), dtype=np.int64)
    np.add.at(counts, cells, 1 if times is None else times)
    return CountTable(counts)


def table_of(documents: Iterable[Labels | None]) -> CountTable:
    """Counts the predictions of documents, all runs alike; None is a document that a metric leaves out.

    Examples:
        >>> table_of([("en", "awe", "awe"), ("en", "fear", None), None]).sizes.tolist()
        [0, 2, 0, 0, 0, 0, 0]
        >>> accuracy(table_of([("en", "awe", "awe", "fear", "awe", None)]))
        0.5
        >>> table_of([(None, "awe", "awe"), (None, "fear", None)]).counts.shape
        (1, 14, 15)
    """
    counts: Counter[tuple[Any, ...]] = Counter(
        (*labels[:2], prediction) for labels in documents if labels is not None for prediction in labels[2:]
    )
    languages, golds, predictions = zip(*counts, strict=True) if counts else ((), (), ())
    return tabulate(predictions, golds, languages, times=list(counts.values()))


def _quadrant_bias(predicted: Counts, gold: Counts) -> Floats:
    return _ratio(quadrant_difference(predicted, gold), gold.sum(axis=-1, keepdims=True))


def _marginals(counts: Counts) -> tuple[Counts, Counts]:
    """Returns predictions per emotion (unparsed ones left out) and gold labels per emotion of a … × 14 × 15 table."""
    return counts[..., :_UNPARSED].sum(axis=-2), counts.sum(axis=-1)


def accuracy(table: CountTable) -> float:
    """Standard accuracy over all records.

    Formula: correct / records; an unparsed reply is wrong. Range 0-1 (a fraction), higher is better. Empty input gives
    NaN. Source: section 3.3.

    Examples:
        >>> accuracy(tabulate(["awe", "awe", None, "pain"], ["awe", "fear", "fear", "pain"], ["en"] * 4))
        0.5
    """
    return float(_ratio(table.correct.sum(), table.sizes.sum()))


def accuracy_stderr(table: CountTable) -> float:
    """Standard error of :func:`accuracy`.

    Formula: sqrt(p (1 - p) / (n - 1)), the sample standard deviation over √n. Fewer than two records give NaN.

    Examples:
        >>> table = tabulate(["awe", "awe", None, "pain"], ["awe", "fear", "fear", "pain"], ["en"] * 4)
        >>> round(accuracy_stderr(table), 4)
        0.2887
    """
    return _share_stderr(accuracy(table), table)


def _share_stderr(share: float, table: CountTable) -> float:
    total = int(table.counts.sum())
    return math.sqrt(share * (1 - share) / (total - 1)) if total > 1 else math.nan


def acc_avg(table: CountTable) -> float:
    """Macro-average accuracy over languages.

    Formula: mean of the accuracies of the languages that have records, each weighing the same. Range 0-1 (a fraction),
    higher is better. Empty input gives NaN. Source: section 4.1, Table 1 (Avg.), where languages that the model does
    not officially support stay out: limit the table to the others first.

    Examples:
        >>> acc_avg(tabulate(["awe", "awe", "awe"], ["awe", "awe", "fear"], ["en", "ja", "ja"]))
        0.75
    """
    return float(table.accuracies.mean()) if table.accuracies.size else math.nan


def acc_avg_stderr(table: CountTable) -> float:
    """Standard error of :func:`acc_avg`.

    Formula: sqrt(Σ se_l²) / L, taking the languages as independent. NaN if a language has fewer than two records
    or there is none.

    Examples:
        >>> table = tabulate(["awe", "fear"] * 2, ["awe"] * 4, ["en", "en", "ja", "ja"])
        >>> round(acc_avg_stderr(table), 4)
        0.3536
    """
    present = [language for language, size in zip(LANGUAGES, table.sizes, strict=True) if size]
    errors = [accuracy_stderr(table.limited_to([language])) for language in present]
    return math.hypot(*errors) / len(errors) if errors else math.nan


def acc_var(table: CountTable) -> float:
    """Cross-lingual variance of accuracy.

    Formula: Σ (acc_l - acc_avg)² / (L - 1) over L languages. Range 0 to L/(4(L - 1)), the variance of fractions; 0
    means that all languages do equally well. Fewer than two languages give NaN. Source: Table 1 (Var.), whose
    accuracies are in percent, so that its variance is 10,000 times this one.

    The paper names no divisor, and neither L - 1 nor L gives its column exactly: of its 32 values, L - 1 is nearer to
    19 and L to 13.

    Examples:
        >>> acc_var(tabulate(["awe", "awe", "awe"], ["awe", "awe", "fear"], ["en", "ja", "ja"]))
        0.125
    """
    return float(table.accuracies.var(ddof=1)) if table.accuracies.size > 1 else math.nan


def unparsed_share(table: CountTable) -> float:
    """Share of replies from which no label could be read.

    Formula: unparsed / records. Range 0-1 (a fraction), 0 is best. Empty input gives NaN. Not in the paper.

    Examples:
        >>> unparsed_share(tabulate(["awe", None], ["awe", "fear"], ["en", "en"]))
        0.5
    """
    return float(_ratio(table.counts[..., _UNPARSED].sum(), table.counts.sum()))


def unparsed_stderr(table: CountTable) -> float:
    """Standard error of :func:`unparsed_share`, as :func:`accuracy_stderr` is of the accuracy.

    Examples:
        >>> unparsed_stderr(tabulate(["awe", None], ["awe", "fear"], ["en", "en"]))
        0.5
    """
    return _share_stderr(unparsed_share(table), table)


def top2_macro_f1(
    predictions: Sequence[Emotion | None], golds: Sequence[Emotion], minority: Sequence[Emotion | None]
) -> float:
    """Macro F1 against the two most frequent annotations of each item.

    Reading of the paper: an item's gold set is its majority label and, where there is one, its minority label. A
    prediction inside the set is a true positive of its emotion; one outside is a false positive of the predicted
    emotion and a false negative of the majority label. F1_e = 2 TP / (2 TP + FP + FN), averaged over the emotions for
    which that is defined (any of the three is not 0). An unparsed prediction is a false negative only.

    The paper says only that the gold labels are expanded to two and that Macro F1 is computed. Counting both labels
    as gold would charge a perfect single answer with a miss on every item that has two; 6,477 of the 8,162 items do,
    which caps F1 near 0.72, and Table 5 has 0.759.

    Range 0-1 (a fraction), higher is better. Empty input gives NaN. Source: Appendix B, Table 5.

    Raises:
        DataError: If the columns differ in length or hold a value that is not allowed.

    Examples:
        >>> top2_macro_f1(["awe", "desire"], ["awe", "awe"], [None, "desire"])
        1.0
    """
    name = "top2_macro_f1"
    _check_lengths(name, predictions=predictions, golds=golds, minority=minority)
    predicted = _codes(predictions, _PREDICTIONS, "prediction", name)
    gold = _codes(golds, EMOTIONS, "gold label", name)
    second = _codes(minority, _PREDICTIONS, "minority label", name)
    hit = (predicted == gold) | ((predicted == second) & (second < _UNPARSED))
    classes = len(EMOTIONS)
    true_positive = np.bincount(predicted[hit], minlength=classes)[:classes]
    false_positive = np.bincount(predicted[~hit], minlength=classes + 1)[:classes]
    false_negative = np.bincount(gold[~hit], minlength=classes)
    f1 = _ratio(2 * true_positive, 2 * true_positive + false_positive + false_negative)
    defined = f1[~np.isnan(f1)]
    return float(defined.mean()) if defined.size else math.nan


def gepp(table: CountTable) -> dict[Emotion, float]:
    """Global emotion prediction propensity; of a table of one language, the language-specific one (LSEPP).

    Formula: N(prediction = e) / N(gold = e). Range 0 to infinity (a ratio); 1 is neutral, above 1 the emotion is
    over-predicted, below 1 under-predicted. An unparsed reply predicts no emotion. An emotion without a gold label
    gives NaN, so empty input gives NaN throughout. Source: equation 1, Tables 7 and 8, Figure 4.

    Examples:
        >>> propensities = gepp(tabulate(["awe", "awe", "awe", "fear"], ["awe", "awe", "fear", "fear"], ["en"] * 4))
        >>> propensities["awe"], propensities["fear"]
        (1.5, 0.5)
    """
    return dict(zip(EMOTIONS, _ratio(*_marginals(table.counts.sum(axis=0))).tolist(), strict=True))


def grqb(table: CountTable) -> dict[Quadrant, float]:
    """Global Russell quadrant bias; of a table of one language, the language-specific one (LSRQB).

    Formula: (N(prediction in q) - N(gold in q)) / N(gold); the paper prints it in percent. Range -1 to 1 (a fraction of
    all gold labels); 0 is neutral, positive is over-predicted. The four values sum to minus the unparsed share: an
    unparsed reply lies in no quadrant. Empty input gives NaN. Source: equation 2, Figures 5 and 6; quadrants of
    section 2.5.

    Examples:
        >>> grqb(tabulate(["awe", "awe", "awe", "fear"], ["awe", "awe", "fear", "fear"], ["en"] * 4))
        {'I': 0.0, 'II': -0.25, 'III': 0.0, 'IV': 0.25}
    """
    return dict(zip(QUADRANT_NAMES, _quadrant_bias(*_marginals(table.counts.sum(axis=0))).tolist(), strict=True))


class StandardErrors(NamedTuple):
    """Bootstrap standard errors: of each emotion's propensity (a ratio) and each quadrant's bias (a fraction)."""

    gepp: dict[Emotion, float]
    grqb: dict[Quadrant, float]


def bootstrapped(table: CountTable) -> StandardErrors:
    """Bootstrap standard errors of :func:`gepp` and :func:`grqb`, over 1,000 resamples of the records.

    Both are functions of two marginals, predictions and gold labels per emotion, so a resample of the records is a
    multinomial draw of the table's cells, whose cost doesn't grow with the records. One table always gives the same
    numbers; an empty one gives NaN throughout. The latest tables are remembered.

    Examples:
        >>> table = tabulate(["awe", "fear"] * 50, ["awe", "awe"] * 50, ["en"] * 100)
        >>> round(bootstrapped(table).gepp["awe"], 2)
        0.05
    """
    return _bootstrapped(table.counts.sum(axis=0).tobytes())


@lru_cache(maxsize=64)  # a table for each pair of languages
def _bootstrapped(content: bytes) -> StandardErrors:
    cells = np.frombuffer(content, dtype=np.int64)
    total = int(cells.sum())
    sample = np.random.default_rng(_SEED).multinomial(total, cells / max(total, 1), size=_DRAWS)
    predicted, gold = _marginals(sample.reshape(_DRAWS, len(EMOTIONS), len(_PREDICTIONS)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a metric that fewer than two draws define has NaN
        of_emotions = np.nanstd(_ratio(predicted, gold), axis=0, ddof=1).tolist()
        of_quadrants = np.nanstd(_quadrant_bias(predicted, gold), axis=0, ddof=1).tolist()
    return StandardErrors(
        gepp=dict(zip(EMOTIONS, of_emotions, strict=True)),
        grqb=dict(zip(QUADRANT_NAMES, of_quadrants, strict=True)),
    )


def jackknife_stderr(
    value: Callable[[CountTable], float], documents: Iterable[Labels], clusters: Iterable[Hashable]
) -> float:
    """Standard error of any metric over documents that share scenes or have several runs.

    Formula: sqrt((G - 1) / G * Σ (v_g - v)²), v_g being the metric without cluster g, v their mean. Of the mean of a
    score, one document per cluster, it is the standard deviation of the documents' own means over √n. NaN where the
    metric is undefined without one of the clusters, and with fewer than two. Not in the paper.

    Examples:
        >>> documents = [("en", "awe", "awe", "awe"), ("en", "fear", "fear", "awe")]
        >>> jackknife_stderr(accuracy, documents, ["1", "2"])
        0.25
    """
    tables = _cluster_tables(tuple(documents), tuple(clusters))
    total = tables.sum(axis=0, dtype=np.int64)
    values = np.array([value(CountTable(total - counts)) for counts in tables])
    return math.sqrt((values.size - 1) * values.var()) if values.size > 1 else math.nan


@lru_cache(maxsize=2)  # all metrics of a task are over the same documents
def _cluster_tables(documents: Sequence[Labels], clusters: Sequence[Hashable]) -> NDArray[np.int16]:
    members: dict[Hashable, list[Labels]] = {}
    for labels, cluster in zip(documents, clusters, strict=True):
        members.setdefault(cluster, []).append(labels)
    return np.array([table_of(of_cluster).counts for of_cluster in members.values()], dtype=np.int16)
