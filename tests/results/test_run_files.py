"""The files of a run: their names, finding them, reading them, and writing them anew."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from culture_tasks.errors import DataError
from culture_tasks.results.finding import (
    Problem,
    find,
    parse_result_name,
    parse_samples_name,
    result_name,
    samples_name,
    without_copies,
)
from culture_tasks.results.run_files import (
    GRADED_FROM,
    new_run,
    parse_json,
    read_run,
    read_samples,
    sample_lines,
    write_result_file,
    write_samples,
)
from culture_tasks.results.task_results import task_results

STAMPS = {"lm_eval": "2026-01-31T12-30-59.123456", "lmms_eval": "20260131_123059"}
NOON = datetime(2026, 1, 31, 12, 0, 0)


def result_file(folder, harness="lmms_eval", **content):
    path = folder / result_name(harness, STAMPS[harness])
    path.write_text(json.dumps({"results": {"t": {}}} | content), encoding="utf-8")
    return path


@pytest.mark.parametrize("harness", STAMPS)
@pytest.mark.parametrize("task", ["care_zh", "a_results_b", "samples_20260131_123059"])
def test_names_are_read_as_they_are_written(harness, task):
    stamp = STAMPS[harness]
    assert parse_result_name(Path(result_name(harness, stamp))) == (harness, stamp)
    assert parse_samples_name(Path(samples_name(harness, task, stamp))) == (harness, stamp, task)


@pytest.mark.parametrize("name", ["results.json", "20260131_results.json", "results_2026-01-31T12.jsonl", "x.json"])
def test_other_names_say_nothing(name):
    assert parse_result_name(Path(name)) is None
    assert parse_samples_name(Path(name)) is None


def test_a_sample_file_names_its_run_and_one_task(tmp_path):
    path = result_file(tmp_path)
    samples = path.with_name(samples_name("lmms_eval", "t", STAMPS["lmms_eval"]))
    samples.write_text("{}\n", encoding="utf-8")
    assert find([samples]) == ((path,), {path: {"t"}}, ())
    assert find([samples, tmp_path]) == ((path,), {}, ())
    path.unlink()
    [problem] = find([tmp_path]).problems
    assert problem.kind == "partial"


def test_copies_are_named_and_another_name_of_one_file_is_not(tmp_path):
    path = result_file(tmp_path)
    (tmp_path / "copy").mkdir()
    copy = result_file(tmp_path / "copy")
    kept, problems = without_copies([path, tmp_path / "copy" / ".." / path.name, copy])
    assert kept == [path]
    assert problems == [Problem(str(copy), "duplicate", f"a copy of {path}")]


@pytest.mark.parametrize("key", ["config", "configs", "group_subtasks", "higher_is_better"])
def test_a_result_file_of_another_layout_is_damaged(tmp_path, key):
    problem = read_run(result_file(tmp_path, **{key: [1]}))
    assert problem.kind == "damaged"
    assert f"found list as '{key}'" in problem.detail


@pytest.mark.parametrize(
    ("name", "meant"), [("other.json", "other.json"), ("../other.json", None), ("/etc/x", None), (3, None), ("", None)]
)
def test_a_grading_comes_from_a_file_of_its_own_folder(tmp_path, name, meant):
    run = read_run(result_file(tmp_path, config={GRADED_FROM: name}))
    assert run.graded_from == (tmp_path / meant if meant else None)


def test_lines_have_their_numbers_and_offsets(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes('\n{}\n  \n[1]\n"é"'.encode())
    lines = list(sample_lines(path))
    assert [(number, parse_json(line)) for number, _, line in lines] == [(2, {}), (4, [1]), (5, "é")]
    for _, offset, line in lines:
        assert path.read_bytes()[offset:].startswith(line)


@pytest.mark.parametrize(
    ("line", "said"), [(b"{", "line 2: not JSON"), (b"[]", "line 2: found list"), (b"[" * 100_000, "line 2: not JSON")]
)
def test_a_line_that_is_no_sample_is_named(tmp_path, line, said):
    path = tmp_path / "lines"
    path.write_bytes(b"{}\n" + line)
    with pytest.raises(DataError, match=said):
        read_samples(path)


def test_any_text_is_written_as_it_was_read(tmp_path):
    path = tmp_path / "lines"
    samples = [{"a": "é\ud800\n\u2028"}, {"b": [1, None, 0.5]}]
    write_samples(path, samples)
    assert "é\\ud800" in path.read_text(encoding="utf-8")
    assert read_samples(path) == samples


def test_a_file_that_could_not_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "lines"
    write_samples(path, [{"a": 1}])
    with pytest.raises(TypeError):
        write_samples(path, [{"a": 2}, {"a": object()}])
    assert read_samples(path) == [{"a": 1}]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("harness", STAMPS)
@pytest.mark.parametrize("zone", [None, "Pacific/Kiritimati"])
@pytest.mark.parametrize("now", [NOON, NOON + timedelta(days=3)])
def test_new_runs_stand_beside_the_old_one_and_are_the_newest(tmp_path, harness, zone, now):
    old = read_run(result_file(tmp_path, harness, config={"resolved_cli_args": {"timezone": zone}}))
    written = [old.result_file]
    for _ in range(2):
        run = new_run(old, {"results": {"é": {}}}, now)
        write_result_file(run)
        assert read_run(run.result_file) == run
        written.append(run.result_file)
    assert written == sorted(set(written))


def test_a_new_run_has_the_time_zone_of_the_old_one(tmp_path):
    old = read_run(result_file(tmp_path, config={"resolved_cli_args": {"timezone": "Pacific/Kiritimati"}}))
    assert new_run(old, {}, datetime(2026, 3, 1, 12, tzinfo=UTC)).stamp == "20260302_020000"


@pytest.mark.parametrize(
    ("harness", "name", "args", "shown"),
    [
        ("lm_eval", "qdpv68r5", "", "dummy"),
        ("lm_eval", "qdpv68r5", {"base_url": "http://localhost"}, "dummy"),
        ("lm_eval", "llama3v2", "pretrained=llama3v2,dtype=auto", "llama3v2"),
        ("lm_eval", "org/model", "", "org/model"),
        ("lmms_eval", "abcd1234", "", "abcd1234"),
    ],
)
def test_a_name_that_lm_eval_made_up_is_no_model_s_name(tmp_path, harness, name, args, shown):
    config = {"model": "dummy", "model_args": args}
    [result] = task_results(read_run(result_file(tmp_path, harness, model_name=name, config=config)))
    assert result.model == shown
