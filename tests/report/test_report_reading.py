"""What is read of folders full of good and bad files."""

import json

import pytest
from support.another_package import installed
from support.sample_files import (
    judged,
    record,
    vqa_record,
    vqa_samples,
    write_run,
    write_vqa,
)

from culture_tasks.errors import DataError
from culture_tasks.report.building import Options, build

SCORES = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]


def report_of(*paths, **options):
    return build([str(path) for path in paths], Options(**options))


def kinds(report):
    return sorted(problem.kind for problem in report.problems)


def cells(report, unit="culturalvqa"):
    return {report.entrants[key].label: cell for key, cell in report.units[unit].cells.items()}


@pytest.fixture
def good(tmp_path):
    write_vqa(tmp_path / "a", "org/a", SCORES)
    return tmp_path


def test_folders_files_and_patterns_name_the_same_runs(good):
    file = good / "a" / "20260101_000000_results.json"
    for named in (good, file, good / "**" / "*_results.json", good / "a" / "20260101_000000_samples_culturalvqa.jsonl"):
        assert cells(report_of(named))["org/a"].value == 5 / 8


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("20260102_000000_results.json", "", "empty"),
        ("20260102_000000_results.json", '{"results": {"x"', "damaged"),
        ("20260102_000000_results.json", "[1, 2]", "foreign"),
        ("20260102_000000_results.json", '{"results": {}}', "empty"),
        ("20260102_000000_results.json", '{"results": {"x": {}}, "config": 3}', "damaged"),
        ("20260102_000000_results.json", "\x00\x01", "damaged"),
        ("wandb.json", "{}", "foreign"),
        ("20260102_000000_samples_care_ar.jsonl", "{}\n", "partial"),
    ],
)
def test_bad_files_are_named_and_skipped(good, name, content, kind):
    (good / "a" / name).write_text(content, encoding="utf-8")
    report = report_of(good)
    assert kinds(report) == [kind]
    assert name in report.problems[0].path
    assert cells(report)["org/a"].value == 5 / 8


def lines_with(*bad):
    return [json.dumps(sample) for sample in vqa_samples(SCORES)] + list(bad)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"doc_id": 9, "lave": {"record": 2, "bench', "damaged"),
        ("[]", "damaged"),
        ('{"doc_id": 9}', "foreign"),
        ('{"predictions_for_submission": {"id": "q9", "pred": "x"}}', "foreign"),
        (json.dumps({"lave": vqa_record(9, 1.0, record=1)}), "unknown_record"),
        (json.dumps({"lave": vqa_record(9, 1.0, benchmark="care")}), "unknown_record"),
        (json.dumps({"lave": vqa_record(9, 1.0, scale=None)}), "unknown_record"),
        (json.dumps({"lave": vqa_record(9, 1.0, runs=["x", 3])}), "unknown_record"),
        (json.dumps({"lave": vqa_record(0, 0.0)}), "duplicate"),
        (json.dumps({"lave": vqa_record(9, 7.0)}), "damaged"),
        (json.dumps({"lave": vqa_record(9, 1.0), "token_counts": [{"input_tokens": "x"}]}), "unknown_record"),
        (json.dumps({"lave": vqa_record(9, 1.0, scale=vqa_record(9, 1.0)["scale"] | {"high": 2.0})}), "unknown_record"),
    ],
)
def test_bad_lines_are_counted_and_left_out(good, line, kind):
    file = good / "a" / "20260101_000000_samples_culturalvqa.jsonl"
    file.write_text("\n".join(lines_with(line)) + "\n\n", encoding="utf-8")
    report = report_of(good)
    assert kinds(report) == [kind]
    assert report.problems[0].lines == 1
    assert "(9)" in report.problems[0].detail
    assert cells(report)["org/a"].value == 5 / 8


