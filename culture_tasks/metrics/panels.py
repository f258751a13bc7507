"""Several judges as one: weighted by how well each predicts people's ratings, and no better than that holds elsewhere.

The panel's scores take the place of one judge's in :mod:`culture_tasks.metrics.prediction_powered`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from culture_tasks.metrics.means import Clusters, Floats, Numbers, centred, cluster_numbers, filled
from culture_tasks.metrics.prediction_powered import FEW_DIFFERING

_FOLDS = 5
"""Parts of the rated responses; the weights for one are learned from the others."""

_PRIOR = 10.0
"""Ratings that the weights of all strata count for in those of one, and equal weights in those of all."""


class JudgePanel(NamedTuple):
    """A panel of judges.

    Attributes:
        scores: Its score of each response, up to a number that the responses of a stratum share.
        weights: The weight of each judge in each stratum: a row per stratum, in the order of first responses.
    """

    scores: Floats
    weights: Floats


def weighted_panel(
    judges: ArrayLike, people: ArrayLike, strata: Sequence[Hashable], *, clusters: Clusters | None = None
) -> JudgePanel:
    """Weights several judges by people's ratings of a random part of the responses.

    Formula: the score of a response is the sum over judges of w_hj (f_j - mean of f_j over stratum h), with one of four
    sets of weights w of at least 0:

    * one judge alone, with the slope of people's ratings on its scores, within strata;
    * all judges alike, with the slope on their mean;
    * the same weights in all strata: least squares, with the weights before as ten more ratings;
    * weights for each stratum: least squares, with the weights before as ten more ratings.

    That of the first two is kept whose mean squared error is less, in ratings that its weights weren't learned from. Of
    it and the other two, the simplest is taken whose error is within one standard error of the least. So one judge, or
    their mean, is left where weights don't pay.

    All of this is cross-fitted: the rated responses make five parts (clusters stay together), the score of one that is
    rated has weights that were chosen and learned from the other parts, and that of one that isn't has the mean of the
    five sets. So residuals are those that the panel has where it wasn't learned, and
    :func:`~culture_tasks.metrics.prediction_powered.corrected_mean` has an interval for it as it has for a judge.

    A judge that fewer than five ratings differ from is the panel by itself, with its own scores: so few differences
    don't tell how large one may be.

    Args:
        judges: A row per judge with its score of each response; NaN where there is none, which counts as its mean of
            the stratum.
        people: People's score of the same responses; NaN where not rated.
        strata: The stratum of each response, such as its culture.
        clusters: The cluster of each response, such as its image; None makes each a cluster.

    Returns:
        Scores and weights, these as means over the five parts. With fewer than ten ratings, or five clusters, all
        judges count alike, with weights that add up to 1.

    Raises:
        ValueError: If the shapes differ.

    Source: Zrnic and Candès (2024), "Cross-prediction-powered inference", for the cross-fitting; Breiman et al. (1984),
    "Classification and Regression Trees", for the rule of one standard error. The sets of weights are this project's.

    Examples:
        >>> people = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 6)
        >>> blind = np.tile([3.0, 3.0, 4.0, 2.0, 3.0, 2.0], 5)
        >>> panel = weighted_panel([people + blind, blind], people, strata=["ja"] * 30)
        >>> panel.weights.shape, bool(panel.weights[0, 0] > panel.weights[0, 1])
        ((1, 2), True)
    """
    table, y = np.atleast_2d(np.asarray(judges, dtype=np.float64)), np.asarray(people, dtype=np.float64)
    if table.ndim != 2 or y.shape != table.shape[1:] or len(strata) != y.size:
        raise ValueError(
            f"weighted_panel: scores of shape {table.shape}, {y.size} ratings and {len(strata)} strata; expected a row "
            "of scores per judge, and a score, a rating and a stratum for each response."
        )
    all_responses = np.ones(y.size, dtype=np.bool_)
    codes = cluster_numbers(strata, all_responses)
    stratum_count = int(codes.max(initial=-1)) + 1
    x = np.stack([centred(filled(judge_scores, codes, stratum_count), codes) for judge_scores in table], axis=1)
    rated = np.flatnonzero(~np.isnan(y))
    units = cluster_numbers(clusters, all_responses)[rated]
    if rated.size < 2 * _FOLDS or np.unique(units).size < _FOLDS:
        return JudgePanel(x.mean(axis=1), np.full((stratum_count, len(table)), 1.0 / len(table)))
    differing = np.count_nonzero(~(np.abs(table - y)[:, rated] == 0.0), axis=1)  # a missing score is none that agrees
    if differing.min() < FEW_DIFFERING:
        is_closest = np.arange(len(table)) == differing.argmin()
        return JudgePanel(table[differing.argmin()], np.tile(is_closest.astype(np.float64), (stratum_count, 1)))
    f, of_rated, members = x[rated], y[rated], codes[rated]
    # The part of each rated response: clusters stay together, and strata are divided evenly.
    names, first, numbers = np.unique(units, return_index=True, return_inverse=True)
    order = np.lexsort((np.random.default_rng(0).random(names.size), members[first]))
    part = order.argsort()[numbers] % _FOLDS
    fold_weights = [
        _cross_fitted(f[part != k], of_rated[part != k], members[part != k], part[part != k], stratum_count)
        for k in range(_FOLDS)
    ]
    weights: Floats = np.mean(fold_weights, axis=0)
    scores = (x * weights[codes]).sum(axis=1)
    scores[rated] = (f * np.stack(fold_weights)[part, members]).sum(axis=1)
    return JudgePanel(scores, weights)


def _cross_fitted(x: Floats, y: Floats, members: Numbers, part: Numbers, strata: int) -> Floats:
    """Returns the weights of each stratum, of the set that ratings choose that it wasn't learned from."""
    predicted = np.zeros((x.shape[1] + 3, y.size))
    for k in np.unique(part):
        fold = part == k
        sets = _sets(x[~fold], y[~fold], members[~fold], strata)
        predicted[:, fold] = [(x[fold] * weights[members[fold]]).sum(axis=1) for weights in sets]
    errors = np.stack([centred(y - prediction, members) ** 2 for prediction in predicted])
    fixed = errors[: x.shape[1] + 1].mean(axis=1)  # of one judge, or of all alike
    sets = _sets(x, y, members, strata)
    simplest = [int(fixed.argmin()), len(sets) - 2, len(sets) - 1]
    best = min(simplest, key=lambda index: float(errors[index].mean()))
    excess = errors - errors[best]
    is_close = excess.mean(axis=1) <= excess.std(axis=1, ddof=1) / y.size**0.5
    return sets[next(index for index in simplest if is_close[index])]


