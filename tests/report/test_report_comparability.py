"""What can't be compared is marked, and neither ranked nor tested."""

import pytest
from support.sample_files import JUDGE, care_sample, vqa_record, vqa_samples, write_run, write_vqa

from culture_tasks.report.building import Options, build
from culture_tasks.report.model import FLAG_TEXT, Rank

SCORES = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
BETTER = [1.0] * 8


def decoding(**settings):
    return {"configs": {"culturalvqa": {"output_type": "generate_until", "generation_kwargs": settings}}}


def limited(original):
    return {"n-samples": {"culturalvqa": {"original": original, "effective": 8}}}


CASES = {
    "other_judge": ({"judge": JUDGE | {"model": "judge-2"}}, {}),
    "other_judge_prompt": ({"judge": JUDGE | {"prompt_sha256": "b" * 64}}, {}),
    "other_data": ({"data": {"data": "d2"}}, {}),
    "other_task_version": ({}, {"versions": {"culturalvqa": 2.0}}),
    "other_prompt": ({}, {"n-shot": {"culturalvqa": 3}}),
    "other_decoding": ({}, decoding(max_new_tokens=64, temperature=0.7, do_sample=True)),
    "other_limit": ({}, limited(20)),
}


def cells(report, unit="culturalvqa"):
    return {report.entrants[key].label: cell for key, cell in report.units[unit].cells.items()}


@pytest.fixture
def two(tmp_path):
    """Two models under the same settings."""
    write_vqa(tmp_path / "a", "a", SCORES)
    write_vqa(tmp_path / "b", "b", SCORES)
    return tmp_path


@pytest.mark.parametrize("flag", CASES)
def test_every_difference_is_marked(two, flag):
    record, results = CASES[flag]
    write_run(two / "c", "c", {"culturalvqa": vqa_samples(BETTER, **record)}, **results)
    report = build([str(two)], Options())
    found = cells(report)
    assert found["c"].flags == (flag,)
    assert found["c"].rank is None
    assert found["a"].rank == found["b"].rank == Rank(1, 2)
    assert report.units["culturalvqa"].standing.left_out == {"e3": FLAG_TEXT[flag]}
    assert {(test.first, test.second) for test in report.comparisons} == {("e1", "e2")}


@pytest.mark.parametrize("flag", CASES)
def test_the_user_may_insist(two, flag):
    record, results = CASES[flag]
    write_run(two / "c", "c", {"culturalvqa": vqa_samples(BETTER, **record)}, **results)
    report = build([str(two)], Options(compare_anyway=True))
    scores = next(table for table in report.tables if table.key == "scores")
    [row] = [row for row in scores.rows if row.labels == ("c",)]
    assert row.cells[0].rank == report.units["culturalvqa"].cells["e3"].rank == Rank(1, 3)
    assert row.cells[0].flags == (flag,)
    assert len(report.comparisons) == 3
    assert [test.flags for test in report.comparisons if test.second == "e3"] == [(flag,), (flag,)]


def test_two_that_differ_from_the_rest_alike_are_tested(two):
    for model in "cd":
        write_run(two / model, model, {"culturalvqa": vqa_samples(BETTER, data={"data": "d2"})})
    write_vqa(two / "e", "e", SCORES)
    report = build([str(two)], Options())
    assert ("e3", "e4") in {(test.first, test.second) for test in report.comparisons}
    assert cells(report)["c"].flags == ("other_data",)


def test_low_coverage_is_marked(two):
    write_vqa(two / "c", "c", [1.0, None, *SCORES[2:]])
    found = cells(build([str(two)], Options()))
    assert found["c"].coverage == 7 / 8
    assert found["c"].flags == ("low_coverage",)
    assert cells(build([str(two)], Options(min_coverage=0.8)))["c"].flags == ()