def test_a_sample_says_what_is_doubtful_of_its_verdict(tmp_path):
    samples = vqa_samples(SCORES)
    run = samples[0]["lave"]["runs"][0]
    samples[0]["lave"]["runs"] = [run | {"asked_again": True, "response": "\ud800 half"}]
    samples[1]["lave"]["runs"] = [run | {"rating": 1.0}, run | {"rating": 2.0}]
    samples[2]["lave"]["runs"] = [run | {"outcome": "refused"}]
    del samples[3]["lave"]["judge"]
    samples[3]["lave"]["runs"] = [run | {"outcome": "unparsable"}]
    write_run(tmp_path, "org/a", {"culturalvqa": samples})
    found = list(report_of(tmp_path).samples.read("r1"))
    assert found[0].response == "\ud800 half"
    assert [each.doubt for each in found[:4]] == [
        "the judge was reminded of the format",
        "ratings from 1 to 2 over 2 responses",
        "no verdict: refused",
        "",
    ]


def test_a_cut_off_sample_file_is_incomplete(tmp_path):
    write_vqa(tmp_path, "org/a", SCORES, **{"n-samples": {"culturalvqa": {"original": 20, "effective": 20}}})
    [cell] = cells(report_of(tmp_path)).values()
    assert cell.flags == ("incomplete",)
    assert cell.rank is None


def test_without_samples_the_harness_number_counts(tmp_path):
    path = write_run(tmp_path, "org/a", {}, results={"culturalvqa": {"lave,none": 0.5, "lave_stderr,none": 0.1}})
    report = report_of(path)
    [cell] = cells(report).values()
    assert "from_result_file" in cell.flags
    assert cell.value == 0.5
    assert cell.low == pytest.approx(0.5 - 1.959964 * 0.1)
    assert kinds(report) == ["missing"]


def test_nothing_that_can_be_used_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        report_of(tmp_path / "nowhere")
    with pytest.raises(DataError, match="holds no JSON file"):
        report_of(tmp_path)


def test_other_tasks_are_plain_columns(good):
    write_run(
        good / "b",
        "org/a",
        {},
        "20260103_000000",
        results={
            "arab_culture": {"acc,none": 0.25, "acc_stderr,none": 0.05, "alias": "x"},
            "odd": {"points,none": 417.0},
            "nothing": {"submission,none": None},
        },
    )
    report = report_of(good)
    assert cells(report, "arab_culture")["org/a"].value == 0.25
    assert report.units["arab_culture"].scale.unit == "share"
    assert report.units["odd"].scale.high is None
    assert "nothing" not in report.units
    summary = report.tables[0]
    assert [column.key for column in summary.columns] == ["culturalvqa", "arab_culture", "odd"]
    assert [column.label for column in summary.columns] == ["culturalvqa (0-1)", "arab_culture (0-1)", "odd"]


def test_groups_of_the_harness_stand_for_their_parts(tmp_path):
    results = {"arabic": {"acc,none": 0.5}, "arabic_a": {"acc,none": 0.4}, "arabic_b": {"acc,none": 0.6}}
    write_run(tmp_path, "m", {}, results=results, group_subtasks={"arabic": ["arabic_a", "arabic_b"]})
    units = report_of(tmp_path).units
    assert [key for key, unit in units.items() if unit.headline] == ["arabic"]


def test_a_task_of_ones_own_is_found_by_its_records(tmp_path):
    write_run(tmp_path, "m", {"my_variant": vqa_samples(SCORES)})
    assert cells(report_of(tmp_path), "my_variant")["m"].value == 5 / 8


def elsewhere(number, score, **changes):
    """A sample of a benchmark whose package isn't installed here."""
    scale = {"unit": "points", "low": 0.0, "high": 5.0, "better": "higher", "neutral": None, "digits": 1, "times": 1.0}
    own = vqa_record(number, score) | {"benchmark": "elsewhere", "metric": "points", "scale": scale}
    return {"points": own | {"groups": {"region": ("coast", "hills")[number % 2]}} | changes}


