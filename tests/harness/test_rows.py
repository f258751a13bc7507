"""From records to numbers: means over what was scored, coverage, standard errors, spread over runs, groups."""

import logging
import math

import pytest

from culture_tasks.benchmarks.interface import ComputedScore, JudgedScore, MeanScore, Scale
from culture_tasks.harness.rows import TaskRecords, measured_together, write_group_row, write_row
from culture_tasks.harness.session import Session, hold_session
from culture_tasks.settings import Settings

SCALE = Scale("rating", 0.0, 10.0)
RATING = JudgedScore(name="x", scale=SCALE)
PLAIN = MeanScore(name="x", scale=SCALE)
ALL_RIGHT = JudgedScore(name="x", scale=SCALE, per_cluster=min)


def of(cluster, score=None, benchmark="b", outcomes=None, **more):
    outcomes = outcomes or {"scored" if score is not None else "failed": 1}
    record = {"record": 2, "benchmark": benchmark, "cluster": cluster, "outcomes": outcomes, "groups": {}, **more}
    return record | ({} if score is None else {"score": score})


def scored(*scores):
    """Records of one document each; None is a verdict that failed."""
    return [of(str(number), score) for number, score in enumerate(scores)]


def number(records, name="x", metric=RATING):
    return TaskRecords.of([metric], "x", records).numbers[name].measured()


@pytest.fixture
def min_coverage():
    def set_to(value):
        hold_session(Session(Settings(judge="lexical", judge_min_coverage=value)))

    set_to(0.95)
    return set_to


def run_scores(*runs):
    return [of(str(place), 1.0, run_scores=list(scores)) for place, scores in enumerate(runs)]


NAN = math.nan
REFUSED = [*scored(1, None), of("8", outcomes={"refused": 1}), of("9", outcomes={"refused": 1})]
# The mean is 1/2; the sums of residuals are 1, -1/2, -1/2: sqrt(1 / (1 - 1/2) + 2 · 1/4 / (1 - 1/4)) / 4.
SHARED = [of("a", 1.0), of("a", 1.0), of("b", 0.0), of("c", 0.0)]
REGIONS = [(1.0, "iran"), (0.0, "iran"), (1.0, "iran"), (0.0, "iran"), (1.0, "china"), (1.0, "china")]
BY_REGION = [of(str(place), score, groups={"region": region}) for place, (score, region) in enumerate(REGIONS)]
EQUAL = MeanScore(name="x", scale=SCALE, groups={"region": ("iran", "china")}, equal_groups="region")
LEAST = MeanScore(name="x", scale=SCALE, per_cluster=min)


@pytest.mark.parametrize(
    ("name", "metric", "records", "value", "error"),
    [
        ("x", RATING, scored(1, 0, None, 1), 2 / 3, 1 / 3),  # (1 + 0 + 1) / 3, not / 4; variance 1/3, over 3
        ("x", RATING, scored(1, 2, 3), 2, 1 / math.sqrt(3)),  # sample variance 1
        ("x", RATING, scored(1), 1, NAN),
        ("x", RATING, [], NAN, NAN),
        ("x", RATING, scored(None), NAN, NAN),
        ("x_coverage", RATING, REFUSED, 0.25, math.sqrt(0.25 * 0.75 / 4)),
        ("x_coverage", RATING, [], NAN, NAN),
        ("x_unscored", RATING, [*REFUSED, of("10", outcomes={"scored": 2, "unparsable": 1})], 4, NAN),
        ("x_unscored", RATING, scored(1), 0, NAN),
        # Documents that share a cluster are no independent ones.
        ("x", RATING, SHARED, 0.5, 1 / math.sqrt(6)),
        ("x", RATING, SHARED[:2], 1, NAN),  # one cluster
        (
            "y",
            MeanScore(name="y", scale=SCALE),
            [{**one, "values": {"y": one["score"]}} for one in SHARED],
            0.5,
            6**-0.5,
        ),
        ("x_coverage", RATING, [of("a", 1.0), of("a", 1.0), of("b"), of("c")], 0.5, 1 / math.sqrt(6)),
        # "a" is all right, "b" isn't, of "c" a verdict is missing: 1 of 2; their deviation is sqrt(1/2), over sqrt(2)
        ("x", ALL_RIGHT, [of("a", 1.0), of("b", 1.0), of("c", 1.0), of("b", 0.0), of("c"), of("a", 1.0)], 0.5, 0.5),
        # A response failed: its cluster has no score. A document that doesn't count is no part of its cluster.
        ("x", LEAST, [of("a", 1.0), of("a"), of("c", 1.0), of("c", 0.0)], 0, NAN),
        ("x", LEAST, [of("a", 1.0), of("a", outcomes={"scored": 1}), of("c", 1.0), of("c", 0.0)], 0.5, 0.5),
        # Run means 2, 3, 7 over two documents; their mean 4, squares 4 + 1 + 9 = 14, / 2 = 7.
        ("x_run_sd", RATING, run_scores([1, 2, 9], [3, 4, 5]), math.sqrt(7), NAN),
        # A failed run is left out of that run. Run 1: (1 + 3) / 2 = 2, run 2: 4 alone.
        ("x_run_sd", RATING, run_scores([1, None], [3, 4]), math.sqrt(2), NAN),
        ("x_run_sd", RATING, scored(1), NAN, NAN),
        ("x_run_sd", RATING, run_scores([1]), NAN, NAN),
        ("x_run_sd", RATING, run_scores([1, None]), NAN, NAN),
        # Groups that weigh the same: means 1/2 and 1; errors sqrt(1/3 / 4) and 0, over 2 regions.
        ("x", EQUAL, BY_REGION, 0.75, math.sqrt(1 / 12) / 2),
        ("x_iran", EQUAL, BY_REGION, 0.5, math.sqrt(1 / 12)),
    ],
)
def test_a_number_and_its_error_are_those_worked_out_by_hand(min_coverage, name, metric, records, value, error):
    min_coverage(0.0)
    assert number(records, name, metric) == pytest.approx((value, error), nan_ok=True)


