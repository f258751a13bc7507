"""Training of the router on features that are there already (Appendix D)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from culture_tasks.insertion.feature_table import FeatureTable
from culture_tasks.insertion.interface import Progress, silent
from culture_tasks.insertion.methods.mcki.config import MckiConfig
from culture_tasks.insertion.methods.mcki.loss import contrastive_loss
from culture_tasks.insertion.methods.mcki.router import Router
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
    return contrastive_loss(positive, negative, weights, config.logit_scale, config.negative_loss_weight)


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