def _sets(x: Floats, y: Floats, members: Numbers, strata: int) -> list[Floats]:
    """Returns the sets of weights, the simpler ones first, each with a row per stratum."""
    x, y = np.stack([centred(column, members) for column in x.T], axis=1), centred(y, members)
    judge_count = x.shape[1]
    sets = [_slope(column, y) * np.eye(judge_count)[index] for index, column in enumerate(x.T)]
    equal = np.full(judge_count, _slope(x.mean(axis=1), y) / judge_count)
    shared = _shrunk(x, y, equal)
    by_stratum = [_shrunk(x[members == code], y[members == code], shared) for code in range(strata)]
    return [*(np.tile(weights, (strata, 1)) for weights in (*sets, equal, shared)), np.stack(by_stratum)]


def _slope(x: Floats, y: Floats) -> float:
    squares = float(x @ x)
    return max(float(x @ y) / squares, 0.0) if squares else 0.0


def _shrunk(x: Floats, y: Floats, towards: Floats) -> Floats:
    """Returns weights of at least 0 by least squares, with others that count as further ratings."""
    if not x.any():
        return towards
    ridge = np.sqrt(_PRIOR * np.mean(x**2)) * np.eye(towards.size)
    weights, _ = scipy.optimize.nnls(np.concatenate([x, ridge]), np.concatenate([y, ridge @ towards]))
    return np.asarray(weights)
