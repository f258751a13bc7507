"""The router mapping phi of section 4.1, its training on computed features, and its threshold (Appendix D)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import nn

from culture_tasks.benchmarks.training_cases import Locality
from culture_tasks.insertion.core.devices import shown
from culture_tasks.insertion.core.insertion_method import MethodConfig


class MckiConfig(MethodConfig):
    """Options of MCKI, with the paper's values as defaults (Table 5).

    Attributes:
        route_dim: Width of router vectors.
        logit_scale: Gamma of equations 13 and 14.
        cross_language_weight: w_n of cross-language locality items (equation 14).
        cross_scenario_weight: w_n of cross-scenario locality items.
        negative_loss_weight: Lambda of equation 15; the paper gives no value.
        learning_rate: Of Adam; the paper names no optimizer.
        epochs: Passes over the training cases, one case a step.
        seed: Of the router's first weights and of the order of cases.
        wrap_image: Whether an activated entry is shown with its image.
    """

    route_dim: int = Field(default=1024, ge=1)
    logit_scale: float = Field(default=20.0, gt=0)
    cross_language_weight: float = Field(default=1.0, gt=0)
    cross_scenario_weight: float = Field(default=1.5, gt=0)
    negative_loss_weight: float = Field(default=1.0, ge=0)
    learning_rate: float = Field(default=1e-3, gt=0)
    epochs: int = Field(default=1, ge=1)
    seed: int = 0
    wrap_image: bool = True

    def weight_of(self, kind: Locality | None) -> float:
        """Returns w_n of a locality item."""
        return self.cross_language_weight if kind == "cross_language_locality" else self.cross_scenario_weight


class Router(nn.Module):  # type: ignore[misc]  # torch is not followed by mypy
    """Maps the means of question and visual states to a vector of length 1.

    Two norms, two projections and a fusion projection (section D.1). The paper names no activation between them, and
    the parameter count of its Table 4 leaves no room for more layers.
    """

    def __init__(self, hidden_size: int, route_dim: int) -> None:
        super().__init__()
        self.question_norm = nn.LayerNorm(hidden_size)
        self.visual_norm = nn.LayerNorm(hidden_size)
        self.question_projection = nn.Linear(hidden_size, route_dim)
        self.visual_projection = nn.Linear(hidden_size, route_dim)
        self.fusion = nn.Linear(2 * route_dim, route_dim)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Maps features of shape (..., 2, hidden size), question before image, to vectors (..., route dim)."""
        features = features.to(self.fusion.weight.device)
        text = self.question_projection(self.question_norm(features[..., 0, :]))
        image = self.visual_projection(self.visual_norm(features[..., 1, :]))
        return nn.functional.normalize(self.fusion(torch.cat([text, image], dim=-1)), dim=-1)


def make_router(hidden_size: int, route_dim: int, seed: int) -> Router:
    """Makes a router whose first weights depend on the seed alone, and leaves torch's own random state as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Router(hidden_size, route_dim)


def similarities(keys: torch.Tensor, request: torch.Tensor) -> torch.Tensor:
    """Returns the cosine similarities of a request's vector with each key (equation 1), shape (keys,), in [-1, 1]."""
    return nn.functional.cosine_similarity(keys, request[None], dim=-1).clamp(-1.0, 1.0)


class RouterCase(NamedTuple):
    """A training case as the router sees it.

    ``features`` are those of P_j, the insertion sample first, and of N_j, each of shape (2, hidden size); the weights
    are w_n of each negative, shape (N,).
    """

    features: Sequence[torch.Tensor]
    weights: torch.Tensor

    def similarities(self, router: Router) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns sim(x, m_j) of the positives and of the negatives, shapes (P,) and (N,)."""
        vectors = router(torch.stack([*self.features]))
        similarities = vectors @ vectors[0]
        positives = len(similarities) - len(self.weights)
        return similarities[:positives], similarities[positives:]


def train(router: Router, cases: Sequence[RouterCase], config: MckiConfig) -> float:
    """Trains the router in place, one case a step, in an order of the seed alone; returns the last pass's mean loss.

    Keys and request vectors both come from the router under training, so gradients flow through both.
    """
    optimizer = torch.optim.Adam(router.parameters(), lr=config.learning_rate)
    order, shuffler = list(cases), random.Random(config.seed)  # noqa: S311 - an order, not a secret
    losses: list[float] = []
    router.train()
    for epoch in range(config.epochs):
        shuffler.shuffle(order)
        losses = []
        for case in shown(order, f"router, pass {epoch + 1} of {config.epochs}"):
            optimizer.zero_grad()
            positive, negative = case.similarities(router)
            weights, factor = case.weights.to(positive.device), config.negative_loss_weight
            loss = contrastive_loss(positive, negative, weights, config.logit_scale, factor)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    router.eval()
    return sum(losses) / max(1, len(losses))


def contrastive_loss(
    positive: torch.Tensor,
    negative: torch.Tensor,
    negative_weights: torch.Tensor,
    logit_scale: float,
    negative_loss_weight: float,
) -> torch.Tensor:
    """Computes the loss of one memory entry m_j.

    With l+_p = scale * sim(p, m_j) (equation 13) and l-_n = scale * sim(n, m_j) + log w_n (equation 14) it is the mean
    over the positives of -l+_p + lambda * log(exp(l+_p) + sum over n of exp(l-_n)) (equation 15). Without negatives and
    with lambda 1, where it is a cross entropy, it is 0. Similarities have the shapes (P,) and (N,), N may be 0.
    """
    rewarded = logit_scale * positive
    punished = logit_scale * negative + negative_weights.log()
    rows = torch.cat([rewarded[:, None], punished.expand(len(rewarded), -1)], dim=1)
    return (negative_loss_weight * torch.logsumexp(rows, dim=1) - rewarded).mean()


def scores(router: Router, cases: Sequence[RouterCase]) -> tuple[list[float], list[float]]:
    """Returns S+ and S- of cases (section D.2); the sample itself, whose score is 1, is one of its positives."""
    positive: list[float] = []
    negative: list[float] = []
    with torch.no_grad():
        for case in cases:
            inside, outside = case.similarities(router)
            positive += inside.tolist()
            negative += outside.tolist()
    return positive, negative


def calibrate(positive: Sequence[float], negative: Sequence[float]) -> tuple[float, float]:
    """Chooses the threshold t in [-1, 1] that maximises #(positive scores >= t) + #(negative scores < t).

    Beside it there is the share of scores that are on the right side of it, 0 to 1.

    The count is the same for all t between two neighbouring scores, so the maximum is reached on whole intervals. The
    rule: of the best intervals the widest, of equally wide ones the highest (which activates less and so preserves
    more), and of that interval the middle. There must be a score.
    """
    up, down = (np.sort(np.clip(np.asarray(scores, dtype=np.float64), -1.0, 1.0)) for scores in (positive, negative))
    edges = np.unique(np.concatenate([[-1.0], up, down, [1.0]]))
    thresholds, widths = np.append(-1.0, (edges[:-1] + edges[1:]) / 2), np.append(0.0, np.diff(edges))
    correct = len(up) - np.searchsorted(up, thresholds) + np.searchsorted(down, thresholds)
    best = np.lexsort((widths, correct))[-1]  # of equal ones the last, which is the highest
    return float(thresholds[best]), float(correct[best] / (len(up) + len(down)))
