"""Several judges on the same responses: what they say together, and how well they agree."""

from __future__ import annotations

import json

import pytest
from support.sample_files import JUDGE, care_sample, vqa_samples, write_run

from culture_tasks.report.building import Options, build
from culture_tasks.report.text.markdown import table_markdown

STAMPS = ("20260101_000000", "20260102_000000", "20260103_000000")


def graded(folder, by_judge, samples, model="toy/model"):
    """Writes a run, and a new grading of it by each further judge."""
    first = None
    for stamp, (judge, scores) in zip(STAMPS, by_judge.items(), strict=False):
        own = {"judge": JUDGE | {"model": judge}}
        path = write_run(folder, model, samples(scores, own), stamp)
        if first is not None:
            content = json.loads(path.read_text())
            content["config"]["rejudged_from"] = first.name
            path.write_text(json.dumps(content))
        first = first or path
    return folder


def vqa(scores, own):
    return {"culturalvqa": vqa_samples(scores, **own)}


def care(scores, own):
    return {"care_zh": [care_sample(number, score, **own) for number, score in enumerate(scores)]}


def panel(folder):
    report = build([str(folder)], Options())
    return next((table for table in report.tables if table.key == "judges"), None)


def cells(table, culture="all"):
    row = next(row for row in table.rows if row.labels[2] == culture)
    return dict(zip((column.label for column in table.columns), row.cells, strict=True))


def test_the_majority_counts_where_scores_are_right_or_wrong(tmp_path):
    # Four questions, one of each country: the majority says 1 1 0 0.
    by_judge = {"a": [1.0, 1.0, 0.0, 0.0], "b": [1.0, 0.0, 0.0, 1.0], "c": [1.0, 1.0, 1.0, 0.0]}
    table = panel(graded(tmp_path, by_judge, vqa))
    row = cells(table)
    assert [row[judge].value for judge in "abc"] == [0.5, 0.5, 0.75]
    assert row["Majority or mean"].value == 0.5
    assert row["Apart"].value == pytest.approx((2 + 1 + 3) / 12)  # a-b differ on two of four, a-c on one, b-c on three
    # Ratings 1 and 0 of each question: 3-0, 2-1, 1-2, 1-2. Of 12 pairs of two raters 6 differ; of all 66 pairs of the
    # 12 ratings (7 ones) 35: alpha = 1 - (6 / 12) / (35 / 66).
    assert row["Alpha"].value == pytest.approx(1 - (6 / 12) / (35 / 66))
    assert (row["Items"].value, cells(table, "brazil")["Majority or mean"].value) == (4, 1.0)
    assert table.question == "judges"


def test_two_judges_who_disagree_make_half_a_point(tmp_path):
    table = panel(graded(tmp_path, {"a": [1.0, 1.0, 0.0, 0.0], "b": [1.0, 0.0, 1.0, 0.0]}, vqa))
    assert cells(table)["Majority or mean"].value == 0.5
    assert cells(table, "china")["Majority or mean"].value == 0.5


def test_ratings_are_averaged(tmp_path):
    table = panel(graded(tmp_path, {"a": [4.0, 6.0, 8.0], "b": [5.0, 6.0, 9.0]}, care))
    row = cells(table)
    assert (row["Majority or mean"].value, row["Apart"].value, row["Items"].value) == (pytest.approx(38 / 6), 2 / 3, 3)


def test_an_item_without_a_verdict_of_one_judge_is_in_no_common_score(tmp_path):
    table = panel(graded(tmp_path, {"a": [1.0, 1.0, 0.0, 0.0], "b": [1.0, None, 0.0, None]}, vqa))
    row = cells(table)
    assert (row["Items"].value, row["Majority or mean"].value, row["Alpha"].value) == (2, 0.5, 1.0)
    assert cells(table, "china")["Majority or mean"] is None


def test_other_responses_and_single_judges_make_no_panel(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    write_run(one, "toy/model", vqa([1.0, 0.0], {}), STAMPS[0])
    write_run(one, "toy/model", vqa([1.0, 0.0], {"judge": JUDGE | {"model": "b"}}), STAMPS[1])  # a run of its own
    assert panel(one) is None
    write_run(two, "toy/model", vqa([1.0, 0.0], {}), STAMPS[0])
    assert panel(two) is None


def test_a_grading_of_a_grading_is_of_the_same_responses(tmp_path):
    graded(tmp_path, {"a": [1.0, 1.0, 0.0, 0.0], "b": [1.0, 0.0, 0.0, 1.0]}, vqa)
    second = tmp_path / f"{STAMPS[1]}_results.json"
    third = write_run(tmp_path, "toy/model", vqa([1.0, 1.0, 1.0, 1.0], {"judge": JUDGE | {"model": "c"}}), STAMPS[2])
    content = json.loads(third.read_text())
    content["config"]["rejudged_from"] = second.name
    third.write_text(json.dumps(content))
    second_content = json.loads(second.read_text())
    table = panel(tmp_path)
    assert {column.label for column in table.columns} >= {"a", "b", "c"}
    second_content["config"]["rejudged_from"] = third.name  # files that name each other end no loop
    second.write_text(json.dumps(second_content))
    panel(tmp_path)


def test_a_judge_with_a_hostile_name_is_text(tmp_path):
    table = panel(graded(tmp_path, {"a": [1.0, 0.0], "|<b>*x*": [1.0, 1.0]}, vqa))
    assert r"\|\<b\>\*x\*" in table_markdown(table)
