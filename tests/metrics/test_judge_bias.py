"""What a judge is swayed by: the effect of a probe on its errors, and what the probes look at."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from culture_tasks.metrics.judge_bias import log_length, model_families, probe_effect

NAN = math.nan


def test_worked_by_hand():
    # One stratum: x less its mean is -1, 1, -1, 1, -1, 1, ...; the slope is half of the difference of the two means.
    probe = [0, 2] * 6
    errors = [0.0, 1.0, 0.2, 1.2, 0.4, 1.4, 0.0, 1.0, 0.2, 1.2, 0.4, 1.4]
    effect = probe_effect(errors, probe)
    assert effect.value == pytest.approx(0.5)
    # Residuals are -0.2, 0, 0.2 four times each. Of each response, H has 1/12 + 1/12, so V = 12/10 * 8 * 0.04 / 12^2,
    # and with the same leverage everywhere there are 10 degrees of freedom.
    error = math.sqrt(1.2 * 8 * 0.04) / 12
    reach = float(special.stdtrit(10.0, 0.975)) * error
    assert (effect.low, effect.high) == pytest.approx((0.5 - reach, 0.5 + reach))
    assert effect.p == pytest.approx(2 * float(special.stdtr(10.0, -0.5 / error)))
    assert (effect.n, effect.clusters, effect.span) == (12, 12, 2.0)


def test_strata_and_clusters_agree_with_the_matrices_of_the_formula():
    draws = np.random.default_rng(1)
    strata, clusters = draws.integers(0, 4, 60), draws.integers(0, 25, 60)
    probe = draws.normal(size=60) + strata
    errors = draws.normal(size=60) + 2.0 * strata + 0.3 * probe
    design = np.column_stack([probe, np.eye(4)[strata]])
    solved = np.linalg.inv(design.T @ design) @ design.T
    hat, residuals = design @ solved, errors - design @ (solved @ errors)
    columns = []
    for cluster in np.unique(clusters):
        inside = clusters == cluster
        roots, vectors = np.linalg.eigh((np.eye(60) - hat)[np.ix_(inside, inside)])
        column = np.zeros(60)
        column[inside] = vectors @ np.diag(roots**-0.5) @ vectors.T @ solved[0, inside]
        columns.append(column)
    both = np.stack(columns, axis=1)
    middle = both.T @ (np.eye(60) - hat) @ both
    freedom = np.trace(middle) ** 2 / np.trace(middle @ middle)
    error = math.sqrt(((both.T @ residuals) ** 2).sum())
    effect = probe_effect(errors, probe, strata.tolist(), clusters=clusters.tolist())
    assert effect.value == pytest.approx((solved @ errors)[0])
    assert effect.high - effect.value == pytest.approx(float(special.stdtrit(freedom, 0.975)) * error)


def test_a_stratum_whose_responses_are_alike_and_missing_numbers_change_nothing():
    errors, probe = [0.1, 0.5, 0.3, 0.9, 0.2, 0.6, 0.1, 0.8] * 2, [1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 1.5, 3.0] * 2
    strata = ["ar"] * 16
    alone = probe_effect(errors, probe, strata)
    more = probe_effect([*errors, 9.0, 8.0, NAN, 5.0], [*probe, 7.0, 7.0, 1.0, NAN], [*strata, "ja", "ja", "ar", "ar"])
    assert not math.isnan(alone.value)
    assert more == alone


@pytest.mark.parametrize(
    ("errors", "probe", "reason"),
    [
        ([], [], "no rated response has a value of it"),
        ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], "no two responses that compare differ in it"),
        ([0.0, 0.3] * 20, [0.0] * 39 + [1.0], "too few responses differ in it"),
        ([0.0, 0.3] * 20, [0.0] * 37 + [1.0] * 3, "too few responses differ in it"),
        ([0.5] * 12, [0.0, 1.0] * 6, "the judge's errors are the same on all responses, or follow from it exactly"),
    ],
)
def test_too_little_says_why(errors, probe, reason):
    effect = probe_effect(errors, probe)
    assert math.isnan(effect.value)
    assert math.isnan(effect.p)
    assert effect.reason is not None
    assert effect.reason.startswith(reason)


def test_names_tell_families():
    families = {
        "gpt-4o-mini-2024-07-18": {"GPT"},
        "azure/o3-mini": {"GPT"},
        "qwq-32b": {"Qwen"},
        "google/gemma-3-4b-it": {"Gemini"},
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": {"DeepSeek", "Qwen"},
    }
    others = ("EleutherAI/gpt-neo-125m", "EleutherAI/gpt-j-6b", "delphi-4", "/home/gpt/runs/toy/model", "himalaya-7b")
    families |= {name: set() for name in others}
    assert {name: model_families(name) for name in families} == families
    assert math.isnan(log_length(" \n"))
