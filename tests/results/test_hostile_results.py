"""Result files that no harness wrote like this, or a later one did: named, and never a traceback."""

import json
import tomllib
from pathlib import Path

import pytest
from support.sample_files import result_data, vqa_samples, write_run

from culture_tasks.report.loaded_runs import Names, load
from culture_tasks.results.run_files import LAYOUTS, read_run

ROOT = Path(__file__).resolve().parents[2]
NASTY = (None, True, -1, 0.5, 10**400, 1e308, "", "text", "9" * 5000, [], [1], {}, {"a": []}, [[]], {"": None})


def with_value(data, path, value):
    """A copy of the data with another value at a path."""
    copy = json.loads(json.dumps(data))
    inner = copy
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    return copy


def paths(data, before=()):
    """Every place in nested objects and lists."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield (*before, key)
        yield from paths(value, (*before, key))


RESULT = result_data(["culturalvqa"], "m", 4) | {
    "results": {"culturalvqa": {"lave,none": 0.5, "lave_stderr,none": 0.1, "lave_coverage,none": 1.0}},
    "n-shot": {"culturalvqa": 1},
    "higher_is_better": {"culturalvqa": {"lave": True}},
    "group_subtasks": {"culturalvqa": []},
    "task_hashes": {"culturalvqa": "a"},
    "chat_template": "x",
    "chat_template_sha": "y",
    "fewshot_as_multiturn": True,
    "system_instruction_sha": "z",
    "total_evaluation_time_seconds": "1.5",
    "date": 1.0,
}


@pytest.mark.parametrize("path", list(paths(RESULT)), ids=".".join)
def test_any_value_of_a_result_file_may_be_nonsense(tmp_path, path):
    file = write_run(tmp_path, "m", {"culturalvqa": vqa_samples([1.0, 0.0, 1.0, 1.0])})
    for value in NASTY:
        text = json.dumps(with_value(RESULT, path, value), default=str)
        file.write_text(text, encoding="utf-8")
        found = load([str(file)], Names())
        assert found.runs or found.problems


SAMPLE = vqa_samples([1.0])[0] | {"input": "asked", "token_counts": [{"input_tokens": 1, "output_tokens": 2}]}


@pytest.mark.parametrize("path", list(paths(SAMPLE)), ids=lambda path: ".".join(map(str, path)))
def test_any_value_of_a_sample_may_be_nonsense(tmp_path, path):
    """A line is used or left out, and the report says so; the good lines stay."""
    good = vqa_samples([1.0, 0.0, 1.0, 1.0])
    for value in NASTY:
        bad = with_value(SAMPLE, path, value)
        file = write_run(tmp_path, "m", {"culturalvqa": [*good[1:], bad]})
        [run] = load([str(file)], Names()).runs
        assert run.columns.items.size + sum("left out" in problem for problem in run.run.problems) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"judge": "gpt-4o"},
        {"judge": ["gpt-4o"]},
        {"judge": {"backend": "openai", "sampling": "hot"}},
        {"outcomes": {"scored": "1"}},
        {"outcomes": {"scored": 10**400}},
        {"runs": [{"response": "x", "outcome": "scored", "tokens": ["1", 1]}]},
        {"runs": [{"response": "x", "outcome": "scored", "tokens": [10**400, 1]}]},
        {"runs": [{"response": 3, "outcome": "scored"}]},
        {"runs": ["scored"]},
        {"runs": "scored"},
        {"score": None},
    ],
)
def test_counts_that_are_none_and_judges_that_are_none_are_named_and_left_out(tmp_path, changes):
    good = vqa_samples([1.0, 0.0, 1.0, 1.0])
    bad = vqa_samples([1.0] * 5)[4]
    bad["lave"] |= changes
    found = load([str(write_run(tmp_path, "m", {"culturalvqa": [*good, bad]}))], Names())
    assert [problem.kind for problem in found.problems] == ["unknown_record"]
    assert found.runs[0].columns.items.size == 4


@pytest.mark.parametrize(
    ("stamp", "changes", "said"),
    [
        ("2026-01-01T00-00-00.5", {"lm_eval_version": "0.5.0"}, "written by lm-eval 0.5.0; the layouts before 0.5 are"),
        ("2026-01-01T00-00-00.5", {"lm_eval_version": "1.0.dev1", "results": []}, "written by lm-eval 1.0.dev1"),
        ("20260101_000000", {"lmms_eval_version": "v0.8.1"}, "written by lmms-eval v0.8.1; the layouts before 0.8 are"),
    ],
)
def test_a_layout_of_a_later_harness_is_refused_by_name(tmp_path, stamp, changes, said):
    problem = read_run(write_run(tmp_path, "m", {"culturalvqa": vqa_samples([1.0])}, stamp, **changes))
    assert problem.kind == "unknown_layout"
    assert said in problem.detail


@pytest.mark.parametrize(
    ("stamp", "changes"),
    [
        ("2026-01-01T00-00-00.5", {"lm_eval_version": "0.4.13"}),
        ("2026-01-01T00-00-00.5", {"lm_eval_version": "0.4.99.dev0"}),
        ("2026-01-01T00-00-00.5", {"lm_eval_version": "No package metadata was found for lm_eval"}),
        ("20260101_000000", {"lmms_eval_version": "main@0123abc"}),
        ("20260101_000000", {"lmms_eval_version": "0.7.3"}),
        ("20260101_000000", {"lmms_eval_version": 9}),
    ],
)
def test_a_layout_that_is_known_or_says_nothing_is_read(tmp_path, stamp, changes):
    run = read_run(write_run(tmp_path, "m", {"culturalvqa": vqa_samples([1.0])}, stamp, **changes))
    assert run.stamp == stamp


def test_the_layouts_that_are_known_are_those_of_the_versions_that_are_installed():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    for harness, layout in LAYOUTS.items():
        below = ".".join(map(str, layout.below))
        assert any(each.startswith(harness.replace("_", "-") + ">") and each.endswith(f"<{below}") for each in needed)