def test_of_a_package_that_is_not_here_the_result_file_s_number_stands(tmp_path):
    for folder, model, value in (("a", "m", 1.5), ("b", "other", 4.0)):
        samples = [elsewhere(n, float(n % 5)) for n in range(10)]
        results = {"elsewhere_hard": {"points,none": value, "points_stderr,none": 0.5}}
        write_run(tmp_path / folder, model, {"elsewhere_hard": samples}, results=results)
    report = report_of(tmp_path)
    unit = report.units["elsewhere_hard"]
    assert (unit.benchmark, unit.metric, unit.scale.unit, unit.scale.high) == ("elsewhere", "points", "points", 5.0)
    found = {label: (cell.value, cell.flags) for label, cell in cells(report, "elsewhere_hard").items()}
    assert found == {"m": (1.5, ("from_result_file",)), "other": (4.0, ("from_result_file",))}
    assert not report.groups
    assert not report.comparisons
    assert kinds(report) == ["foreign", "foreign"]
    assert "no installed package defines points of elsewhere" in report.problems[0].detail
    assert report.tables[0].columns[0].key == "elsewhere_hard"


def test_a_field_that_names_items_is_no_split(tmp_path):
    with installed(tmp_path / "site"):  # a benchmark that says nothing of its report
        groups = [{"id": f"i{n}", "region": "north"} for n in range(150)]
        records = [record("proverbs", "proverbs_north", "ending", f"q{n}", own) for n, own in enumerate(groups)]
        write_run(tmp_path / "run", "m", {"proverbs_north": [{"ending": own | judged(1.0)} for own in records]})
        assert {each.dimension for each in report_of(tmp_path / "run").groups} == {"region"}


def test_the_newest_run_counts(good):
    write_vqa(good / "a", "org/a", [1.0] * 8, "20260105_000000")
    report = report_of(good)
    assert {label: cell.value for label, cell in cells(report).items()} == {"org/a": 1.0}
    assert kinds(report) == ["superseded"]
    every = cells(report_of(good, all_runs=True))
    assert [cell.value for cell in every.values()] == [1.0, 5 / 8]
    assert list(every)[1].startswith("org/a [run of 2026-01-01")


def test_a_grading_takes_the_place_of_a_run_without_a_judge(tmp_path):
    nobody = {"judge": {"backend": "none", "model": "none"}, "outcomes": {"unjudged": 1}}
    samples = [{"lave": vqa_record(n, None, **nobody)} for n in range(4)]
    write_run(tmp_path, "m", {"culturalvqa": samples})
    config = {"model": "x", "model_args": "", "rejudged_from": "20260101_000000_results.json"}
    write_run(tmp_path, "m", {"culturalvqa": vqa_samples(SCORES[:4])}, "20251231_000000", config=config)
    report = report_of(tmp_path)
    assert {label: cell.value for label, cell in cells(report).items()} == {"m": 0.75}


def test_responses_without_a_judge_have_no_score(tmp_path):
    samples = [{"lave": vqa_record(n, None, outcomes={"unjudged": 1})} for n in range(4)]
    write_run(tmp_path, "m", {"culturalvqa": samples})
    [cell] = cells(report_of(tmp_path)).values()
    assert cell.value is None
    assert "unjudged" in cell.flags


def test_names_are_the_users(tmp_path):
    write_vqa(tmp_path / "a", "/data/ckpt/step-300", SCORES)
    write_vqa(tmp_path / "b", "org/b", SCORES)
    found = cells(report_of(tmp_path, names=("*/step-300=ours", "org/*=theirs")))
    assert list(found) == ["ours", "theirs"]
    assert "step-300" in cells(report_of(tmp_path))


def test_two_models_of_one_name_are_kept_apart(tmp_path):
    write_vqa(tmp_path / "a", "/one/model", SCORES)
    write_vqa(tmp_path / "b", "/two/model", [0.0] * 8)
    found = cells(report_of(tmp_path))
    assert len(found) == 2
    assert any("model: /" in label for label in found)
