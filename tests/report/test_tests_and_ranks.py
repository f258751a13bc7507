"""Tests, their intervals and the ranks that follow from them say the same; means over the columns that models share."""

import itertools
import math

import numpy as np
import pytest
from support.reports import cells_of, report_of, row_of, rows_of, tables_of
from support.sample_files import care_sample, vqa_samples, write_run

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import Number, Rank
from culture_tasks.report.numbers.comparisons import Pair, compare, rank_cells
from culture_tasks.report.numbers.overall import shared_columns
from culture_tasks.report.numbers.selection import Selection, in_order

SHARE = Scale("share", 0.0, 1.0)
RATING = Scale("rating", 1.0, 10.0)


def observed(scores, clusters=None):
    items = np.arange(len(scores), dtype=np.int64)
    codes = np.asarray(items if clusters is None else clusters, dtype=np.int32)
    return in_order(Selection(("r1",), items, np.asarray(scores, dtype=np.float64), codes, None, 1.0))


def compared(models, scale):
    """Tests all pairs of models, given the samples of each."""
    pairs = [
        Pair("u", "u", str(first), str(second), (models[first], models[second]), scale)
        for first, second in itertools.combinations(range(len(models)), 2)
    ]
    return compare(pairs, {str(key): str(key) for key in range(len(models))})


def test_more_items_are_needed_where_these_were_too_few():
    # Differences of 1 in each of 4 items: 2 of 2 ** 4 swaps, p = 0.125; one of 2 ** 6 is the first below 0.05.
    [test] = compared([observed([1.0, 2.0, 3.0, 4.0]), observed([2.0, 3.0, 4.0, 5.0])], RATING)
    assert (test.p, test.verdict, test.items_needed) == (0.125, "not distinguishable", 6)
    # 4 of 2,376 items differ: 6 that differ would be needed at least, of 3,564 items; for a power of 80 %, more.
    a = np.full(2376, 5.0)
    b = np.where(np.arange(2376) < 4, 6.0, 5.0)
    [test] = compared([observed(a), observed(b)], RATING)
    assert (test.p, test.test, test.n) == (0.125, "sign flips", 2376)
    assert test.items_needed > 3564
    # No number of items tells equal models apart.
    [test] = compared([observed(a), observed(a)], RATING)
    assert (test.p, test.items_needed) == (1.0, None)


def test_nothing_in_common_is_not_tested():
    scale = SHARE
    [test] = compared([observed([1.0, math.nan]), observed([math.nan, 1.0])], scale)
    assert (test.n, test.p, test.low, test.verdict, test.better) == (0, None, None, "not tested", None)
    cells = {"0": Number(1.0, scale), "1": Number(1.0, scale)}
    found, standing = rank_cells(cells, scale, tests=[test], left_out={})
    assert [cell.rank for cell in found.values()] == [Rank(1, 2)] * 2
    assert standing.best == ("0", "1")


def test_the_scale_says_which_end_is_better():
    models = [observed([0.2] * 30 + [0.3] * 30), observed([0.7] * 30 + [0.9] * 30)]
    errors = Scale("share of errors", 0.0, 1.0, better="lower")
    [test] = compared(models, errors)
    assert (test.better, test.verdict) == ("0", "0 is better")
    [test] = compared(models, Scale("ratio", better=None))
    assert (test.better, test.verdict) == (None, "1 is higher")


