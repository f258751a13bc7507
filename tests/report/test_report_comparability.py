"""What can't be compared is marked, and neither ranked nor tested."""

import shutil
from pathlib import Path

import pytest
from support.reports import cells_of, flags_of, report_of, row_of, tables_of
from support.sample_files import JUDGE, care_sample, care_samples, vqa_record, vqa_samples, write_run, write_vqa

from culture_tasks import frames
from culture_tasks.cli.main import main
from culture_tasks.report.formats import write_report
from culture_tasks.report.model import FLAG_TEXT, Rank
from culture_tasks.results.comparability import differences, variation
from culture_tasks.results.runs import PromptHash, Run, RunJudge, RunSettings

SCORES = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
BETTER = [1.0] * 8
OTHER_JUDGE = JUDGE | {"model": "judge-2"}
SAMPLED = {"max_new_tokens": 64, "temperature": 0.7, "do_sample": True}
DECODING = {"culturalvqa": {"output_type": "generate_until", "generation_kwargs": SAMPLED}}

CASES = {  # changes of each record and of the result file, and the flag
    "judge": ({"judge": OTHER_JUDGE}, {}, "other_judge"),
    "judge's prompt": ({"judge": JUDGE | {"prompt_sha256": "b" * 64}}, {}, "other_judge"),
    "data": ({"data": {"data": "d2"}}, {}, "other_data"),
    "version": ({}, {"versions": {"culturalvqa": 2.0}}, "other_settings"),
    "prompt": ({}, {"n-shot": {"culturalvqa": 3}}, "other_settings"),
    "decoding": ({}, {"configs": DECODING}, "other_settings"),
    "limit": ({}, {"n-samples": {"culturalvqa": {"original": 20, "effective": 8}}}, "other_data"),
}


@pytest.fixture
def two(tmp_path):
    """Two models under the same settings."""
    write_vqa(tmp_path / "a", "a", SCORES)
    write_vqa(tmp_path / "b", "b", SCORES)
    return tmp_path


def pairs_of(report):
    return {(test.first, test.second) for test in report.comparisons}


@pytest.mark.parametrize("case", CASES)
def test_every_difference_is_marked_and_the_user_may_insist(two, case):
    record, results, flag = CASES[case]
    write_run(two / "c", "c", {"culturalvqa": vqa_samples(BETTER, **record)}, **results)
    report = report_of(two)
    found = cells_of(report)
    flags = ("limited", flag) if case == "limit" else (flag,)
    assert (found["c"].flags, found["c"].rank) == (flags, None)
    assert found["a"].rank == found["b"].rank == Rank(1, 2)
    assert report.units["culturalvqa"].standing.left_out == {"e3": FLAG_TEXT[flag]}
    assert pairs_of(report) == {("e1", "e2")}
    report = report_of(two, compare_anyway=True)
    cell = row_of(tables_of(report)["summary"], "c")["culturalvqa"]
    assert (cell.flags, cell.rank, report.units["culturalvqa"].cells["e3"].rank) == (flags, Rank(1, 3), Rank(1, 3))
    assert len(report.comparisons) == 3
    assert [test.flags for test in report.comparisons if test.second == "e3"] == [(flag,), (flag,)]


LIMITS = {  # changes of the result files of three tasks with four samples each, and what stands behind their mean
    "limit": ([42, 42, 10], {"limit": 4}, "first 12 of 94 items"),
    "offset": ([42, 42, 10], {"limit": 4, "offset": 2}, "12 of 94 items"),
    "samples": ([42, 4, 4], {"limit": None}, "12 of 50 items"),
    "limit above": ([4, 4, 4], {"limit": 9}, ""),
}


