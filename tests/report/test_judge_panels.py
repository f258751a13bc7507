"""Several judges on the same responses: what they say together, and how well they agree."""

from __future__ import annotations

import pytest
from support.reports import report_of, row_of, rows_of, tables_of
from support.sample_files import JUDGE, care_sample, rewrite, vqa_samples, write_run

STAMPS = ("20260101_000000", "20260102_000000", "20260103_000000")


def vqa(scores, **changes):
    return {"culturalvqa": vqa_samples(scores, **changes)}


def care(scores, **changes):
    return {"care_zh": [care_sample(number, score, **changes) for number, score in enumerate(scores)]}


def panel(folder, by_judge=None, samples=vqa):
    """Writes a run and a new grading of it by each further judge, and returns the table of all judges."""
    for stamp, (judge, scores) in zip(STAMPS, (by_judge or {}).items(), strict=False):
        graded(folder, samples(scores, judge=JUDGE | {"model": judge}), stamp)
    return tables_of(report_of(folder)).get("judges")


def graded(folder, samples, stamp):
    """Writes a run, or a further grading of the first one."""
    path = write_run(folder, "toy/model", samples, stamp)
    if stamp != STAMPS[0]:
        rewrite(path, config={"rejudged_from": f"{STAMPS[0]}_results.json"})


def cells(table, culture="all"):
    at = next(at for at, row in enumerate(rows_of(table)) if row.labels[2] == culture)
    labels = {column.key: column.label for column in table.columns}
    return {labels[key]: cell for key, cell in row_of(table, at).items()}


def test_the_majority_counts_where_scores_are_right_or_wrong(tmp_path):
    # Four questions, one of each country: the majority says 1 1 0 0.
    by_judge = {"a": [1.0, 1.0, 0.0, 0.0], "b": [1.0, 0.0, 0.0, 1.0], "c": [1.0, 1.0, 1.0, 0.0]}
    table = panel(tmp_path, by_judge)
    row = cells(table)
    assert [row[judge].value for judge in "abc"] == [0.5, 0.5, 0.75]
    assert (row["Majority or mean"].value, row["Items"].value) == (0.5, 4)
    assert row["Apart"].value == pytest.approx((2 + 1 + 3) / 12)  # a-b differ on two of four, a-c on one, b-c on three
    # Ratings 1 and 0 of each question: 3-0, 2-1, 1-2, 1-2. Of 12 pairs of two raters 6 differ; of all 66 pairs of the
    # 12 ratings (7 ones) 35: alpha = 1 - (6 / 12) / (35 / 66).
    assert row["Alpha"].value == pytest.approx(1 - (6 / 12) / (35 / 66))
    assert cells(table, "brazil")["Majority or mean"].value == 1.0


def test_two_judges_who_disagree_make_half_a_point_and_ratings_are_averaged(tmp_path):
    table = panel(tmp_path / "vqa", {"a": [1.0, 1.0, 0.0, 0.0], "b": [1.0, 0.0, 1.0, None]})
    assert [cells(table, culture)["Majority or mean"].value for culture in ("brazil", "china")] == [1.0, 0.5]
    # an item without a verdict of one judge is in no common score
    assert (cells(table)["Items"].value, cells(table, "usa")["Majority or mean"]) == (3, None)
    row = cells(panel(tmp_path / "care", {"a": [4.0, 6.0, 8.0], "b": [5.0, 6.0, 9.0]}, care))
    assert (row["Majority or mean"].value, row["Apart"].value, row["Items"].value) == (pytest.approx(38 / 6), 2 / 3, 3)


def test_other_responses_and_single_judges_make_no_panel(tmp_path):
    assert panel(tmp_path, {"a": [1.0, 0.0]}) is None
    write_run(tmp_path, "toy/model", vqa([1.0, 0.0], judge=JUDGE | {"model": "b"}), STAMPS[1])  # a run of its own
    assert panel(tmp_path) is None


def test_a_grading_of_a_grading_is_of_the_same_responses(tmp_path):
    panel(tmp_path, {"a": [1.0, 1.0, 0.0, 0.0], "b": [1.0, 0.0, 0.0, 1.0]})
    second = tmp_path / f"{STAMPS[1]}_results.json"
    third = write_run(tmp_path, "toy/model", vqa([1.0] * 4, judge=JUDGE | {"model": "c"}), STAMPS[2])
    rewrite(third, config={"rejudged_from": second.name})
    assert {column.label for column in panel(tmp_path).columns} >= {"a", "b", "c"}
    rewrite(second, config={"rejudged_from": third.name})  # files that name each other end no loop
    panel(tmp_path)


def test_new_verdicts_of_the_same_judge_stand_beside_its_old_ones(tmp_path):
    graded(tmp_path, vqa([1.0, 1.0, 0.0, 0.0]), STAMPS[0])
    assert "judge_again" not in tables_of(report_of(tmp_path))
    graded(tmp_path, vqa([1.0, 0.0, 0.0, 0.0]), STAMPS[1])
    graded(tmp_path, vqa([1.0, None, 1.0, 1.0]), STAMPS[2])
    table = tables_of(report_of(tmp_path))["judge_again"]
    assert [row.labels for row in rows_of(table)] == [
        ("toy/model", "judge-1", "CulturalVQA", f"{stamp}_results.json") for stamp in STAMPS[1:]
    ]
    second, third = (row_of(table, at) for at in (0, 1))
    # Differences 0 -1 0 0: mean -0.25, standard deviation 0.5, standard error 0.25, and t with 3 degrees is 3.182.
    names = ("old", "new", "difference", "identical", "responses")
    assert [second[name].value for name in names] == [0.5, 0.25, -0.25, 0.75, 4]
    assert (second["difference"].low, second["difference"].high) == pytest.approx(
        (-0.25 - 0.7956, -0.25 + 0.7956), 1e-3
    )
    # Of the 4 pairs 1 differs; of the 28 pairs of the 8 verdicts (3 ones) 15 do: alpha = 1 - (1 / 4) / (15 / 28).
    assert second["alpha"].value == pytest.approx(1 - (1 / 4) / (15 / 28))
    # The third grading has no verdict on one response: 1 0 0 against 1 1 1.
    assert [third[key].value for key in ("old", "new", "identical", "responses")] == pytest.approx([1 / 3, 1, 1 / 3, 3])


def test_verdicts_that_failed_only_keeps_are_no_second_look(tmp_path):
    graded(tmp_path, vqa([1.0, 0.0, None, None, None, None]), STAMPS[0])
    samples = vqa([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    for number, sample in enumerate(samples["culturalvqa"]):
        kept = {"kept": True} if number < 2 else {}
        sample["record"]["runs"] = [{"response": "x", "outcome": "scored", "rating": None, "tokens": [1, 1], **kept}]
    graded(tmp_path, samples, STAMPS[1])
    assert "judge_again" not in tables_of(report_of(tmp_path))


def test_a_second_look_is_beside_the_first_verdicts_of_its_prompt(tmp_path):
    graded(tmp_path, vqa([1.0, 0.0]), STAMPS[0])
    for stamp, scores in zip(STAMPS[1:], ([1.0, 1.0], [0.0, 1.0]), strict=True):
        graded(tmp_path, vqa(scores, judge=JUDGE | {"prompt": "lave.v2", "prompt_sha256": "b" * 64}), stamp)
    table = tables_of(report_of(tmp_path))["judge_again"]
    assert [row.labels[3] for row in rows_of(table)] == [f"{STAMPS[2]}_results.json"]
    assert [row_of(table, 0)[key].value for key in ("old", "new", "identical")] == [1.0, 0.5, 0.5]