def test_a_mean_with_too_little_coverage_is_nan_and_the_log_says_once_what_to_do(min_coverage, caplog):
    records = scored(*[1] * 18, None, None)  # 18 / 20 = 0.9 < 0.95
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert all(map(math.isnan, number(records)))
    [message] = [record.getMessage() for record in caplog.records]
    assert "18 of 20" in message
    assert "rejudge" in message
    assert number(scored(*[1] * 19, None)).value == 1  # 19 / 20 = 0.95, the bound, is enough


def group(tasks, *, by_size, metric=PLAIN, sizes=None):
    numbers = [TaskRecords.of([metric], "x", records).numbers["x"] for records in tasks]
    return measured_together(numbers, by_size=by_size, sizes=sizes)


def test_a_group_knows_which_clusters_its_tasks_share():
    one, two = [of("x", 1.0), of("y", 0.0)], [of("x", 1.0), of("y", 0.0)]
    # each task's error is 1/2; the same two questions once more tell nothing new
    assert group([one, two], by_size=False) == group([one, two], by_size=True) == (0.5, pytest.approx(0.5))
    other = [of("x", 1.0, benchmark="c"), of("y", 0.0, benchmark="c")]  # equal names in another benchmark
    assert group([one, other], by_size=False) == (0.5, pytest.approx(math.sqrt(0.5) / 2))
    swapped = [of("x", 0.0), of("y", 1.0)]
    assert group([one, swapped], by_size=True, metric=MeanScore(name="x", scale=SCALE, per_cluster=min)).value == 0.0


TOTAL = ComputedScore(
    name="x", scale=SCALE, value=lambda records: sum(r["score"] for r in records), stderr=lambda r, _: float(len(r))
)


def test_a_group_weighs_items_or_tasks_and_the_rows_of_others_are_left_alone():
    one, two = scored(1.0, 2.0), scored(6.0)
    assert group([one, two], by_size=True, metric=TOTAL) == (9.0, 3.0)
    assert group([one, two], by_size=False, metric=TOTAL) == (4.5, math.hypot(2.0, 1.0) / 2)
    assert group([one, two], by_size=True, metric=TOTAL, sizes=[3, 1]) == (3.75, math.hypot(6.0, 1.0) / 4)
    ours, row = TaskRecords.of([TOTAL], "x", one), {"f1,none": 1.0}
    assert [written.name for written in write_row(row, ours)] == ["x"]
    assert row == {"x,none": 3.0, "x_stderr,none": 2.0, "f1,none": 1.0}
    another = TaskRecords.of([PLAIN], "x", one)
    for tasks, changed in (([ours, ours], {"x,none": 6.0, "x_stderr,none": 4.0}), ([ours, another], {}), ([], {})):
        before = {"x,none": 3.0, "x_stderr,none": "N/A", "f1,none": 1.0}
        written = dict(before)
        write_group_row(written, tasks, {"x": True, "f1": True})
        assert written == before | changed
    write_group_row(row, [TaskRecords.of([TOTAL], "x", [])], {"x": True})
    assert row == {"f1,none": 1.0}  # no record concerns the number


def test_a_row_has_the_numbers_that_concern_its_records():
    metric = JudgedScore(name="x", scale=SCALE, groups={"country": ("brazil", "india", "iran")})
    records = [of("a", 1.0, groups={"country": "brazil"}), of("b", groups={"country": "india"})]
    for record in records:
        record["judge"] = {"backend": "lexical"}
    row = {}
    write_row(row, TaskRecords.of([metric], "x", records))
    names = [key.removesuffix(",none") for key in row if "_stderr" not in key]
    assert names == ["x_lexical", "x_lexical_brazil", "x_lexical_india", "x_coverage", "x_unscored"]
    assert row["x_lexical_brazil,none"] == 1.0
