"""Arguments that make no sense are refused, with a sentence on what is wrong."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from culture_tasks.metrics.comparison import paired_difference
from culture_tasks.metrics.intervals import mean_interval, proportion_interval, share_interval
from culture_tasks.metrics.judge_bias import probe_effect
from culture_tasks.metrics.partial_pooling import ScoredItems, pooled
from culture_tasks.metrics.prediction_powered import corrected_difference, corrected_mean
from culture_tasks.metrics.rankings import places
from culture_tasks.metrics.rater_agreement import agreement, krippendorff_alpha, statistics
from culture_tasks.metrics.significance import holm, items_needed

FOUR, RATED = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 2.5, math.nan]


def items(scores=(0.0, 100.0), places=(0, 1), clusters=(0, 1)):
    columns = [np.array(column) for column in (scores, places, (0, 0), clusters)]
    return ScoredItems(*columns, benchmarks=[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(paired_difference, [1.0], [1.0, 2.0]), "one length"),
        (partial(paired_difference, [math.inf], [1.0]), "infinite"),
        (partial(mean_interval, [1.0, math.inf]), "finite"),
        (partial(mean_interval, [[1.0]]), "finite"),
        (partial(mean_interval, [1.0], ["a", "b"]), "2 for 1 items"),
        (partial(mean_interval, [1.0], confidence=1.0), r"confidence=1\.0"),
        (partial(proportion_interval, 3, 2), "3 successes of 2"),
        (partial(share_interval, [0.5]), "another number"),
        (partial(probe_effect, [1.0, 2.0], [1.0]), r"found shapes \(2,\) and \(1,\)"),
        (partial(probe_effect, [1.0, math.inf], [1.0, 2.0]), "infinite"),
        (partial(probe_effect, [1.0, 2.0], [1.0, 2.0], ["ar"]), "1 for 2 items"),
        (partial(pooled, items(scores=(50.0, math.nan)), 2), "scores from 0 to 100"),
        (partial(pooled, items(scores=(50.0, 101.0)), 2), "scores from 0 to 100"),
        (partial(pooled, items(places=(0, 2)), 2), "places from 0 to 1"),
        (partial(pooled, items(clusters=(0,)), 2), "for each of 2 scores"),
        (partial(corrected_mean, FOUR, [1.0]), "two lists of one length"),
        (partial(corrected_mean, FOUR, RATED, ["a"]), "1 for 4 items"),
        *((partial(corrected_mean, FOUR, RATED, shares={"all": share}), "positive ones") for share in (-1.0, 0.0)),
        (partial(corrected_mean, FOUR, RATED, clusters=[1]), "1 for 4 items"),
        (partial(corrected_mean(FOUR, RATED).over, {"d": 1.0}), "some of"),
        (partial(corrected_mean(FOUR, RATED).over, confidence=0.0), r"confidence=0\.0"),
        (partial(corrected_difference, (FOUR, FOUR), ([1, 2], [1, 2])), "two lists of one length"),
        *((partial(places, "abc", [pair]), "pairs of two of the models") for pair in (("a", "d"), ("b", "b"))),
        (partial(statistics, [1, math.inf], [1, 2]), "infinite"),
        (partial(krippendorff_alpha, [1, 2]), "raters by responses"),
        (partial(krippendorff_alpha, [[1], [2]], "ratio"), "one of the levels nominal"),
        (partial(agreement, [1], [1], clusters=[]), "0 for 1 items"),
        (partial(agreement, [1], [1], confidence=1.0), r"confidence=1\.0"),
        *((partial(holm, bad), "from 0 to 1") for bad in ([1.5], [-0.1], [[0.5]])),
        (partial(items_needed, 1.0, -1.0), "0 < alpha < power"),
        *((partial(items_needed, 1.0, 1.0, *bad), "0 < alpha < power") for bad in ((1.0,), (0.8, 0.0), (0.8, 0.9))),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
