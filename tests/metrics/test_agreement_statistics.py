import math

import krippendorff
import numpy as np
import pytest
from scipy import stats

from culture_tasks.metrics.rater_agreement import (
    MOST_VALUES,
    STATISTICS,
    agreement,
    krippendorff_alpha,
    statistics,
)

NAN = math.nan


def simulated(rows=400, questions=80, seed=0):
    rng = np.random.default_rng(seed)
    human = rng.integers(1, 11, size=rows).astype(float)
    judge = np.clip(np.round(human + rng.normal(0.5, 1.5, size=rows)), 1, 10)
    return human, judge, rng.integers(questions, size=rows).tolist()


def test_by_hand():
    expected = {
        # judge - human = 1, 0, 1, 0: mean 2/4; distances are the same.
        "mean_error": 0.5,
        "mean_absolute_error": 0.5,
        # Means 9/4 and 11/4. Deviations -5/4 -1/4 3/4 3/4 and -3/4 -3/4 5/4 1/4. Products over 16:
        # 15 + 3 + 15 + 3 = 36; squares 25 + 1 + 9 + 9 = 44 and 9 + 9 + 25 + 1 = 44. r = 36 / 44.
        "pearson": 36 / 44,
        # Mid-ranks 1 2 3.5 3.5 and 1.5 1.5 4 3, means 2.5. Deviations -1.5 -.5 1 1 and -1 -1 1.5 .5:
        # products 1.5 + .5 + 1.5 + .5 = 4; squares 2.25 + .25 + 1 + 1 = 4.5 and 1 + 1 + 2.25 + .25 = 4.5.
        "spearman": 4 / 4.5,
        # Six pairs of responses: 1-2 tied by the judge, 3-4 tied by people, the other four ordered alike.
        # (4 - 0) / sqrt((6 - 1) * (6 - 1)) = 4/5.
        "kendall_tau_b": 0.8,
        # Totals 1 3 3 1 give mid-places .5 2.5 5.5 7.5. Observed: 1-2 twice 2**2, 3-4 twice 2**2: 16.
        # Expected: 2 * (1*3*4 + 1*3*25 + 1*1*49 + 3*3*9 + 3*1*25 + 3*1*4) = 2 * 304 = 608.
        "krippendorff_alpha": 1 - 7 * 16 / 608,
    }
    found = agreement((1.0, 2.0, 3.0, 3.0), (2.0, 2.0, 4.0, 3.0)).estimates
    assert {name: one.value for name, one in found.items()} == pytest.approx(expected)


def test_alpha_of_krippendorffs_own_example():
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", part C: four observers, twelve units,
    # missing ratings; alpha is 0.743 (nominal), 0.815 (ordinal) and 0.849 (interval).
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    found = [round(krippendorff_alpha(observers, level).value, 3) for level in ("nominal", "ordinal", "interval")]
    assert found == [0.743, 0.815, 0.849]


def test_against_scipy_and_the_krippendorff_package():
    human, judge, _ = simulated()
    table = np.stack([human, judge, np.where(np.arange(400) % 3, judge, NAN)])
    for name, reference in (
        ("pearson", stats.pearsonr),
        ("spearman", stats.spearmanr),
        ("kendall_tau_b", stats.kendalltau),
    ):
        assert statistics(human, judge)[name].value == pytest.approx(reference(human, judge)[0], abs=1e-12)
    for level in ("nominal", "ordinal", "interval"):
        expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
        assert krippendorff_alpha(table, level).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("names", "human", "judge", "reason"),
    [
        (STATISTICS, [], [], "no response has both ratings"),
        (STATISTICS, range(251), range(251), f"251 distinct ratings, more than {MOST_VALUES}: not a rating scale"),
        (STATISTICS[:3], [5, 5, 5], [1, 2, 3], "the first rater gave no other rating than 5"),
        (STATISTICS[:4], [4, 4], [4, 4], "every rating is 4"),
    ],
)
def test_data_without_a_value_have_a_reason(names, human, judge, reason):
    for name in names:
        estimate = agreement(human, judge, resamples=10).estimates[name]
        assert (math.isnan(estimate.value), math.isnan(estimate.low), estimate.reason) == (True, True, reason)
    assert statistics([4, 4], [4, 4])["mean_error"].value == 0.0  # errors need no variation
    assert krippendorff_alpha([[1, NAN], [NAN, 2]]).reason == "no response has two ratings"
    assert krippendorff_alpha([[3, 3], [3, 3]]).reason == "every rating is 3"
    assert "not a rating scale" in krippendorff_alpha([np.arange(MOST_VALUES + 1.0)] * 2).reason


def test_missing_ratings_drop_out_with_their_questions_and_one_question_has_no_interval():
    found = agreement([1, NAN, 3, 4], [1, 2, NAN, 5], clusters=["a", "b", "c", "d"], resamples=5)
    assert (found.pairs, found.clusters, found.estimates["mean_error"].value) == (2, 2, 0.5)
    found = agreement([1, 2, 3], [1, 3, 3], clusters=["a", "a", "a"])
    assert (found.pairs, found.clusters) == (3, 1)
    estimate = found.estimates["pearson"]
    assert (math.isnan(estimate.value), math.isnan(estimate.low)) == (False, True)
    assert estimate.reason == "1 question(s): nothing to resample"


def test_a_resample_is_what_a_loop_over_questions_gives(monkeypatch):
    # The same draws, done by hand: concatenate the rows of the drawn questions and ask scipy.
    human, judge, questions = simulated(rows=120, questions=30)
    names = list(dict.fromkeys(questions))
    picks = np.random.default_rng(7).integers(len(names), size=(50, len(names)))
    rows = [[np.flatnonzero(np.array(questions) == names[pick]) for pick in draw] for draw in picks]
    taus = [stats.kendalltau(human[np.concatenate(one)], judge[np.concatenate(one)])[0] for one in rows]
    found = agreement(human, judge, clusters=questions, resamples=50, rng=np.random.default_rng(7))
    estimate = found.estimates["kendall_tau_b"]
    assert (estimate.low, estimate.high) == pytest.approx(tuple(np.quantile(taus, [0.025, 0.975])))
    monkeypatch.setattr("culture_tasks.metrics.rater_agreement._BATCH_CELLS", 500)  # batches change nothing
    assert agreement(human, judge, clusters=questions, resamples=50, rng=np.random.default_rng(7)) == found
    # Of two questions one has constant ratings; a quarter of all resamples hold that one twice, and no variation.
    found = agreement([1, 1, 2, 3], [1, 1, 3, 2], clusters=["a", "a", "b", "b"], resamples=400)
    assert "resamples only" in found.estimates["pearson"].reason
    assert math.isfinite(found.estimates["pearson"].value)
