"""Metrics against values worked out by hand; the arithmetic stands in the comments."""

from __future__ import annotations

import math

import pytest

from culture_tasks.benchmarks.cedar import metrics
from culture_tasks.benchmarks.cedar.metrics import replies_of
from culture_tasks.errors import DataError
from culture_tasks.metrics.means import mean_and_error

DOCUMENTS = [
    # language, gold label, prediction
    ("en", "anger", "anger"),
    ("en", "fear", "anger"),
    ("en", "happiness", "happiness"),
    ("en", "sadness", None),
    ("ar", "relief", "relief"),
    ("ar", "relief", "surprise"),
    ("ja", "awe", "awe"),
    ("ja", "awe", "awe"),
]


def means(measure, documents):
    """Returns the mean over documents of each number of a measure."""
    return {part: mean_and_error(values).value for part, values in measure(replies_of(documents)).items()}


def in_languages(*languages):
    return [document for document in DOCUMENTS if document[0] in languages]


def test_average_and_variance_over_languages():
    replies = replies_of(DOCUMENTS)
    assert replies.scores.mean() == 0.625
    # en 2 of 4, ar 1 of 2, ja 2 of 2: (1/2 + 1/2 + 1) / 3
    assert metrics.acc_avg(replies.scores, replies.languages).mean() == pytest.approx(2 / 3)
    # deviations -1/6, -1/6, 1/3: squares sum to 1/6
    assert metrics.acc_var(replies.scores, replies.languages) == pytest.approx(1 / 6 / 2)
    for languages, variance in ((("ar", "en"), 0.0), (("ja",), math.nan)):
        some = replies_of(in_languages(*languages))
        assert metrics.acc_var(some.scores, some.languages) == pytest.approx(variance, nan_ok=True)


def test_propensities():
    gepp = means(metrics.gepp, DOCUMENTS)
    assert gepp["anger"] == 2.0  # predicted twice, gold once
    assert gepp["relief"] == 0.5
    assert gepp["sadness"] == 0.0  # its one gold label met an unparsed reply
    assert math.isnan(gepp["surprise"])  # predicted, never gold: not infinity
    assert math.isnan(gepp["pain"])
    lsepp = means(metrics.gepp, in_languages("ja"))
    assert lsepp["awe"] == 1.0
    assert math.isnan(lsepp["anger"])


def test_quadrant_biases():
    # gold: I happiness = 1; II anger, fear = 2; III sadness = 1; IV relief 2, awe 2 = 4; of 8
    # predicted: I happiness, surprise = 2; II anger 2 = 2; III 0; IV relief, awe 2 = 3
    assert means(metrics.grqb, DOCUMENTS) == {"I": 0.125, "II": 0.0, "III": -0.125, "IV": -0.125}
    assert means(metrics.grqb, in_languages("ar")) == {"I": 0.5, "II": 0.0, "III": 0.0, "IV": -0.5}


def test_a_document_counts_once_with_the_shares_of_its_runs():
    replies = replies_of([("en", "awe", "awe", "fear", "awe", None), None, ("en", "fear", "awe")])
    assert replies.scores.tolist() == [0.5, 0.0]
    assert metrics.unparsed_share(replies).tolist() == [0.25, 0.0]
    # gold awe 1, fear 1; predicted awe 1/2 + 1, fear 1/4
    assert (metrics.gepp(replies)["awe"].mean(), metrics.gepp(replies)["fear"].mean()) == (1.5, 0.25)


def test_errors_of_propensities_and_biases_are_those_of_ratios_and_means():
    error = mean_and_error(metrics.gepp(replies_of(DOCUMENTS))["relief"]).error
    # predicted 1 of gold 2, so that the ratio is 1/2: the residuals are 1 - 1/2 and 0 - 1/2, of a total of 2
    assert error == pytest.approx(math.sqrt(8 / 7 * (1 / 4 + 1 / 4)) / 2)
    error = mean_and_error(metrics.grqb(replies_of(DOCUMENTS))["IV"]).error
    # one of 8 documents loses quadrant IV: the sample standard deviation of seven times 0 and -1, over the root of 8
    assert error == pytest.approx(math.sqrt(7 / 64 / 7))


def test_top2_macro_f1():
    # relief: hit; awe: hit by the minority label; fear predicted for (anger, pain): miss; unparsed for happiness: miss
    value = metrics.top2_macro_f1(
        ["relief", "awe", "fear", None], ["relief", "surprise", "anger", "happiness"], ["awe", "awe", "pain", None]
    )
    # F1: relief 1, awe 1, fear 0 (FP 1), anger 0 (FN 1), happiness 0 (FN 1); surprise and pain never count
    assert value == pytest.approx(2 / 5)
    # contentment TP 1, FN 1: 2/3; awe FP 1: 0
    mixed = metrics.top2_macro_f1(["contentment", "awe"], ["contentment", "contentment"], [None, "relief"])
    assert mixed == pytest.approx((2 / 3 + 0) / 2)
    assert metrics.top2_macro_f1(["awe"], ["fear"], ["awe"]) == 1.0
    assert metrics.top2_macro_f1([None], ["fear"], ["awe"]) == 0.0
    assert math.isnan(metrics.top2_macro_f1([], [], []))


def test_empty_input_is_nan():
    replies = replies_of([])
    numbers = [*means(metrics.gepp, []).values(), *means(metrics.grqb, []).values()]
    numbers.append(metrics.acc_var(replies.scores, replies.languages))
    assert all(math.isnan(number) for number in numbers)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (("en", "anger", "angr"), r"^cedar: prediction 'angr' \(record 0\) is .* Did you mean 'anger'\?"),
        (("english", "anger", "anger"), r"^cedar: language 'english'"),
    ],
)
def test_a_label_that_is_none_is_named(document, message):
    with pytest.raises(DataError, match=message):
        replies_of([document])