@pytest.mark.parametrize("case", LIMITS)
def test_a_score_of_a_part_of_the_items_says_so_everywhere(case, tmp_path, capsys):
    sizes, config, words = LIMITS[case]
    languages = dict(zip(("ar", "ja", "zh"), sizes, strict=True))
    counts = {f"care_{language}": {"original": size, "effective": 4} for language, size in languages.items()}
    samples = {f"care_{language}": care_samples([5.0, 7.0, 6.0, 8.0], language) for language in languages}
    for model in "ab":
        write_run(tmp_path / model, model, samples, **{"config": config | {"model": model}, "n-samples": counts})
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "out"), "--formats", "markdown,html,latex"]) == 0
    assert ("Missing: a part of the items of 2 of 2 scores" in capsys.readouterr().out) == bool(words)
    for name, behind in (
        ("report.md", f"({words})"),
        ("report.html", f">{words}<"),
        ("latex/summary.tex", f"({words})"),
    ):
        assert behind in (tmp_path / "out" / name).read_text(encoding="utf-8") or not words
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert (f"CARE: A: {words}; B: {words}" in capsys.readouterr().out) == bool(words)
    scores = frames.scores([str(tmp_path / "a")])
    assert set(scores[scores.dimension == ""].remarks) == {words}
    assert {"limited" in marks.split() for marks in scores.marks} == {bool(words)}


def test_failed_responses_and_unknown_marks_stand_behind_the_score(tmp_path):
    samples = vqa_samples([1.0] * 6 + [0.0] * 4)
    for number, sample in enumerate(samples):
        failed = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] 500"
        sample["record"]["runs"][0]["response"] = failed if number == 0 else f"<ponder>{number}"
    write_run(tmp_path, "a", {"culturalvqa": samples})
    [cell] = report_of(tmp_path).units["culturalvqa"].cells.values()
    assert cell.remarks == ("1 response failed", "many responses begin with '<ponder>', which is no known mark")


def test_what_is_unknown_is_no_other_judge_and_no_other_data(two):
    """Without samples nothing says who judged and what was read."""
    unknown = {"results": {"culturalvqa": {"lave,none": 0.5}}}
    write_run(two / "c", "c", {"culturalvqa": []}, **unknown)
    report = report_of(two)
    assert set(cells_of(report)["c"].flags) == {"from_result_file", "unknown_settings"}
    assert report.units["culturalvqa"].standing.left_out == {"e3": "its judge, prompts and data aren't known"}
    assert pairs_of(report) == {("e1", "e2")}
    write_run(two / "again", "a", {"culturalvqa": []}, "20260105_000000", **unknown)
    assert list(flags_of(two)) == ["a", "a [without samples]", "b", "c"]


def test_the_same_judge_or_model_elsewhere_is_the_same_and_no_address_is_shown(two, tmp_path):
    run = vqa_record(0, 1.0)["runs"][0]
    address = "base_url=http://10.0.0.7:{}/v1"
    for model, port in (("c", 8000), ("d", 8001)):
        samples = vqa_samples(BETTER, runs=[run | {"endpoint": f"http://10.0.0.7:{port}/v1"}])
        arguments = f"model={model},{address.format(port)},somewhere=https://inner.example/x,dtype=float16"
        write_run(two / model, model, {"culturalvqa": samples}, config={"model": "x", "model_args": arguments})
    config = {"model": "x", "model_args": f"model=c,{address.format(8002)},dtype=float16"}
    write_run(two / "again", "c", {"culturalvqa": vqa_samples(SCORES)}, "20251231_000000", config=config)
    report = report_of(two)
    assert {label: cell.flags for label, cell in cells_of(report).items()} == dict.fromkeys("abcd", ())
    assert [run.model_args for run in report.runs.values()] == ["", "", "dtype=float16", "dtype=float16"]
    write_report(report, tmp_path / "out", ("markdown", "csv", "json"))
    texts = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*.*"))
    assert not any(secret in texts for secret in ("10.0.0.7", "inner.example"))


def prompted(prompt="prompt"):
    """Samples with the prompts as lmms-eval logs them."""
    return {"culturalvqa": [one | {"input": f"{prompt} {at}"} for at, one in enumerate(vqa_samples(SCORES))]}


def test_other_texts_of_the_prompts_are_another_prompt_and_no_newer_run_of_the_same(tmp_path):
    for model, prompt in (("a", "prompt"), ("b", "prompt"), ("c", "Prompt:")):
        write_run(tmp_path / model, model, prompted(prompt))
    assert flags_of(tmp_path) == {"a": (), "b": (), "c": ("other_settings",)}
    write_run(tmp_path / "a", "a", prompted("x"), "20260105_000000")
    first, second, *_ = flags_of(tmp_path)
    assert (first, second.startswith("a [prompts: ")) == ("a", True)