def test_each_family_is_adjusted_by_itself():
    a, b = observed([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), observed([2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    pairs = [Pair(family, "u", "a", "b", (a, b), RATING) for family in ("one", "two", "two")]
    # All 6 differences are 1: 2 of the 2 ** 6 ways to give them signs are as extreme.
    assert [(test.p, test.p_holm) for test in compare(pairs, {"a": "a", "b": "b"})] == [
        (2 / 64, 2 / 64),
        (2 / 64, 4 / 64),
        (2 / 64, 4 / 64),
    ]
    assert [test.verdict for test in compare(pairs, {"a": "a", "b": "b"})] == [
        "b is better",
        *["not distinguishable"] * 2,
    ]


# Reports

HALF = [1.0, 0.0] * 40
MOST = [1.0] * 60 + [0.0] * 20
NONE = [0.0] * 80


def write_models(folder, **models):
    """Writes a run for each model, of tasks of CulturalVQA with scores, and of CARE's Chinese questions."""
    for model, tasks in models.items():
        for task, scores in tasks.items():
            is_care = task.startswith("care")
            lines = [care_sample(n, scores[n % len(scores)]) for n in range(60)] if is_care else vqa_samples(scores)
            write_run(folder / model / task, model, {task: lines})


def named(report, keys):
    return [report.entrants[key].label for key in keys]


def summary(report, name):
    return row_of(tables_of(report)["summary"], name)


def bold(report, column, key="summary"):
    table = tables_of(report)[key]
    at = [each.key for each in table.columns].index(column)
    return {row.labels[0] for row in rows_of(table) if row.cells[at] and row.cells[at].best}


def test_models_that_a_test_does_not_tell_apart_share_their_places(tmp_path):
    close = [1.0 - score if number < 3 else score for number, score in enumerate(MOST)]
    write_models(tmp_path, a={"culturalvqa": MOST}, b={"culturalvqa": close}, c={"culturalvqa": NONE})
    report = report_of(tmp_path)
    standing = report.units["culturalvqa"].standing
    ranks = {label: cell.rank for label, cell in cells_of(report).items()}
    assert ranks == {"a": Rank(1, 2), "b": Rank(1, 2), "c": Rank(3, 3)}
    assert (named(report, standing.ranked), named(report, standing.best)) == (["a", "b", "c"], ["a", "b"])
    assert bold(report, "culturalvqa") == {"a", "b"}


def test_the_best_of_a_column_of_a_group_are_marked_without_ranks(tmp_path):
    # brazil, china, india, usa by turns: a and b are right everywhere, c in brazil alone
    right = {"a": [1.0] * 80, "b": [0.0, 0.0, *[1.0] * 78], "c": [float(number % 4 == 0) for number in range(80)]}
    write_models(tmp_path, **{model: {"culturalvqa": scores} for model, scores in right.items()})
    report = report_of(tmp_path)
    table = tables_of(report)["culturalvqa_by_country"]
    columns = {column.label: column.key for column in table.columns}
    assert bold(report, columns["Brazil"], table.key) == set()
    assert bold(report, columns["China"], table.key) == {"a", "b"}
    assert {row.cells[0].rank for row in rows_of(table)} == {None}


SHARED = {"culturalvqa": MOST, "culturalvqa_blind": MOST}
LOSING = {"culturalvqa": HALF, "culturalvqa_blind": HALF}


def test_a_further_benchmark_does_not_make_a_model_the_best(tmp_path):
    write_models(tmp_path, good=SHARED, bad={**LOSING, "care_zh": [10.0, 9.0]})
    report = report_of(tmp_path)
    [mean] = report.means
    assert (mean.title, mean.columns) == ("Mean of 2", ("culturalvqa", "culturalvqa_blind"))
    assert named(report, mean.standing.best) == ["good"]
    assert bold(report, "mean") == {"good"}
    of_rows = {name: summary(report, name)["mean"] for name in ("good", "bad")}
    assert {name: (cell.value, cell.rank) for name, cell in of_rows.items()} == {
        "good": (pytest.approx(75.0), Rank(1, 1)),
        "bad": (pytest.approx(50.0), Rank(2, 2)),
    }
    tested = [row.labels[:4] for row in rows_of(tables_of(report)["comparisons"]) if row.labels[0] == "Mean of 2"]
    assert tested == [("Mean of 2", "bad", "good", "good is better")]
    assert mean.beside == {"care_zh": "missing or not comparable for 1 of the 2 models"}
    assert summary(report, "good")["care_zh"].note == "not run"


def test_tasks_of_the_harness_stand_beside_the_mean(tmp_path):
    write_models(tmp_path, good=SHARED, bad=LOSING)
    before = summary(report_of(tmp_path), "good")
    write_run(tmp_path / "more", "bad", {}, results={"arab_culture": {"acc,none": 1.0}}, date=1.0)
    report = report_of(tmp_path)
    after = summary(report, "good")
    assert after["mean"] == before["mean"]
    assert report.means[0].beside == {"arab_culture": "a task of the harness"}
    assert summary(report, "bad")["arab_culture"].rank is None


@pytest.mark.parametrize(
    ("ran", "columns", "rows"),
    [
        ({"a": "123", "b": "12", "c": "12"}, "12", "abc"),
        ({"a": "12345", "b": "12345", "c": "12345", "new": "1"}, "12345", "abc"),
        ({"a": "12345", "b": "12345", "c": "12"}, "12", "abc"),  # 3 pairs x 2 columns, against 1 x 5
        ({"a": "12", "b": "12", "c": "34", "d": "34", "e": "34"}, "34", "cde"),
        ({"a": "12", "b": "34"}, "", ""),
        ({"a": "1235", "b": "1234", "c": "1245"}, "12", "abc"),  # no two share more than three columns
        ({"a": "1", "b": "1"}, "", ""),
        ({"a": "12", "b": ""}, "12", "a"),
        ({}, "", ""),
    ],
)
def test_columns_are_chosen_for_the_most_comparisons(ran, columns, rows):
    assert shared_columns({model: tuple(keys) for model, keys in ran.items()}) == ([*columns], [*rows])


def test_the_time_for_a_pair_does_not_grow_with_the_number_of_models(tmp_path):
    """24 models are 276 pairs: more than random swaps can tell apart, and no reason for more swaps for each."""
    for number in range(24):
        ratings = [1.0 + (n * number) % 9 for n in range(40)]
        write_run(
            tmp_path / str(number), f"m{number:02}", {"care_zh": [care_sample(*pair) for pair in enumerate(ratings)]}
        )
    report = report_of(tmp_path)
    assert {test.test for test in report.comparisons if test.difference} == {"t"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("culture_tasks.report.tables.overview._MOST_TESTS", 100)
        table = tables_of(report_of(tmp_path))["comparisons"]
    assert len(rows_of(table)) == 100
    assert table.notes[-1].startswith("These are the 100 of 276 tests with the smallest p")