@pytest.mark.parametrize("change", [{"delimiters": False}, {"sampling": {"temperature": 1}}, {"backend": "lm_eval"}])
def test_other_ways_of_grading_are_another_judge(two, change):
    write_run(two / "c", "c", {"culturalvqa": vqa_samples(BETTER, judge=JUDGE | change)})
    assert cells(build([str(two)], Options()))["c"].flags == ("other_judge",)


def test_the_same_judge_elsewhere_is_the_same_judge_and_its_address_is_shown(two):
    run = vqa_record(0, 1.0)["runs"][0]
    for model, port in (("c", 8000), ("d", 8001)):
        samples = vqa_samples(BETTER, runs=[run | {"endpoint": f"http://localhost:{port}/v1"}])
        write_run(two / model, model, {"culturalvqa": samples})
    report = build([str(two)], Options())
    assert {label: cell.flags for label, cell in cells(report).items()} == dict.fromkeys("abcd", ())
    runs = next(table for table in report.tables if table.key == "runs")
    assert {row.labels[0]: row.labels[3] for row in runs.rows} == {
        "a": "judge-1",
        "b": "judge-1",
        "c": "judge-1 at http://localhost:8000/v1",
        "d": "judge-1 at http://localhost:8001/v1",
    }


def test_text_overlap_is_another_judge(two):
    overlap = {"judge": JUDGE | {"backend": "lexical", "model": "token_f1"}}
    write_run(two / "c", "c", {"culturalvqa": vqa_samples(SCORES, "lave_lexical", **overlap)})
    assert cells(build([str(two)], Options()))["c"].flags == ("lexical_judge", "other_judge")


def test_a_model_under_other_settings_has_a_row_of_its_own(two):
    judge = {"judge": JUDGE | {"model": "judge-2"}}
    write_run(two / "a", "a", {"culturalvqa": vqa_samples(BETTER, **judge)}, "20260105_000000")
    found = cells(build([str(two)], Options()))
    assert list(found) == ["a", "a [judge: judge-2]", "b"]
    assert found["a"].value == 5 / 8
    assert found["a [judge: judge-2]"].flags == ("other_judge",)


def test_a_judge_that_changed_within_a_file_is_mixed(two):
    samples = vqa_samples(SCORES)
    samples[0]["lave"] = vqa_record(0, 1.0, judge=JUDGE | {"model": "judge-2"})
    write_run(two / "c", "c", {"culturalvqa": samples})
    assert "mixed_settings" in cells(build([str(two)], Options()))["c"].flags


def care_samples(language, rating, count=4):
    return [care_sample(n, rating, language) for n in range(count)]


def test_a_group_without_a_part_is_incomplete(tmp_path):
    whole = {f"care_{language}": care_samples(language, 5.0) for language in ("ar", "ja", "zh")}
    write_run(tmp_path / "a", "a", whole)
    write_run(tmp_path / "b", "b", {"care_zh": care_samples("zh", 9.0)})
    found = cells(build([str(tmp_path)], Options()), "care")
    assert found["a"].value == 5.0
    assert found["b"].flags == ("incomplete",)
    assert found["b"].note == "no interval: every score is 9; without care_ar, care_ja"


def test_without_any_whole_group_its_parts_stand_alone(tmp_path):
    write_run(tmp_path / "b", "b", {"care_zh": care_samples("zh", 9.0)})
    units = build([str(tmp_path)], Options()).units
    assert list(units) == ["care_zh"]
    assert units["care_zh"].headline


def test_nothing_missing_is_hidden(two):
    write_run(two / "a", "a", {"care_zh": care_samples("zh", 9.0)}, "20260105_000000")
    summary = build([str(two)], Options()).tables[0]
    columns = [column.key for column in summary.columns]
    rows = {row.labels[0]: dict(zip(columns, row.cells, strict=True)) for row in summary.rows}
    assert rows["a"]["care_zh"].value == pytest.approx(100 * 8 / 9)
    assert (rows["b"]["care_zh"].value, rows["b"]["care_zh"].note) == (None, "not run")
    assert summary.notes[-1] == "There is no mean: no two models share two of these columns."
