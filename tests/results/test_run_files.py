"""The files of a run: their names, finding them, reading them, and writing them anew."""

import json
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from culture_tasks.results.finding import UnusedFile, find, parse_name, result_name, samples_name, without_copies
from culture_tasks.results.run_files import GRADED_FROM, LAYOUTS, new_run, read_run, write_result_file, write_samples
from culture_tasks.results.samples import samples_of
from culture_tasks.results.task_results import task_results

ROOT = Path(__file__).resolve().parents[2]
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
    assert parse_name(Path(result_name(harness, stamp))) == (harness, stamp, "")
    assert parse_name(Path(samples_name(harness, task, stamp))) == (harness, stamp, task)
    for name in ("20260131_results.json", "results_2026-01-31T12.jsonl", "x.json"):
        assert parse_name(Path(name)) is None


def test_a_sample_file_names_its_run_and_one_task(tmp_path):
    path = result_file(tmp_path)
    samples = path.with_name(samples_name("lmms_eval", "t", STAMPS["lmms_eval"]))
    samples.write_text("{}\n", encoding="utf-8")
    assert find([samples]) == ((path,), {path: {"t"}}, ())
    assert find([samples, tmp_path]) == ((path,), {}, ())
    path.unlink()
    assert [problem.kind for problem in find([tmp_path]).problems] == ["partial"]


def test_copies_are_named_and_another_name_of_one_file_is_not(tmp_path):
    path = result_file(tmp_path)
    (tmp_path / "copy").mkdir()
    copy = result_file(tmp_path / "copy")
    kept, problems = without_copies([path, tmp_path / "copy" / ".." / path.name, copy])
    assert kept == [path]
    assert problems == [UnusedFile(str(copy), "duplicate", f"a copy of {path}")]


NONSENSE = {
    "config": (3, {"model_args": []}),
    "configs": ([1], {"t": "x"}),
    "results": ({"t": 3}, {"t": {"acc,none": 10**400}}),
    "n-samples": ({"t": {"original": 1, "effective": "9"}}, {"t": {"original": 1, "effective": 10**400}}),
    "group_subtasks": ({"t": 3},),
    "higher_is_better": ({"t": [1]},),
    "date": (10**400,),
    "total_evaluation_time_seconds": ([],),
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, own in NONSENSE.items() for value in own])
def test_nonsense_in_a_result_file_is_named_or_ignored(tmp_path, field, value):
    found = task_results(read_run(result_file(tmp_path, **{field: value})))
    assert [result.task for result in found] == ["t"] if isinstance(found, list) else found.kind == "damaged"


@pytest.mark.parametrize(
    ("text", "seconds"), [("0.5", 0.5), ("0", 0.0), ("-1", None), ("inf", None), ("nan", None), ("soon", None)]
)
def test_seconds_are_a_finite_number_of_0_or_more(tmp_path, text, seconds):
    [found] = task_results(read_run(result_file(tmp_path, total_evaluation_time_seconds=text)))
    assert found.seconds == seconds


def decoding(**settings):
    return {"configs": {"t": {"output_type": "generate_until", "generation_kwargs": settings}}}


TEMPLATE = {"chat_template": "{{ messages }}", "chat_template_sha": "a" * 64}
GREEDY = '{"greedy": true, "max_tokens": 64, "repeats": 1}'
COMMITS = {"hub_commits": {"owner/t": "1" * 40}}
SHOTS = {"n-shot": {"t": 3}, "fewshot_as_multiturn": True}
COUNTS = {"n-samples": {"t": {"original": 9, "effective": 4}}}
SUBSET = {"documents": 4, "of_documents": 9, "items": 9, "spread": 0.0, "seed": 7}
DRAWN = COUNTS | {"configs": {"t": {"metadata": {"subset": SUBSET}}}}


