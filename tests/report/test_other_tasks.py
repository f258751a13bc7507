"""The culture tasks that the harnesses have already: which metric counts, which end is better, on which scale."""

import re

import pytest
from support.reports import report_of
from support.sample_files import write_run

from culture_tasks.cli.main import main
from culture_tasks.report.numbers.other_tasks import known_task

SHARE, PERCENT, UNKNOWN = ("share", 0, 1), ("percent", 0, 100), ("unknown", None, None)


@pytest.mark.parametrize(
    ("task", "metrics", "metric", "unit_and_ends", "better"),
    [
        # The metric that counts, and not the first.
        ("crows_pairs_english", {"x": 3.5, "pct_stereotype": 0.6}, "pct_stereotype", SHARE, "lower"),
        # A value that a scale doesn't have is shown without one.
        ("crows_pairs_french", {"pct_stereotype": 60.0}, "pct_stereotype", UNKNOWN, "lower"),
        ("mmlu_prox_sw", {"exact_match,a": 0.25}, "exact_match,a", SHARE, "higher"),
        ("kaleidoscope", {"kaleidoscope_format_error": 1}, "kaleidoscope_format_error", PERCENT, "lower"),
        # The range of a task's own metric is not guessed from its value.
        ("my_group", {"my_acc": 0.9}, "my_acc", UNKNOWN, "higher"),
        ("my_group", {"acc": 0.5}, "acc", SHARE, "higher"),
    ],
)
def test_metric_and_scale_are_those_of_the_task(tmp_path, task, metrics, metric, unit_and_ends, better):
    own = {name if "," in name else f"{name},none": value for name, value in metrics.items()}
    write_run(tmp_path, "m", {}, results={task: own})
    unit = report_of(tmp_path).units[task]
    assert (unit.metric, unit.scale.better) == (metric, better)
    assert (unit.scale.unit, unit.scale.low, unit.scale.high) == unit_and_ends


@pytest.mark.parametrize(
    ("task", "paper"),
    [
        ("include_base_44_albanian_few_shot_og", "arXiv 2411.19799"),
        ("AraDiCE_qatar_cultural", "arXiv 2409.11404"),
        ("jmmmu_pro_vision", "JMMMU-Pro"),
        ("jmmmu_japanese_art", "arXiv 2410.17250"),
        *((name, None) for name in ("clicker", "WISER", "AraDiCE_boolq_eng", "mmlu_pro")),  # they only begin alike
    ],
)
def test_names_are_told_by_patterns(task, paper):
    assert getattr(known_task(task), "paper", None) == paper


# What is said of these tasks

LM_EVAL = "2026-01-01T00-00-00.5"


def write(folder, model, results, **changes):
    """A run of lm-eval with these results by task."""
    tasks = {task: {f"{name},none": value for name, value in own.items()} for task, own in results.items()}
    return write_run(folder / model, model, {}, LM_EVAL, results=tasks, date=1.0, **changes)


def test_a_task_of_a_harness_has_its_number_alone_and_passes_a_gate_by_saying_so(tmp_path, capsys):
    for model, value in (("a", 0.75), ("b", 0.25)):
        write(tmp_path, model, {"arc": {"acc": value}})
    report = report_of(tmp_path)
    reason = "the harnesses' own tasks aren't tested"
    assert [cell.value for cell in report.units["arc"].cells.values()] == [0.75, 0.25]
    assert (report.comparisons, set(report.units["arc"].standing.left_out.values())) == ((), {reason})
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert f"not compared: arc: {reason}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "ours", "theirs", "same"),
    [
        ("filter_list", [{"name": "none", "filter": [{"function": "regex"}]}], None, False),
        ("filter_list", [{"name": "none"}], [{"name": "none", "filter": []}], False),
        ("metric_list", [{"metric": "acc", "ignore_case": True}], [{"metric": "acc"}], False),
        ("process_results", "<function f at 0x7f01>", "<function f at 0x7f02>", True),
        ("process_results", "def f(x):\n  return 1", "def f(x):\n    return 1", True),
    ],
)
def test_a_task_with_another_definition_is_another_task(tmp_path, key, ours, theirs, same):
    """Ten identical replies, of which another filter reads none in A and all in B."""
    for model, score, value in (("a", 0.0, ours), ("b", 1.0, theirs)):
        config = {"output_type": "generate_until"} | ({key: value} if value else {})
        write(tmp_path, model, {"arc": {"acc": score}}, configs={"arc": config})
    flags = {flag for cell in report_of(tmp_path).units["arc"].cells.values() for flag in cell.flags}
    assert ("other_settings" not in flags) == same


@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 0.722, 1.0), (0.0, 0.0, 0.278), (0.5, None, None)])
def test_a_standard_error_of_0_is_no_certainty(tmp_path, value, low, high):
    counts = {"n-samples": {"arc": {"original": 10, "effective": 10}}}
    write(tmp_path, "a", {"arc": {"acc": value, "acc_stderr": 0.0}}, **counts)
    [cell] = report_of(tmp_path).units["arc"].cells.values()
    assert (cell.low, cell.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


def test_a_report_of_the_harnesses_tasks_alone_claims_nothing_about_judges(tmp_path):
    for model in "ab":
        write(tmp_path, model, {task: {"acc": 0.75} for task in ("arc", "mmlu", "piqa", "copa")})
    report = report_of(tmp_path)
    assert not re.search("graded|judge", " ".join(finding.text for finding in report.findings))
    assert report.units["arc"].cells["e1"].n == 0


def test_a_group_whose_metrics_are_of_some_of_its_tasks_is_shown_by_its_tasks(tmp_path):
    results = {
        "leaderboard": {"acc_norm,none": 0.4, "acc,none": 0.3, "exact_match,none": 0.1},
        "bbh": {"acc_norm,none": 0.4},
        "pro": {"acc,none": 0.3},
        "math": {"exact_match,none": 0.1},
    }
    groups = {"leaderboard": ["bbh", "pro", "math"]} | {task: [] for task in ("bbh", "pro", "math")}
    write_run(tmp_path, "m", {}, LM_EVAL, results=results, group_subtasks=groups)
    assert [key for key, unit in report_of(tmp_path).units.items() if unit.headline] == ["bbh", "pro", "math"]
