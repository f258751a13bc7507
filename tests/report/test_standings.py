"""Ranks that say no more than the tests, and means over the columns that models share."""

import itertools

import pytest
from support.reports import cells_of, report_of, row_of, tables_of
from support.sample_files import care_sample, vqa_samples, write_run

from culture_tasks.report.model import Rank
from culture_tasks.report.numbers.overall import Block, blocks

HALF = [1.0, 0.0] * 40
MOST = [1.0] * 60 + [0.0] * 20
NONE = [0.0] * 80


def ratings(*scores):
    return [care_sample(number, score) for number, score in enumerate(itertools.islice(itertools.cycle(scores), 60))]


def write_models(folder, **models):
    """Writes a run for each model, of tasks of CulturalVQA with scores, and of CARE's Chinese questions."""
    for model, tasks in models.items():
        for task, scores in tasks.items():
            lines = ratings(*scores) if task.startswith("care") else vqa_samples(scores)
            write_run(folder / model / task, model, {task: lines})


def named(report, keys):
    return [report.entrants[key].label for key in keys]


def summary(report, name):
    return row_of(tables_of(report)["summary"], name)


def bold(report, column, key="summary"):
    table = tables_of(report)[key]
    at = [each.key for each in table.columns].index(column)
    return {row.labels[0] for row in table.rows if row.cells[at] and row.cells[at].best}


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
    assert {row.cells[0].rank for row in table.rows} == {None}


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
    tested = [row.labels[:4] for row in tables_of(report)["comparisons"].rows if row.labels[0] == "Mean of 2"]
    assert tested == [("Mean of 2", "bad", "good", "good is better")]
    assert mean.beside == {"care_zh": "missing or not comparable for 1 of the 2 models"}
    assert summary(report, "good")["care_zh"].note == "not run"


def test_tasks_of_the_harness_stand_beside_the_mean_unless_they_are_asked_for(tmp_path):
    write_models(tmp_path, good=SHARED, bad=LOSING)
    before = summary(report_of(tmp_path), "good")
    write_run(tmp_path / "more", "bad", {}, results={"arab_culture": {"acc,none": 1.0}}, date=1.0)
    report = report_of(tmp_path)
    after = summary(report, "good")
    assert (after["mean"], after["mean_rank"]) == (before["mean"], before["mean_rank"])
    assert report.means[0].beside == {"arab_culture": "a task of the harness"}
    assert summary(report, "bad")["arab_culture"].rank is None
    two = tmp_path / "two"
    for model, scores, share in (("good", MOST, 0.5), ("bad", HALF, 0.25)):
        write_models(two, **{model: {"culturalvqa": scores}})
        write_run(two / f"{model}-more", model, {}, results={"arab_culture": {"acc,none": share}}, date=1.0)
    assert report_of(two).means == ()
    report = report_of(two, other_tasks_in_mean=True)
    [mean] = report.means
    assert mean.columns == ("culturalvqa", "arab_culture")
    assert summary(report, "good")["mean"].value == pytest.approx((75 + 50) / 2)
    assert mean.standing.best == ()  # its samples aren't read, so nothing is tested


@pytest.mark.parametrize(
    ("ran", "found"),
    [
        ({"a": "123", "b": "12", "c": "12"}, [("12", "abc")]),
        ({"a": "12345", "b": "12345", "c": "12345", "new": "1"}, [("12345", "abc")]),
        ({"a": "12345", "b": "12345", "c": "12"}, [("12", "abc")]),  # 3 pairs x 2 columns, against 1 x 5
        ({"a": "12", "b": "12", "c": "34", "d": "34", "e": "34"}, [("34", "cde"), ("12", "ab")]),
        ({"a": "12", "b": "34"}, []),
        ({"a": "1235", "b": "1234", "c": "1245"}, [("12", "abc")]),  # no two share more than three columns
        ({"a": "1", "b": "1"}, []),
        ({"a": "12", "b": ""}, [("12", "a")]),
        ({}, []),
    ],
)
def test_columns_are_chosen_for_the_most_comparisons(ran, found):
    wanted = [Block(tuple(columns), tuple(models)) for columns, models in found]
    assert blocks({model: tuple(columns) for model, columns in ran.items()}) == wanted
