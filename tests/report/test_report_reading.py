"""What is read of folders full of good and bad files."""

import json
from pathlib import Path

import pytest
from support.another_package import installed
from support.reports import cells_of, report_of
from support.sample_files import (
    judged,
    record,
    rewrite,
    vqa_record,
    vqa_samples,
    write_run,
    write_vqa,
)

from culture_tasks.results.finding import find

SCORES = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
RESULTS, SAMPLES = "20260101_000000_results.json", "20260101_000000_samples_culturalvqa.jsonl"


def kinds(report):
    return sorted(problem.kind for problem in report.problems)


def values(report, unit="culturalvqa"):
    return {label: cell.value for label, cell in cells_of(report, unit).items()}


@pytest.fixture
def good(tmp_path):
    write_vqa(tmp_path / "a", "org/a", SCORES)
    return tmp_path


def test_folders_files_and_patterns_name_the_same_runs(good):
    for named in (good, good / "a" / RESULTS, good / "**" / "*_results.json", good / "a" / SAMPLES):
        assert values(report_of(named)) == {"org/a": 5 / 8}


def test_bad_files_are_named_and_skipped(good):
    bad = {
        "20260102_000000_results.json": ("", "empty"),
        "20260103_000000_results.json": ('{"results": {"x"', "damaged"),
        "20260104_000000_results.json": ("[1, 2]", "foreign"),
        "20260105_000000_results.json": ('{"results": {}}', "empty"),
        "20260106_000000_results.json": ('{"results": {"x": {}}, "config": 3}', "damaged"),
        "wandb.json": ("{}", "foreign"),
        "20260107_000000_samples_care_ar.jsonl": ("{}\n", "partial"),
    }
    for name, (content, _) in bad.items():
        (good / "a" / name).write_text(content, encoding="utf-8")
    report = report_of(good)
    assert {Path(one.path).name: one.kind for one in report.problems} == {name: kind for name, (_, kind) in bad.items()}
    assert values(report) == {"org/a": 5 / 8}


def test_files_of_other_names_are_one_problem(tmp_path):
    for name, said in (
        ("a", str(tmp_path / "a.json")),
        ("b", "2 files (a.json, b.json)"),
        ("c", "3 files (a.json, b.json, c.json)"),
        ("d", "4 files (a.json, b.json, c.json, …)"),
    ):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
        assert [problem.path for problem in find([tmp_path]).problems] == [said]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"doc_id": 9, "lave": {"record": 2, "bench', "damaged"),
        ("[]", "damaged"),
        ('{"doc_id": 9}', "foreign"),
        ('{"predictions_for_submission": {"id": "q9", "pred": "x"}}', "foreign"),
        (vqa_record(9, 1.0, record=1), "unknown_record"),
        (vqa_record(9, 1.0, benchmark="care"), "unknown_record"),
        (vqa_record(9, 1.0, runs=["x", 3]), "unknown_record"),
        (vqa_record(9, 1.0, outcomes={"scored": 10**400}), "unknown_record"),
        (vqa_record(9, 1.0, groups={"country": {}}), "unknown_record"),
        (vqa_record(9, 1.0, prompt_sha256=7), "unknown_record"),
        (vqa_record(0, 0.0), "duplicate"),
        (vqa_record(9, 7.0), "damaged"),
        (json.dumps({"record": vqa_record(9, 1.0), "token_counts": [{"input_tokens": "x"}]}), "unknown_record"),
        (vqa_record(9, 1.0, scale=vqa_record(9, 1.0)["scale"] | {"high": 2.0}), "unknown_record"),
    ],
)
def test_bad_lines_are_counted_and_left_out(good, line, kind):
    lines = [*map(json.dumps, vqa_samples(SCORES)), line if isinstance(line, str) else json.dumps({"record": line})]
    (good / "a" / SAMPLES).write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    rewrite(good / "a" / RESULTS, **{"n-samples": {"culturalvqa": {"effective": len(lines)}}})
    report = report_of(good)
    assert kinds(report) == [kind]
    assert report.problems[0].lines == 1
    assert "(9)" in report.problems[0].detail
    assert values(report) == {"org/a": 5 / 8}


def test_a_sample_says_what_is_doubtful_of_its_verdict(tmp_path):
    samples = vqa_samples(SCORES)
    run = samples[0]["record"]["runs"][0]
    samples[0]["record"]["runs"] = [run | {"asked_again": True, "response": "\ud800 half"}]
    samples[1]["record"]["runs"] = [run | {"rating": 1.0}, run | {"rating": 2.0}]
    samples[2]["record"]["runs"] = [run | {"outcome": "refused"}]
    del samples[3]["record"]["judge"]
    samples[3]["record"]["runs"] = [run | {"outcome": "unparsable"}]
    write_run(tmp_path, "org/a", {"culturalvqa": samples})
    found = list(report_of(tmp_path).samples.read("r1"))
    assert found[0].response == "\ud800 half"
    assert [each.doubt for each in found[:4]] == [
        "the judge was reminded of the format",
        "ratings from 1 to 2 over 2 responses",
        "no verdict: refused",
        "",
    ]


