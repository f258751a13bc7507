"""Training of the router on computed features, and the threshold that suits it best (Appendix D)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from culture_tasks.insertion.methods.mcki.config import MckiConfig
from culture_tasks.insertion.methods.mcki.features import FeatureTable
from culture_tasks.insertion.methods.mcki.router import Router
from culture_tasks.insertion.progress import Progress, silent
from culture_tasks.insertion.queries import TrainingCase


@dataclass(frozen=True, slots=True)
class CaseRows:
    """A training case as rows of a feature table.

    Attributes:
        positives: P_j: the insertion sample first, then its generality items.
        negatives: N_j.
        weights: w_n of each negative.
    """

    positives: list[int]
    negatives: list[int]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class Scores:
    """Router scores of requests against the entry of their case.

    Attributes:
        positive: Of requests that should activate it.
        negative: Of requests that should not.
    """

    positive: list[float]
    negative: list[float]


def case_rows(case: TrainingCase, table: FeatureTable, config: MckiConfig) -> CaseRows:
    """Looks up the rows of a case."""
    return CaseRows(
        positives=table.rows([case.insertion.query, *(item.query for item in case.generality)]),
        negatives=table.rows([item.query for item in case.locality]),
        weights=[config.weight_of(item.kind) for item in case.locality],
    )


def train(
    router: Router, table: FeatureTable, cases: Sequence[CaseRows], config: MckiConfig, progress: Progress = silent
) -> float:
    """Trains the router in place, one case a step, in an order that depends on the seed alone.

    Keys and request vectors both come from the router under training, so gradients flow through both.

    Returns:
        The mean loss of the last pass.
    """
    optimizer = torch.optim.Adam(router.parameters(), lr=config.learning_rate)
    order, shuffler = list(cases), random.Random(config.seed)  # noqa: S311 - an order, not a secret
    losses: list[float] = []
    router.train()
    for epoch in range(config.epochs):
        shuffler.shuffle(order)
        losses = []
        for case in progress(order, f"router, pass {epoch + 1} of {config.epochs}"):
            optimizer.zero_grad()
            loss = _case_loss(router, table, case, config)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    router.eval()
    return sum(losses) / max(1, len(losses))


def _case_loss(router: Router, table: FeatureTable, case: CaseRows, config: MckiConfig) -> torch.Tensor:
    similarities = _similarities(router, table, case)
    positive, negative = similarities[: len(case.positives)], similarities[len(case.positives) :]
    weights = torch.tensor(case.weights, dtype=positive.dtype, device=positive.device)
    return contrastive_loss(
        positive,
        negative,
        weights,
        logit_scale=config.logit_scale,
        negative_loss_weight=config.negative_loss_weight,
    )


def contrastive_loss(
    positive: torch.Tensor,
    negative: torch.Tensor,
    negative_weights: torch.Tensor,
    logit_scale: float,
    negative_loss_weight: float,
) -> torch.Tensor:
    """Computes the loss of one memory entry m_j.

    With l+_p = scale * sim(p, m_j) (equation 13) and l-_n = scale * sim(n, m_j) + log w_n (equation 14) it is the mean
    over the positives of -l+_p + lambda * log(exp(l+_p) + sum over n of exp(l-_n)) (equation 15).

    Args:
        positive: sim(p, m_j) of the insertion sample and its generality items, shape (P,), in [-1, 1].
        negative: sim(n, m_j) of the locality items, shape (N,); may be empty.
        negative_weights: w_n, shape (N,), above 0.
        logit_scale: gamma.
        negative_loss_weight: lambda; 1 makes it a cross entropy.

    Returns:
        The loss, a scalar; without negatives and with lambda 1 it is 0.
    """
    rewarded = logit_scale * positive
    punished = logit_scale * negative + negative_weights.log()
    rows = torch.cat([rewarded[:, None], punished.expand(len(rewarded), -1)], dim=1)
    return (negative_loss_weight * torch.logsumexp(rows, dim=1) - rewarded).mean()


def _similarities(router: Router, table: FeatureTable, case: CaseRows) -> torch.Tensor:
    """Returns sim(x, m_j) of all requests of a case, positives first, shape (P + N,)."""
    rows = [*case.positives, *case.negatives]
    vectors = router(table.question[rows], table.visual[rows])
    return vectors @ vectors[0]


def scores(router: Router, table: FeatureTable, cases: Sequence[CaseRows]) -> Scores:
    """Returns S+ and S- of cases (section D.2); the sample itself, whose score is 1, is one of its positives."""
    positive: list[float] = []
    negative: list[float] = []
    for case in cases:
        with torch.no_grad():
            similarities = _similarities(router, table, case).tolist()
        positive += similarities[: len(case.positives)]
        negative += similarities[len(case.positives) :]
    return Scores(positive, negative)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold and its accuracy.

    Attributes:
        threshold: tau, in [-1, 1].
        accuracy: Share of the scores that are on the right side of it, 0 to 1.
    """

    threshold: float
    accuracy: float


def calibrate(positive: Sequence[float], negative: Sequence[float]) -> Calibration:
    """Chooses the t in [-1, 1] that maximises #(positive scores >= t) + #(negative scores < t).

    The count is the same for all t between two neighbouring scores, so the maximum is reached on whole intervals. The
    rule: of the best intervals the widest, of equally wide ones the highest (which activates less and so preserves
    more), and of that interval the middle.

    Args:
        positive: Router scores of requests that should activate, in [-1, 1].
        negative: Router scores of requests that should not.

    Raises:
        ValueError: If there are no scores at all.
    """
    if not len(positive) + len(negative):
        raise ValueError("calibrate: no scores. Needed is at least one.")
    up = np.sort(np.clip(np.asarray(positive, dtype=np.float64), -1.0, 1.0))
    down = np.sort(np.clip(np.asarray(negative, dtype=np.float64), -1.0, 1.0))
    inner = np.unique(np.concatenate([up, down]))
    lower, upper = np.append(-1.0, inner), np.append(inner, 1.0)  # intervals (lower, upper]; the first holds -1 too
    activated = len(up) - np.searchsorted(up, upper, side="left")
    activated[-1] = 0  # above all scores: t in (highest score, 1]
    abstained = np.searchsorted(down, lower, side="right")
    abstained[0] = 0
    correct = activated + abstained
    allowed = upper > lower
    allowed[0] = True  # t = -1 is allowed even where the lowest score is -1
    best = [index for index in np.flatnonzero(allowed) if correct[index] == correct[allowed].max()]
    chosen = max(best, key=lambda index: (upper[index] - lower[index], index))
    return Calibration(
        float((lower[chosen] + upper[chosen]) / 2), float(correct[chosen] / (len(positive) + len(negative)))
    )