@pytest.mark.parametrize(
    ("harness", "content", "settings"),
    [
        ("lm_eval", {"chat_template": None}, {"chat_template": "none"}),
        ("lmms_eval", {"chat_template": None}, {"chat_template": ""}),  # its models apply their own
        ("lm_eval", {"chat_template": ""}, {"chat_template": "the endpoint's"}),
        ("lm_eval", TEMPLATE, {"chat_template": "a" * 12}),
        ("lm_eval", SHOTS | TEMPLATE, {"prompt": "3 shots, examples as turns"}),
        ("lm_eval", {"system_instruction_sha": "b" * 64}, {"prompt": f"system instruction {'b' * 12}"}),
        ("lm_eval", {"versions": {"t": "1.0"}}, {"task_version": "1"}),
        ("lm_eval", COUNTS, {"limit": 4}),
        ("lm_eval", DRAWN, {"limit": 4, "subset": "4 of 9, seed 7", "seed": 7}),
        ("lm_eval", DRAWN | {"config": {"rejudged_sample": 4}}, {"subset": "4 of 9"}),  # the run was of all nine
        ("lm_eval", decoding(until=["b", "a"]), {"decoding": '{"repeats": 1, "until": ["a", "b"]}'}),
        ("lmms_eval", decoding(until="a"), {"decoding": '{"repeats": 1, "until": ["a"]}'}),
        ("lmms_eval", decoding(max_new_tokens=64, temperature=0, until=[]), {"decoding": GREEDY}),
        (
            "lmms_eval",
            {"configs": {"t": {"metadata": {"option_order": "shuffled:7"}}}},
            {"prompt": "options shuffled:7"},
        ),
        ("lm_eval", {"configs": {"t": {"metadata": COMMITS}}}, {"commits": (("owner/t", "1" * 40),)}),
    ],
)
def test_settings_are_read_alike_from_both_harnesses(tmp_path, harness, content, settings):
    [result] = task_results(read_run(result_file(tmp_path, harness, **content)))
    assert {name: getattr(result.settings, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("harness", "version", "message"),
    [
        ("lm_eval", "0.5.0", "written by lm-eval 0.5.0; the layouts before 0.5 are known"),
        ("lmms_eval", "v0.8.1", "written by lmms-eval v0.8.1; the layouts before 0.8 are known"),
        ("lm_eval", "0.4.99.dev0", ""),
        ("lm_eval", "No package metadata was found for lm_eval", ""),
        ("lmms_eval", "main@0123abc", ""),
    ],
)
def test_a_layout_of_a_later_harness_is_refused_by_name(tmp_path, harness, version, message):
    found = read_run(result_file(tmp_path, harness, **{LAYOUTS[harness][0]: version}))
    assert (found.kind, found.detail[: len(message)]) == ("unknown_layout", message) if message else found.content


def test_the_layouts_that_are_known_are_those_of_the_versions_that_are_installed():
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    for harness, (_, first_unknown) in LAYOUTS.items():
        below = ".".join(map(str, first_unknown))
        assert any(each.startswith(harness.replace("_", "-") + ">") and each.endswith(f"<{below}") for each in needed)


def test_a_grading_comes_from_a_file_of_its_own_folder(tmp_path):
    for name, meant in {"other.json": tmp_path / "other.json", "../other.json": None, "/etc/x": None, 3: None}.items():
        assert read_run(result_file(tmp_path, config={GRADED_FROM: name})).graded_from == meant


def test_any_text_is_written_as_it_was_read_and_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "lines"
    samples = [{"a": "é\ud800\n\u2028"}, {"b": [1, None, 0.5]}]
    write_samples(path, samples)
    assert "é\\ud800" in path.read_text(encoding="utf-8")
    with pytest.raises(TypeError):
        write_samples(path, [{"a": 2}, {"a": object()}])
    assert [sample.content for sample in samples_of(path, None)] == samples
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("harness", STAMPS)
def test_new_runs_stand_beside_the_old_one_and_are_the_newest(tmp_path, harness):
    old = read_run(result_file(tmp_path, harness))
    written = [old.result_file]
    for now in (NOON, NOON, NOON + timedelta(days=3), NOON + timedelta(days=3)):
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


def test_an_address_of_a_model_has_no_user_password_or_query(tmp_path):
    for address in ("https://me:pw@host/v1?key=1", "HTTPS://me:p@w@host/v1#key", "https://host/v1?mail=a@b"):
        config = {"model": "dummy", "model_args": {"pretrained": address}}
        [result] = task_results(read_run(result_file(tmp_path, config=config)))
        assert result.pretrained.lower() == "https://host/v1"
