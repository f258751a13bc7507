"""From records to values: means over what was scored, coverage, standard errors, spread over runs."""

import logging
import math

import pytest

from culture_tasks.harness import aggregation
from culture_tasks.harness.aggregation import MeanOfScores
from culture_tasks.harness.records import ClusteredValue, CountedRecord, PartRecord
from culture_tasks.harness.session import Session, hold_session
from culture_tasks.settings import Settings


def scored(score):
    return {"outcomes": {"scored": 1}, "score": score}


FAILED = {"outcomes": {"failed": 1}}
REFUSED = {"outcomes": {"refused": 1}}


@pytest.fixture
def min_coverage():
    def set_to(value):
        hold_session(Session(Settings(judge="lexical", judge_min_coverage=value)))

    set_to(0.95)
    return set_to


def test_failed_verdicts_and_documents_of_no_concern_are_left_out_of_the_mean(min_coverage):
    min_coverage(0.5)
    # (1 + 0 + 1) / 3, not / 4
    assert aggregation.MEAN_OF_SCORED([scored(1), scored(0), FAILED, scored(1)]) == pytest.approx(2 / 3)
    assert aggregation.MEAN_OF_SCORED([None, scored(4), None, scored(8)]) == 6
    assert aggregation.coverage([None, scored(4)]) == 1


def test_a_mean_with_too_little_coverage_is_nan_and_the_log_says_once_what_to_do(min_coverage, caplog):
    records = [scored(1)] * 18 + [FAILED] * 2  # 18 / 20 = 0.9 < 0.95
    with caplog.at_level(logging.WARNING):
        assert math.isnan(aggregation.MEAN_OF_SCORED(records))
        assert math.isnan(aggregation.MEAN_OF_SCORED(records))
    assert aggregation.MEAN_OF_SCORED.stderr(records) == "N/A"
    [message] = [record.getMessage() for record in caplog.records]
    assert "18 of 20" in message
    assert "rejudge" in message
    min_coverage(0.9)
    assert aggregation.MEAN_OF_SCORED(records) == 1


def test_coverage_and_counts(min_coverage):
    records = [scored(1), FAILED, REFUSED, REFUSED]
    assert aggregation.coverage(records) == 0.25
    assert aggregation.coverage_stderr(records) == pytest.approx(math.sqrt(0.25 * 0.75 / 4))
    assert aggregation.unscored([*records, {"outcomes": {"scored": 2, "unparsable": 1}}, None]) == 4
    assert aggregation.unscored([scored(1)]) == 0
    assert math.isnan(aggregation.coverage([]))
    assert math.isnan(aggregation.coverage_stderr([None]))
    assert aggregation.MEAN_OF_SCORED([scored(1)] * 19 + [FAILED]) == 1  # 19 / 20 = 0.95, the bound, is enough


def test_standard_error_is_the_sample_deviation_over_the_root_of_n(min_coverage):
    # scores 1, 2, 3: sample variance 1, so 1 / sqrt(3)
    assert aggregation.MEAN_OF_SCORED.stderr([scored(1), scored(2), scored(3)]) == pytest.approx(1 / math.sqrt(3))
    assert aggregation.MEAN_OF_SCORED.stderr([scored(1)]) == "N/A"
    min_coverage(0.0)
    for records in ([], [None], [FAILED]):
        assert math.isnan(aggregation.MEAN_OF_SCORED(records))
        assert aggregation.MEAN_OF_SCORED.stderr(records) == "N/A"


def test_documents_that_share_a_cluster_are_no_independent_ones(min_coverage):
    min_coverage(0.0)
    # the mean is 1/2; the sums of residuals are 1, -1/2, -1/2: sqrt(3/2 · 3/2) / 4
    records = [of("a", 1.0), of("a", 1.0), of("b", 0.0), of("c", 0.0)]
    values = [ClusteredValue(record["score"], ("b", record["cluster"])) for record in records]
    for rows in (records, [None, *values], [PartRecord(record) for record in records]):
        assert MeanOfScores().stderr(rows) == pytest.approx(0.375)
    assert MeanOfScores().stderr(records[:2]) == "N/A"  # one cluster
    assert MeanOfScores().group_value([records[:2], records[2:]], weight_by_size=True) == (0.5, pytest.approx(0.375))
    # scored verdicts 2 of 2, 0 of 1, 0 of 1
    verdicts = [
        CountedRecord(of(cluster, score)) for cluster, score in (("a", 1.0), ("a", 1.0), ("b", None), ("c", None))
    ]
    assert aggregation.COVERAGE.stderr([None, *verdicts]) == pytest.approx(0.375)


def run_scores(*scores):
    return {"outcomes": {"scored": len(scores)}, "run_scores": list(scores)}


def test_spread_is_the_deviation_of_the_run_means():
    # run means 2, 3, 7 over two documents; their mean 4, squares 4 + 1 + 9 = 14, / 2 = 7
    records = [run_scores(1, 2, 9), run_scores(3, 4, 5)]
    assert aggregation.spread_over_runs(records) == pytest.approx(math.sqrt(7))
    # A failed run is left out of that run. Run 1: (1 + 3) / 2 = 2, run 2: 4 alone; deviation of 2 and 4 is sqrt(2)
    assert aggregation.spread_over_runs([run_scores(1, None), run_scores(3, 4)]) == pytest.approx(math.sqrt(2))
    for too_few in ([], [scored(1)], [run_scores(1)], [run_scores(1, None)]):
        assert math.isnan(aggregation.spread_over_runs(too_few))


def of(cluster, score=None, benchmark="b"):
    outcomes = {"scored" if score is not None else "failed": 1}
    return {"benchmark": benchmark, "cluster": cluster, "outcomes": outcomes} | (
        {} if score is None else {"score": score}
    )


ALL_RIGHT = MeanOfScores(min, is_judged=True)


def test_a_cluster_with_a_failed_verdict_has_no_score(min_coverage):
    min_coverage(0.5)
    # "a" is all right, "b" isn't, of "c" a verdict is missing: 1 of 2; their deviation is sqrt(1/2), over sqrt(2)
    records = [of("a", 1.0), of("b", 1.0), None, of("c", 1.0), of("b", 0.0), of("c"), of("a", 1.0)]
    assert ALL_RIGHT(records) == 0.5
    assert ALL_RIGHT.stderr(records) == pytest.approx(0.5)


def test_a_document_that_does_not_count_is_no_part_of_its_cluster():
    rows = [of("a", 1.0), of("a"), ClusteredValue(1.0, ("b", "c")), ClusteredValue(0.0, ("b", "c"))]
    assert MeanOfScores(min)(rows) == 0.0  # a response failed: its cluster has no score
    rows[1]["outcomes"] = {"scored": 1}
    assert MeanOfScores(min)(rows) == 0.5


def test_a_group_knows_which_clusters_its_tasks_share():
    one, two = [of("x", 1.0), of("y", 0.0)], [of("x", 1.0), of("y", 0.0)]
    # each task's error is 1/2; the same two questions once more tell nothing new
    assert MeanOfScores().group_value([one, two], weight_by_size=False) == (0.5, pytest.approx(0.5))
    assert MeanOfScores().group_value([one, two], weight_by_size=True) == (0.5, pytest.approx(0.5))
    other = [of("x", 1.0, benchmark="c"), of("y", 0.0, benchmark="c")]  # equal names in another benchmark
    assert MeanOfScores().group_value([one, other], weight_by_size=False) == (0.5, pytest.approx(math.sqrt(0.5) / 2))
    assert MeanOfScores(min).group_value([one, [of("x", 0.0), of("y", 1.0)]], weight_by_size=True)[0] == 0.5
