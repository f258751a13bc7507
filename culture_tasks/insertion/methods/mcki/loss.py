"""The contrastive loss of equations 13 to 15."""

from __future__ import annotations

import torch


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
