"""Metrics against values worked out by hand; the arithmetic stands in the comments."""

from __future__ import annotations

import math

import pytest

from culture_tasks.benchmarks.cedar import metrics
from culture_tasks.benchmarks.cedar.benchmark import metrics as task_metrics
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
    for documents, variance in ((in_languages("ar", "en"), 0.0), (in_languages("ja"), math.nan), ([], math.nan)):
        some = replies_of(documents)
        assert metrics.acc_var(some.scores, some.languages) == pytest.approx(variance, nan_ok=True)


def test_propensities():
    gepp = means(metrics.gepp, DOCUMENTS)
    # anger is predicted twice and gold once; the one gold label of sadness met an unparsed reply
    assert (gepp["anger"], gepp["relief"], gepp["sadness"]) == (2.0, 0.5, 0.0)
    assert math.isnan(gepp["surprise"])  # predicted, never gold: not infinity
    assert means(metrics.gepp, in_languages("ja"))["awe"] == 1.0
    assert all(math.isnan(number) for number in means(metrics.gepp, []).values())


def test_quadrant_biases():
    # gold: I happiness = 1; II anger, fear = 2; III sadness = 1; IV relief 2, awe 2 = 4; of 8
    # predicted: I happiness, surprise = 2; II anger 2 = 2; III 0; IV relief, awe 2 = 3
    assert means(metrics.grqb, DOCUMENTS) == {"I": 0.125, "II": 0.0, "III": -0.125, "IV": -0.125}
    assert means(metrics.grqb, in_languages("ar")) == {"I": 0.5, "II": 0.0, "III": 0.0, "IV": -0.5}
    assert all(math.isnan(number) for number in means(metrics.grqb, []).values())


def test_a_document_counts_once_with_the_shares_of_its_runs():
    replies = replies_of([("en", "awe", "awe", "fear", "awe", None), None, ("en", "fear", "awe")])
    assert replies.scores.tolist() == [0.5, 0.0]
    assert metrics.unparsed_share(replies).tolist() == [0.25, 0.0]
    # gold awe 1, fear 1; predicted awe 1/2 + 1, fear 1/4
    assert (metrics.gepp(replies)["awe"].mean(), metrics.gepp(replies)["fear"].mean()) == (1.5, 0.25)


def test_errors_of_propensities_and_biases_are_those_of_ratios_and_means():
    replies = replies_of(DOCUMENTS)
    # predicted 1 of gold 2, so that the ratio is 1/2: the residuals are 1 - 1/2 and 0 - 1/2, of a total of 2
    propensity = math.sqrt(8 / 7 * (1 / 4 + 1 / 4)) / 2
    assert mean_and_error(metrics.gepp(replies)["relief"]).error == pytest.approx(propensity)
    # one of 8 documents loses quadrant IV: the sample standard deviation of seven times 0 and -1, over the root of 8
    assert mean_and_error(metrics.grqb(replies)["IV"]).error == pytest.approx(math.sqrt(7 / 64 / 7))


@pytest.mark.parametrize(
    ("predictions", "golds", "minorities", "f1"),
    [
        # F1: relief 1, awe 1 by the minority label, fear 0 (FP 1), anger 0 (FN 1), happiness 0 (FN 1, unparsed)
        (
            ["relief", "awe", "fear", None],
            ["relief", "surprise", "anger", "happiness"],
            ["awe", "awe", "pain", None],
            2 / 5,
        ),
        # contentment TP 1, FN 1: 2/3; awe FP 1: 0
        (["contentment", "awe"], ["contentment", "contentment"], [None, "relief"], (2 / 3 + 0) / 2),
        (["awe"], ["fear"], ["awe"], 1.0),
        ([None], ["fear"], [None], 0.0),
        ([], [], [], math.nan),
    ],
)
def test_top2_macro_f1(predictions, golds, minorities, f1):
    for runs in (1, 7):
        replies = replies_of(("en", gold, *[label] * runs) for gold, label in zip(golds, predictions, strict=True))
        found = metrics.top2_macro_f1(replies, metrics.indicators(minorities))
        assert found == pytest.approx(f1, nan_ok=True)
    [of_task] = [metric for metric in task_metrics("language") if metric.name == "top2_macro_f1"]
    assert of_task.value(list(zip(golds, minorities, predictions, strict=True))) == pytest.approx(f1, nan_ok=True)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (("en", "anger", "angr"), r"^cedar: 'angr' \(record 0\) is .* Did you mean 'anger'\?"),
        (("english", "anger", "anger"), r"^cedar: 'english'"),
    ],
)
def test_a_label_that_is_none_is_named(document, message):
    with pytest.raises(DataError, match=message):
        replies_of([document])
