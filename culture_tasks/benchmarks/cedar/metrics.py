"""Metrics of CEDAR, section 3.3 and Appendix B, as functions of one count table.

Accuracies, biases, shares and F1 are fractions of 1, as both harnesses have them, propensities are ratios, and the
variance is that of fractions. The paper prints accuracies and biases in percent: 100 times as much, and the variance
10,000 times. Where there is nothing to count, a metric is NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar.counts import Counts, CountTable, check_lengths, emotion_codes
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, QUADRANT_NAMES, QUADRANTS, Emotion, Language, Quadrant
from culture_tasks.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Floats = NDArray[np.float64]

_MEMBERSHIP: Floats = np.array([[float(e in QUADRANTS[q]) for q in QUADRANT_NAMES] for e in EMOTIONS])


def _ratio(numerator: Floats | Counts, denominator: Floats | Counts) -> Floats:
    """Divides with broadcasting; where the denominator is 0 the result is NaN."""
    top = np.asarray(numerator, dtype=np.float64)
    bottom = np.broadcast_to(np.asarray(denominator, dtype=np.float64), top.shape)
    quotient: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)
    return quotient


def propensity(predicted: Floats | Counts, gold: Floats | Counts) -> Floats:
    """Equation 1 on arrays whose last axis is the 14 emotions; NaN where an emotion has no gold label."""
    return _ratio(predicted, gold)


def quadrant_bias(predicted: Floats | Counts, gold: Floats | Counts) -> Floats:
    """Equation 2 on arrays whose last axis is the 14 emotions; the result's last axis is the four quadrants."""
    total = gold.sum(axis=-1, keepdims=True)
    difference = (np.asarray(predicted, dtype=np.float64) - gold) @ _MEMBERSHIP
    return _ratio(difference, total)


def marginals(counts: Counts) -> tuple[Counts, Counts]:
    """Returns predictions per emotion (unparsed ones left out) and gold labels per emotion of a … × 14 × 15 table."""
    return counts[..., :-1].sum(axis=-2), counts.sum(axis=-1)


def _accuracy(counts: Counts) -> float:
    correct = np.trace(counts[:, :-1])
    return float(_ratio(np.array([correct]), np.array([counts.sum()]))[0])


def accuracy(table: CountTable) -> float:
    """Standard accuracy over all records.

    Formula: correct / records; an unparsed reply is wrong. Range 0-1 (a fraction), higher is better. Empty input gives
    NaN. Source: section 3.3.
    """
    return _accuracy(table.counts.sum(axis=0))


def accuracy_by_language(table: CountTable) -> dict[Language, float]:
    """Standard accuracy of each language that has records (columns of Table 1)."""
    return {language: _accuracy(table.of(language)) for language in table.languages}


def _averaged(table: CountTable, supported: Collection[Language] | None) -> Floats:
    limited = table if supported is None else table.limited_to(supported)
    return np.array(list(accuracy_by_language(limited).values()))


def acc_avg(table: CountTable, supported: Collection[Language] | None = None) -> float:
    """Macro-average accuracy over languages.

    Formula: mean of :func:`accuracy_by_language`, each language weighing the same. Range 0-1 (a fraction), higher is
    better. No language left gives NaN. Source: section 4.1, Table 1 (Avg.).

    Args:
        table: The counts.
        supported: Languages that the model officially supports; others stay out, as the hyphens of Table 1 do. None
            takes every language that has records.
    """
    values = _averaged(table, supported)
    return float(values.mean()) if values.size else float("nan")


def acc_var(table: CountTable, supported: Collection[Language] | None = None, *, ddof: int = 1) -> float:
    """Cross-lingual variance of accuracy.

    Formula: Σ (acc_l - acc_avg)² / (L - ddof) over L languages. Range 0 to L/(4(L - ddof)), the variance of
    fractions; 0 means that all languages do equally well. L <= ddof gives NaN. Source: Table 1 (Var.), whose accuracies
    are in percent, so that its variance is 10,000 times this one.

    The paper names no divisor, and neither gives its column exactly: of its 32 values, L - 1 is nearer to 19 and L to
    13, so L - 1 is the default.

    Args:
        table: The counts.
        supported: As in :func:`acc_avg`.
        ddof: 1 divides by L - 1 (sample variance), 0 by L (population variance).

    Raises:
        SettingsError: If ddof is neither.
    """
    if ddof not in (0, 1):
        raise SettingsError(f"acc_var: ddof is {ddof!r}. Allowed are 0 (divide by L) and 1 (divide by L - 1).")
    values = _averaged(table, supported)
    return float(values.var(ddof=ddof)) if values.size > ddof else float("nan")


