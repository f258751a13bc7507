"""Biases of a judge: whether its departure from people's ratings goes with something other than quality.

A probe is one number per response, such as the logarithm of its length. The judge's error is its score less the mean of
people's ratings of the same response. Nothing here raises for data that are too few or too much alike: values are NaN,
and the reason says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from culture_tasks.metrics.means import Clusters, Floats, Numbers, centred, cluster_numbers, satterthwaite, two_lists

LEAST_FREEDOM = 4.0
"""Degrees of freedom below which an interval can't be relied on (Tipton, 2015)."""

_TINY = 1e-9


class ProbeEffect(NamedTuple):
    """How a judge's error goes with a probe, in the unit of the scores per unit of the probe; NaN where it isn't known.

    Attributes:
        value: The effect: above 0 where the judge favours larger values of the probe, 0 where they don't sway it.
        p: P value of an effect of 0, two-sided.
        span: How far the probe's values lie apart: 1 where they are 0 and 1, else from the 5th to the 95th percentile
            of their deviations from the mean of their stratum.
        n: Number of responses in strata whose responses differ in the probe; the others tell nothing.
        clusters: Number of clusters of these responses.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    span: float = math.nan
    n: int = 0
    clusters: int = 0
    reason: str | None = None


def probe_effect(
    errors: ArrayLike,
    probe: ArrayLike,
    strata: Sequence[Hashable] | None = None,
    *,
    clusters: Clusters | None = None,
) -> ProbeEffect:
    """The slope of a judge's errors on a probe within strata, with a cluster-robust 95 % interval.

    Formula, for errors d and the probe x of n responses, both less the mean of their stratum (fixed effects):

    * effect b = sum of x d / sum of x^2;
    * variance V = sum over clusters g of (q_g' r_g)^2, with the residuals r = d - b x and
      q_g = (I - H_gg)^(-1/2) x_g / sum of x^2. H is the hat matrix of strata and probe: the CR2 estimator, which is
      HC2 where each response is a cluster;
    * interval b ± t sqrt(V). t has (tr M)^2 / tr(M M) degrees of freedom, where M = Q' (I - H) Q and Q has q_g as its
      columns (Satterthwaite's, for errors of one variance). Where a few responses alone have an unusual value of the
      probe, these are far fewer than clusters - 1, with which too many intervals would miss.

    A stratum in which the judge is too strict throughout shifts all of its errors, which its mean takes off: it is no
    effect of a probe whose values are higher there.

    Source: Dubois et al. (2024), "Length-controlled AlpacaEval", for judges' regression on length; Cameron and Miller
    (2015), sections II and VI, and Bell and McCaffrey (2002), for CR2 and its degrees of freedom; Pustejovsky and
    Tipton (2018) for fixed effects in both; Tipton (2015) for the least degrees of freedom. Errors against people's
    ratings in place of preferences are this project's choice.

    Examples:
        >>> length = [5, 6, 7, 8, 9, 10, 5, 6, 7, 8, 9, 10]  # log2 of the characters: the effect is per doubling
        >>> errors = [-0.5, 0.1, 0.6, 0.9, 1.6, 2.0, -0.4, 0.0, 0.4, 1.0, 1.5, 1.9]
        >>> effect = probe_effect(errors, length)
        >>> f"{effect.value:+.2f} ({effect.low:.2f} to {effect.high:.2f}) on {effect.n} responses"
        '+0.48 (0.46 to 0.51) on 12 responses'
        >>> probe_effect([0.1, 0.2], [3.0, 3.0]).reason
        'no two responses that compare differ in it'
    """
    d, x = two_lists("probe_effect", errors, probe, "number")
    complete = ~(np.isnan(d) | np.isnan(x))
    if not complete.any():
        return ProbeEffect(reason="no rated response has a value of it")
    stratum_codes = cluster_numbers(["all"] * x.size if strata is None else strata, complete)
    groups = cluster_numbers(clusters, complete)
    d, x = d[complete], x[complete]
    differs = np.bincount(stratum_codes, weights=np.abs(centred(x, stratum_codes)) > _TINY * np.abs(x).max()) > 0
    tells = differs[stratum_codes]
    if not tells.any():
        return ProbeEffect(reason="no two responses that compare differ in it")
    is_binary = bool(np.isin(x, (0.0, 1.0)).all())
    strata_numbers, groups = (np.unique(codes[tells], return_inverse=True)[1] for codes in (stratum_codes, groups))
    d, x = centred(d[tells], strata_numbers), centred(x[tells], strata_numbers)
    span = 1.0 if is_binary else float(np.ptp(np.quantile(x, (0.05, 0.95))))
    effect = ProbeEffect(span=span, n=x.size, clusters=int(groups.max()) + 1)
    squares = float(x @ x)
    value = float(x @ d) / squares
    weights = _adjusted(x / math.sqrt(squares), strata_numbers, groups) / math.sqrt(squares)
    freedom = _freedom(weights, x / math.sqrt(squares), strata_numbers, groups)
    if not freedom >= LEAST_FREEDOM:
        return effect._replace(reason="too few responses differ in it")
    residuals = d - value * x
    if math.sqrt(float(residuals @ residuals)) <= _TINY * max(1.0, math.sqrt(float(d @ d))):
        return effect._replace(reason="the judge's errors are the same on all responses, or follow from it exactly")
    error = math.sqrt(float((np.bincount(groups, weights=weights * residuals) ** 2).sum()))
    reach = float(special.stdtrit(freedom, 0.975)) * error
    p = 2.0 * float(special.stdtr(freedom, -abs(value) / error))
    return effect._replace(value=value, low=value - reach, high=value + reach, p=p)


def _adjusted(unit: Floats, strata: Numbers, groups: Numbers) -> Floats:
    """Returns (I - H_gg)^(-1/2) x_g of each cluster, for x of length 1; NaN for one that alone settles the effect."""
    sizes = np.bincount(strata)
    adjusted = np.zeros_like(unit)
    order = np.argsort(groups, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        same = strata[members][:, None] == strata[members][None, :]
        hat = same / sizes[strata[members]] + np.outer(unit[members], unit[members])
        roots, vectors = np.linalg.eigh(np.eye(members.size) - hat)
        parts, is_free = vectors.T @ unit[members], roots > _TINY
        inverse = np.where(is_free, 1.0 / np.sqrt(np.maximum(roots, _TINY)), 0.0)
        # A cluster that settles the effect has no residual to tell its own error by.
        adjusted[members] = vectors @ (inverse * parts) if np.abs(parts[~is_free]).max(initial=0.0) < 1e-6 else math.nan
    return adjusted


def _freedom(weights: Floats, unit: Floats, strata: Numbers, groups: Numbers) -> float:
    """Returns the degrees of freedom by Satterthwaite, of M = Q' (I - H) Q."""
    diagonal = np.bincount(groups, weights=weights**2).astype(np.float64)
    sizes = np.bincount(strata)
    projected = np.zeros((sizes.size + 1, diagonal.size))
    np.add.at(projected, (strata, groups), weights / np.sqrt(sizes[strata]))
    projected[-1] = np.bincount(groups, weights=weights * unit)
    return satterthwaite(diagonal, projected)


# Probes


def log_length(response: str) -> float:
    """The binary logarithm of a response's number of characters without white space around it, at least 0.

    An effect per unit is one per doubling of the length. NaN for an empty response, which has no logarithm.

    Examples:
        >>> log_length("sixteen letters.")
        4.0
    """
    characters = len(response.strip())
    return math.log2(characters) if characters else math.nan


FAMILIES: Mapping[str, str] = {
    "GPT": r"(chat)?gpt(?!-?(neo|j\b))|\bo[134](?![a-z0-9])",
    "Claude": r"claude",
    "Gemini": r"gemini|gemma|paligemma",
    "Qwen": r"qwen|qwq|qvq",
    "Llama": r"llama",
    "Mistral": r"mistral|mixtral|ministral|pixtral|magistral",
    "DeepSeek": r"deepseek",
    "GLM": r"(chat)?glm",
    "InternLM": r"internlm|internvl",
    "Command": r"command-|aya",
    "Phi": r"phi-?[0-9]",
    "Grok": r"grok",
    "Falcon": r"falcon",
    "OLMo": r"olmo|molmo",
    **{
        name: rf"{name.casefold()}(?![a-z])"
        for name in (
            *("Baichuan", "ERNIE", "EXAONE", "Granite", "Hunyuan", "Jais", "Kimi", "LLaVA", "MiniCPM", "MiniMax"),
            *("Nemotron", "Nova", "SeaLion", "Solar", "Yi"),
        )
    },
}
"""Patterns of names by family of models: those of one developer whose models share training data and style."""

_PATTERNS = {family: re.compile(rf"(?<![a-z])({pattern})") for family, pattern in FAMILIES.items()}


def model_families(name: str) -> frozenset[str]:
    """The families that a model's name mentions, by :data:`FAMILIES`; none where it mentions none.

    The last two parts of the name are read, whatever their case. A distilled model is of both families. A name need not
    tell which model another was trained from: InternVL, many of whose models have a Qwen inside, is InternLM's.

    Source: Panickssery et al. (2024), "LLM evaluators recognize and favor their own generations", for why it matters.

    Examples:
        >>> sorted(model_families("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"))
        ['DeepSeek', 'Qwen']
        >>> sorted(model_families("gpt-4o-mini")), sorted(model_families("toy/model"))
        (['GPT'], [])
    """
    end = "/".join([part for part in re.split(r"[/\\]", name.casefold()) if part][-2:])
    return frozenset(family for family, pattern in _PATTERNS.items() if pattern.search(end))