def test_texts_of_the_prompts_follow_from_shots_and_from_the_part_of_the_items(tmp_path):
    part = {"n-samples": {"culturalvqa": {"original": 20, "effective": 8}}}
    for model, prompt in (("a", "prompt"), ("b", "prompt"), ("c", "other items")):
        write_run(tmp_path / "parts" / model, model, prompted(prompt), **part)
    assert flags_of(tmp_path / "parts") == {"a": ("limited",), "b": ("limited",), "c": ("limited", "other_data")}
    for at, shots in enumerate((0, 5)):
        more = {"n-shot": {"culturalvqa": shots}}
        write_run(tmp_path / "shots" / str(at), "a", prompted(f"{shots} examples"), f"2026010{at + 1}_000000", **more)
    assert list(flags_of(tmp_path / "shots")) == ["a", "a [prompt: plain]"]


LM_EVAL = "2026-01-01T00-00-00.5"


def test_one_model_in_two_harnesses_is_ranked_once_and_shown_beside_with_the_difference(tmp_path):
    write_vqa(tmp_path / "a", "org/a", SCORES)
    write_vqa(tmp_path / "b", "org/b", BETTER)
    write_vqa(tmp_path / "again", "org/b", [0.0] * 8, LM_EVAL, date=1.0)
    report = report_of(tmp_path)
    assert {label: (cell.rank, cell.flags) for label, cell in cells_of(report).items()} == {
        "org/a": (Rank(1, 2), ()),
        "org/b": (Rank(1, 2), ()),
        "org/b [harness: lm-eval]": (None, ("other_harness",)),
    }
    tests = {(test.first, test.second): test.difference for test in report.comparisons}
    assert tests == {("e1", "e2"): 3 / 8, ("e2", "e3"): -1.0}


def care(*languages, rating=5.0):
    return {f"care_{language}": [care_sample(n, rating, language) for n in range(4)] for language in languages}


def test_a_group_whose_parts_had_a_chat_template_and_none_is_mixed(tmp_path):
    template = {"chat_template": "{{ messages }}", "chat_template_sha": "a" * 64}
    for place, language in enumerate(("ar", "ja", "zh"), start=1):
        changes = template if place < 3 else dict.fromkeys(template)
        write_run(tmp_path, "a", care(language), f"2026-01-0{place}T00-00-00.5", date=float(place), **changes)
    assert flags_of(tmp_path, "care") == {"a": ("mixed",)}


def test_a_group_without_a_part_is_incomplete_and_nothing_missing_is_hidden(two):
    write_run(two / "a", "a", care("ar", "ja", "zh"), "20260105_000000")
    write_run(two / "b", "c", care("zh", rating=9.0), "20260105_000000")
    report = report_of(two)
    found = cells_of(report, "care")
    assert found["a"].value == 5.0
    assert found["c"].flags == ("incomplete",)
    assert found["c"].note == "without CARE, Arab culture and CARE, Japanese culture"
    summary = tables_of(report)["summary"]
    row = row_of(summary, "b")
    assert (row["care"].value, row["care"].note) == (None, "not run")
    assert (
        summary.notes[-1]
        == "The models can't be ranked by a mean: no two have comparable scores on the same two benchmarks."
    )


def run_of(args="", harness="lm_eval", **settings):
    arguments = tuple(tuple(part.split("=", 1)) for part in args.split(", ") if part)
    settings = RunSettings(**settings)
    return Run(harness=harness, path=Path("r.json"), task="t", model="m", arguments=arguments, settings=settings)


def judge(**changes):
    return {
        "judges": (RunJudge(**{"backend": "openai", "model": "gpt-4o", "sampling": '{"temperature": 0}'} | changes),)
    }


PROMPTS = PromptHash(8, "a" * 16)
OTHER = PromptHash(8, "b" * 16)