# Tasks and groups of the harness, and of packages that aren't here


def test_groups_of_the_harness_stand_in_place_of_their_parts_and_own_tasks_are_found_by_their_records(tmp_path):
    results = {"arabic": {"acc,none": 0.5}, "arabic_a": {"acc,none": 0.4}, "arabic_b": {"acc,none": 0.6}}
    write_run(tmp_path / "a", "m", {}, results=results, group_subtasks={"arabic": ["arabic_a", "arabic_b"]})
    write_run(tmp_path / "b", "m", {"my_variant": vqa_samples(SCORES)})
    report = report_of(tmp_path)
    assert sorted(key for key, unit in report.units.items() if unit.headline) == ["arabic", "my_variant"]
    assert values(report, "my_variant") == {"m": 5 / 8}


def elsewhere(number, score):
    """A sample of a benchmark whose package isn't installed here."""
    scale = {"unit": "points", "low": 0.0, "high": 5.0, "better": "higher", "neutral": None, "digits": 1, "times": 1.0}
    own = vqa_record(number, score) | {"benchmark": "elsewhere", "metric": "points", "scale": scale}
    return {"points": own | {"groups": {"region": ("coast", "hills")[number % 2]}}}


def test_of_a_package_that_is_not_here_the_result_file_s_number_counts(tmp_path):
    samples = [elsewhere(n, float(n % 5)) for n in range(10)]
    for model, value in (("m", 1.5), ("other", 4.0)):
        results = {"elsewhere_hard": {"points,none": value, "points_stderr,none": 0.5}}
        write_run(tmp_path / model, model, {"elsewhere_hard": samples}, results=results)
    report = report_of(tmp_path)
    unit = report.units["elsewhere_hard"]
    assert (unit.benchmark, unit.metric, unit.scale.unit, unit.scale.high) == ("elsewhere", "points", "points", 5.0)
    assert values(report, "elsewhere_hard") == {"m": 1.5, "other": 4.0}
    assert {cell.flags for cell in unit.cells.values()} == {("from_result_file",)}
    assert not [*report.groups, *report.comparisons]
    assert kinds(report) == ["foreign", "foreign"]
    assert "nor a culture of CULTURE_TASKS_CULTURES defines points of elsewhere" in report.problems[0].detail
    assert report.tables[0].columns[0].key == "elsewhere_hard"


def test_a_field_that_names_items_is_no_split(tmp_path):
    with installed(tmp_path / "site"):  # a benchmark that says nothing of its report
        groups = [{"id": f"i{n}", "region": "north"} for n in range(150)]
        records = [record("proverbs", "proverbs_north", "ending", f"q{n}", own) for n, own in enumerate(groups)]
        write_run(tmp_path / "run", "m", {"proverbs_north": [{"ending": own | judged(1.0)} for own in records]})
        assert {each.dimension for each in report_of(tmp_path / "run").groups} == {"region"}


# Which of several runs counts, and under which name


def test_the_newest_run_counts(good):
    write_vqa(good / "a", "org/a", [1.0] * 8, "20260105_000000")
    report = report_of(good)
    assert (values(report), kinds(report)) == ({"org/a": 1.0}, ["superseded"])
    every = values(report_of(good, all_runs=True))
    assert list(every.values()) == [1.0, 5 / 8]
    assert list(every)[1].startswith("org/a [run of 2026-01-01")


def test_responses_without_a_judge_have_no_score_until_they_are_graded(tmp_path):
    nobody = {"judge": {"backend": "none", "model": "none"}, "outcomes": {"unjudged": 1}}
    write_run(tmp_path, "m", {"culturalvqa": [{"record": vqa_record(n, None, **nobody)} for n in range(4)]})
    [cell] = cells_of(report_of(tmp_path)).values()
    assert cell.value is None
    assert "unjudged" in cell.flags
    config = {"model": "x", "model_args": "", "rejudged_from": RESULTS}
    write_run(tmp_path, "m", {"culturalvqa": vqa_samples(SCORES[:4])}, "20251231_000000", config=config)
    assert values(report_of(tmp_path)) == {"m": 0.75}


def test_names_are_the_users_and_two_models_of_one_name_are_kept_apart(tmp_path):
    write_vqa(tmp_path / "a", "/data/ckpt/step-300", SCORES)
    write_vqa(tmp_path / "b", "org/b", SCORES)
    assert list(values(report_of(tmp_path, names=("*/step-300=ours", "org/*=theirs")))) == ["ours", "theirs"]
    assert "step-300" in values(report_of(tmp_path))
    write_vqa(tmp_path / "a", "/two/step-300", [0.0] * 8, "20260105_000000")
    found = values(report_of(tmp_path))
    assert len(found) == 3
    assert any("model: /" in label for label in found)