def _by_emotion(values: Floats) -> dict[Emotion, float]:
    return dict(zip(EMOTIONS, values.tolist(), strict=True))


def _by_quadrant(values: Floats) -> dict[Quadrant, float]:
    return dict(zip(QUADRANT_NAMES, values.tolist(), strict=True))


def gepp(table: CountTable) -> dict[Emotion, float]:
    """Global emotion prediction propensity.

    Formula: N(prediction = e) / N(gold = e) over all languages. Range 0 to infinity (a ratio); 1 is neutral, above 1
    the emotion is over-predicted, below 1 under-predicted. An unparsed reply predicts no emotion. An emotion without a
    gold label gives NaN, so empty input gives NaN throughout. Source: equation 1, Tables 7 and 8.
    """
    return _by_emotion(propensity(*marginals(table.counts.sum(axis=0))))


def lsepp(table: CountTable) -> dict[Language, dict[Emotion, float]]:
    """Language-specific propensity: :func:`gepp` within each language that has records (equation 1, Figure 4)."""
    return {language: _by_emotion(propensity(*marginals(table.of(language)))) for language in table.languages}


def grqb(table: CountTable) -> dict[Quadrant, float]:
    """Global Russell quadrant bias.

    Formula: (N(prediction in q) - N(gold in q)) / N(gold) over all languages; the paper prints it in percent. Range -1
    to 1 (a fraction of all gold labels); 0 is neutral, positive is over-predicted. The four values sum to minus the
    unparsed share: an unparsed reply lies in no quadrant. Empty input gives NaN. Source: equation 2, Figure 5;
    quadrants of section 2.5.
    """
    return _by_quadrant(quadrant_bias(*marginals(table.counts.sum(axis=0))))


def lsrqb(table: CountTable) -> dict[Language, dict[Quadrant, float]]:
    """Language-specific quadrant bias: :func:`grqb` within each language that has records (equation 2, Figure 6)."""
    return {language: _by_quadrant(quadrant_bias(*marginals(table.of(language)))) for language in table.languages}


def unparsed_share(table: CountTable) -> float:
    """Share of replies from which no label could be read.

    Formula: unparsed / records. Range 0-1 (a fraction), 0 is best. Empty input gives NaN. Not in the paper.
    """
    unparsed, total = table.counts[..., -1].sum(), table.counts.sum()
    return float(_ratio(np.array([unparsed]), np.array([total]))[0])


def unparsed_by_language(table: CountTable) -> dict[Language, float]:
    """:func:`unparsed_share` of each language that has records."""
    return {language: unparsed_share(table.limited_to([language])) for language in table.languages}


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
    """
    name = "top2_macro_f1"
    check_lengths(name, predictions=predictions, golds=golds, minority=minority)
    predicted = emotion_codes(predictions, name, what="prediction", optional=True)
    gold = emotion_codes(golds, name, what="gold label", optional=False)
    second = emotion_codes(minority, name, what="minority label", optional=True)
    hit = (predicted == gold) | ((predicted == second) & (second < len(EMOTIONS)))
    classes = len(EMOTIONS)
    true_positive = np.bincount(predicted[hit], minlength=classes)[:classes]
    false_positive = np.bincount(predicted[~hit], minlength=classes + 1)[:classes]
    false_negative = np.bincount(gold[~hit], minlength=classes)
    f1 = _ratio(2 * true_positive, 2 * true_positive + false_positive + false_negative)
    defined = f1[~np.isnan(f1)]
    return float(defined.mean()) if defined.size else float("nan")


def accuracy_stderr(table: CountTable) -> float:
    """Standard error of :func:`accuracy`.

    Formula: sqrt(p (1 - p) / (n - 1)), the sample standard deviation over √n. Fewer than two records give NaN.
    """
    total = int(table.counts.sum())
    if total < 2:
        return float("nan")
    share = accuracy(table)
    return float(np.sqrt(share * (1 - share) / (total - 1)))


def acc_avg_stderr(table: CountTable, supported: Collection[Language] | None = None) -> float:
    """Standard error of :func:`acc_avg`.

    Formula: sqrt(Σ se_l²) / L, taking the languages as independent. NaN if a language has fewer than two records
    or no language is left.
    """
    limited = table if supported is None else table.limited_to(supported)
    errors = np.array([accuracy_stderr(limited.limited_to([language])) for language in limited.languages])
    return float(np.sqrt((errors**2).sum()) / errors.size) if errors.size else float("nan")