@pytest.mark.parametrize(
    ("one", "two", "flags"),
    [
        (judge(delimiters=False), judge(), {"other_judge"}),
        (judge(backend="lm_eval"), judge(), {"other_judge"}),
        ({"commits": (("owner/vqa", "1" * 40),)}, {}, set()),
        ({"chat_template": "none"}, {"chat_template": "aa"}, {"other_settings"}),
        ({"chat_template": "none"}, {"chat_template": ""}, set()),
        ({"chat_template": "aa"}, {"chat_template": "bb"}, set()),  # every model has its own
        ({"asked": PROMPTS}, {"asked": OTHER}, {"other_settings"}),
        ({"asked": PROMPTS, "chat_template": "aa"}, {"asked": OTHER, "chat_template": "bb"}, set()),
        ({"asked": PROMPTS}, {"asked": OTHER._replace(items=7)}, set()),
    ],
)
def test_settings_that_differ_are_told_by_flags(one, two, flags):
    assert (
        differences(RunSettings(**one), RunSettings(**two))
        == differences(RunSettings(**two), RunSettings(**one))
        == flags
    )


GREEDY = '{"max_tokens": 64, "greedy": true, "until": ["a"]}'


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ({"args": "dtype=float16, peft=x"}, {"args": "dtype=float16"}, "arguments: peft=x"),
        ({"args": "dtype=float16"}, {"args": "dtype=float16, peft=x"}, "arguments: no peft"),
        (
            {"decoding": GREEDY},
            {"decoding": '{"max_tokens": 64, "temperature": 0.7}'},
            "decoding: greedy=True, until=['a'], no temperature",
        ),
        ({"data": ("x",), "commits": (("owner/vqa", "3" * 40),)}, {"data": ("y",)}, "data: owner/vqa@33333333"),
        ({"prompt": "v1 abc, 3 shots"}, {"prompt": "v1 abc"}, "prompt: 3 shots"),
        ({"prompt": "v1 abc"}, {"prompt": "v1 abc, 3 shots"}, "prompt: plain"),
        (judge(delimiters=False), judge(), "judge: other settings"),
        ({"chat_template": "none"}, {"chat_template": "abc"}, "no chat template"),
        ({"harness": "lmms_eval", "chat_template": ""}, {"chat_template": "none"}, "harness: lmms-eval"),
        ({"limit": 8}, {}, "limit: 8"),
        ({}, {}, ""),
    ],
)
def test_a_label_says_what_differs_and_nothing_else(ours, theirs, said):
    assert variation(run_of(**ours), run_of(**theirs)) == said


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"lave,none": 0.625 + 1e-9}, ""),
        ({"lave,none": float("nan")}, ""),  # its coverage was under what its user asked for
        ({"lave,none": 0.409}, "lave is 0.409 in the result file and 0.625 by its samples"),
        ({"lave,none": 0.625, "lave_brazil,none": 1.0}, "lave_brazil is 1 in the result file and 0.5"),
    ],
)
def test_samples_of_another_run_are_marked(two, numbers, said):
    write_vqa(two / "c", "c", SCORES, results={"culturalvqa": numbers})
    report = report_of(two)
    cell = cells_of(report)["c"]
    assert cell.value == 0.625
    assert ("mixed" in cell.flags) == bool(said) == (cell.rank is None)
    notes = [note for note in report.notes if "the result file" in note]
    assert len(notes) == bool(said)
    assert all("c on CulturalVQA" in note and said in note for note in notes)
    groups = [each for each in report.groups if each.runs == cell.runs]
    assert all(("mixed" in each.flags) == bool(said) for each in groups)


def test_no_run_of_a_harness_is_marked_nor_its_grading(results, tmp_path, monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0.5")
    shutil.copytree(results, tmp_path / "results")
    assert main(["rejudge", str(tmp_path / "results"), "--judge", "lexical"]) == 0
    report = report_of(tmp_path / "results", all_runs=True)
    assert {run.settings.judged_by for run in report.runs.values()} == {"", "scripted", "text overlap"}
    cells = [cell for unit in report.units.values() for cell in unit.cells.values()]
    assert not [cell for cell in cells if "mixed" in cell.flags]
