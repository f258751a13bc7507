"""What can't be compared is marked, and neither ranked nor tested."""

import shutil

import pytest
from support.sample_files import JUDGE, care_sample, vqa_record, vqa_samples, write_run, write_vqa

from culture_tasks.cli.main import main
from culture_tasks.report.building import Options, build
from culture_tasks.report.formats import write_report
from culture_tasks.report.model import FLAG_TEXT, Rank
from culture_tasks.results.comparability import differences, variation
from culture_tasks.results.runs import Grader, PromptHash, Run, Settings

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


def test_what_is_unknown_is_no_other_judge_and_no_other_data(two):
    """Without samples nothing says who judged and what was read."""
    write_run(two / "c", "c", {"culturalvqa": []}, results={"culturalvqa": {"lave,none": 0.5}})
    report = build([str(two)], Options())
    assert set(cells(report)["c"].flags) == {"from_result_file", "unknown_settings"}
    assert report.units["culturalvqa"].standing.left_out == {"e3": "its judge, prompts and data aren't known"}
    assert {(test.first, test.second) for test in report.comparisons} == {("e1", "e2")}
    write_run(two / "again", "a", {"culturalvqa": []}, "20260105_000000", results={"culturalvqa": {"lave,none": 0.5}})
    assert list(cells(build([str(two)], Options()))) == ["a", "a [without samples]", "b", "c"]


@pytest.mark.parametrize("flag", ["other_judge", "other_limit"])
def test_the_user_may_insist(two, flag):
    record, results = CASES[flag]
    write_run(two / "c", "c", {"culturalvqa": vqa_samples(BETTER, **record)}, **results)
    report = build([str(two)], Options(compare_anyway=True))
    scores = next(table for table in report.tables if table.key == "summary")
    [row] = [row for row in scores.rows if row.labels == ("c",)]
    assert row.cells[0].rank == report.units["culturalvqa"].cells["e3"].rank == Rank(1, 3)
    assert row.cells[0].flags == (flag,)
    assert len(report.comparisons) == 3
    assert [test.flags for test in report.comparisons if test.second == "e3"] == [(flag,), (flag,)]


def test_low_coverage_is_marked(two):
    write_vqa(two / "c", "c", [1.0, None, *SCORES[2:]])
    found = cells(build([str(two)], Options()))
    assert found["c"].coverage == 7 / 8
    assert found["c"].flags == ("low_coverage",)
    assert cells(build([str(two)], Options(min_coverage=0.8)))["c"].flags == ()


def test_the_same_judge_or_model_elsewhere_is_the_same_and_no_address_is_shown(two, tmp_path):
    run = vqa_record(0, 1.0)["runs"][0]
    for model, port in (("c", 8000), ("d", 8001)):
        samples = vqa_samples(BETTER, runs=[run | {"endpoint": f"http://10.0.0.7:{port}/v1"}])
        arguments = f"model={model},base_url=http://10.0.0.7:{port}/v1,somewhere=https://inner.example/x,dtype=float16"
        write_run(two / model, model, {"culturalvqa": samples}, config={"model": "x", "model_args": arguments})
    write_run(two / "again", "c", {"culturalvqa": vqa_samples(SCORES)}, "20251231_000000", **two_arguments("8002"))
    report = build([str(two)], Options())
    assert {label: cell.flags for label, cell in cells(report).items()} == dict.fromkeys("abcd", ())
    assert [run.model_args for run in report.runs.values()] == ["", "", "dtype=float16", "dtype=float16"]
    write_report(report, tmp_path / "out", ("markdown", "csv", "json"))
    for path in (tmp_path / "out").rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        assert "10.0.0.7" not in text
        assert "inner.example" not in text


def two_arguments(port):
    return {"config": {"model": "x", "model_args": f"model=c,base_url=http://10.0.0.7:{port}/v1,dtype=float16"}}


def asked(samples, prompt="prompt"):
    """Samples with the prompts as lmms-eval logs them."""
    return [sample | {"input": f"{prompt} {number}"} for number, sample in enumerate(samples)]


LM_EVAL = "2026-01-01T00-00-00.5"
TEMPLATE = {"chat_template": "{{ messages }}", "chat_template_sha": "a" * 64}
NO_TEMPLATE = {"chat_template": None, "chat_template_sha": None}


def test_other_texts_of_the_prompts_are_another_prompt(two):
    write_run(two / "a", "a", {"culturalvqa": asked(vqa_samples(SCORES))})
    write_run(two / "b", "b", {"culturalvqa": asked(vqa_samples(SCORES))})
    write_run(two / "c", "c", {"culturalvqa": asked(vqa_samples(SCORES), "Prompt:")})
    assert {label: cell.flags for label, cell in cells(build([str(two)], Options())).items()} == {
        "a": (),
        "b": (),
        "c": ("other_prompt",),
    }


def test_a_newer_run_with_other_prompts_does_not_take_the_place_of_the_older(tmp_path):
    write_run(tmp_path / "a", "m", {"culturalvqa": asked(vqa_samples(SCORES))})
    write_run(tmp_path / "a", "m", {"culturalvqa": asked(vqa_samples(SCORES), "x")}, "20260105_000000")
    [first, second] = cells(build([str(tmp_path)], Options()))
    assert (first, second.startswith("m [prompts: ")) == ("m", True)


def test_one_model_in_two_harnesses_is_ranked_once_and_shown_beside_with_the_difference(tmp_path):
    write_vqa(tmp_path / "a", "org/a", SCORES)
    write_vqa(tmp_path / "b", "org/b", BETTER)
    write_vqa(tmp_path / "again", "org/b", [0.0] * 8, LM_EVAL, date=1.0)
    report = build([str(tmp_path)], Options())
    found = cells(report)
    assert list(found) == ["org/a", "org/b", "org/b [harness: lm-eval]"]
    assert [cell.rank for cell in found.values()] == [Rank(1, 2), Rank(1, 2), None]
    assert found["org/b [harness: lm-eval]"].flags == ("other_harness",)
    tests = {(test.first, test.second): test.difference for test in report.comparisons}
    assert tests == {("e1", "e2"): 3 / 8, ("e2", "e3"): -1.0}


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


def test_a_group_whose_parts_had_a_chat_template_and_none_is_mixed(tmp_path):
    for place, (language, changes) in enumerate({"ar": TEMPLATE, "ja": TEMPLATE, "zh": NO_TEMPLATE}.items(), start=1):
        samples = {f"care_{language}": care_samples(language, 5.0)}
        write_run(tmp_path, "a", samples, f"2026-01-0{place}T00-00-00.5", date=float(place), **changes)
    assert cells(build([str(tmp_path)], Options()), "care")["a"].flags == ("mixed_settings",)


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


def test_nothing_missing_is_hidden(two):
    write_run(two / "a", "a", {"care_zh": care_samples("zh", 9.0)}, "20260105_000000")
    summary = build([str(two)], Options()).tables[0]
    columns = [column.key for column in summary.columns]
    rows = {row.labels[0]: dict(zip(columns, row.cells, strict=True)) for row in summary.rows}
    assert rows["a"]["care_zh"].value == 9.0
    assert (rows["b"]["care_zh"].value, rows["b"]["care_zh"].note) == (None, "not run")
    assert summary.notes[-1] == "There is no mean: no two models share two of these columns."


def run_of(args="", harness="lm_eval", **settings):
    return Run(
        key="r1",
        model="m",
        model_args=args,
        harness=harness,
        task="t",
        benchmark=None,
        settings=Settings(**settings),
        date="2026-01-01",
        results_file="r.json",
        samples_file=None,
        items=0,
        scored=0,
    )


def judge(**changes):
    return Grader(**{"backend": "openai", "model": "gpt-4o", "sampling": '{"temperature": 0}'} | changes)


ASKED = PromptHash(8, "a" * 16, "report")
OTHER = PromptHash(8, "b" * 16, "report")


@pytest.mark.parametrize(
    ("one", "two", "flags"),
    [
        ({"judges": (judge(delimiters=False),)}, {"judges": (judge(),)}, {"other_judge"}),
        ({"judges": (judge(sampling="{}"),)}, {"judges": (judge(),)}, {"other_judge"}),
        ({"judges": (judge(backend="lm_eval"),)}, {"judges": (judge(),)}, {"other_judge"}),
        ({"commits": (("owner/vqa", "1" * 40),)}, {}, set()),
        ({"chat_template": "none"}, {"chat_template": "aa"}, {"other_prompt"}),
        ({"chat_template": "none"}, {"chat_template": "the endpoint's"}, {"other_prompt"}),
        ({"chat_template": "none"}, {"chat_template": ""}, set()),
        ({"chat_template": "aa"}, {"chat_template": "bb"}, set()),  # every model has its own
        ({"asked": ASKED}, {"asked": OTHER}, {"other_prompt"}),
        ({"asked": ASKED, "chat_template": "aa"}, {"asked": OTHER, "chat_template": "bb"}, set()),
        ({"asked": ASKED}, {"asked": OTHER._replace(items=7)}, set()),
        ({"asked": ASKED}, {"asked": OTHER._replace(maker="harness")}, set()),
        ({"asked": ASKED}, {}, set()),
    ],
)
def test_settings_that_differ_are_told_by_flags(one, two, flags):
    assert differences(Settings(**one), Settings(**two)) == differences(Settings(**two), Settings(**one)) == flags


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ({"args": "dtype=float16, peft=x"}, {"args": "dtype=float16"}, "arguments: peft=x"),
        ({"args": "dtype=float16"}, {"args": "dtype=float16, peft=x"}, "arguments: no peft"),
        ({"args": "dtype=float32, x=1"}, {"args": "dtype=float16, x=1"}, "arguments: dtype=float32"),
        (
            {"decoding": '{"max_tokens": 64, "greedy": true, "until": ["a"]}'},
            {"decoding": '{"max_tokens": 64, "temperature": 0.7}'},
            "decoding: greedy until a no temperature",
        ),
        ({"data": ("0123456789abcdef", "s")}, {"data": ("s",)}, "data: 01234567"),
        ({"data": ("x",), "commits": (("owner/vqa", "3" * 40),)}, {"data": ("y",)}, "data: owner/vqa@33333333"),
        ({"prompt": "v1 abc, 3 shots"}, {"prompt": "v1 abc"}, "prompt: 3 shots"),
        ({"prompt": "v1 abc"}, {"prompt": "v1 abc, 3 shots"}, "prompt: plain"),
        ({"judges": (judge(model="x"),)}, {"judges": (judge(),)}, "judge: x"),
        ({"judges": (judge(sampling='{"temperature": 1}'),)}, {"judges": (judge(),)}, "judge: temperature 1"),
        ({"judges": (judge(delimiters=False),)}, {"judges": (judge(),)}, "judge: without delimiters"),
        ({"judges": (judge(backend="lm_eval"),)}, {"judges": (judge(),)}, "judge: gpt-4o by lm_eval"),
        ({"chat_template": "none"}, {"chat_template": "abc"}, "no chat template"),
        ({"chat_template": "abc"}, {"chat_template": "def"}, "chat template: abc"),
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
        ({"lave_lexical,none": 0.409}, "lave is 0.409"),
        ({"lave,none": 0.625, "lave_brazil,none": 1.0}, "lave_brazil is 1 in the result file and 0.5"),
        ({"lave,none": 0.625, "lave_brazil,none": float("nan")}, ""),
    ],
)
def test_samples_of_another_run_are_marked(two, numbers, said):
    write_vqa(two / "c", "c", SCORES, results={"culturalvqa": numbers})
    report = build([str(two)], Options())
    cell = cells(report)["c"]
    assert cell.value == 0.625
    assert ("unlike_its_file" in cell.flags) == bool(said) == (cell.rank is None)
    assert [note for note in report.notes if "c on culturalvqa" in note and said in note] if said else True
    assert len([note for note in report.notes if "the result file" in note]) == bool(said)
    groups = [each.cell for each in report.groups if each.cell.runs == cell.runs]
    assert all(("unlike_its_file" in each.flags) == bool(said) for each in groups)


def test_no_run_of_a_harness_is_marked_nor_its_grading(results, tmp_path, monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0.5")
    shutil.copytree(results, tmp_path / "results")
    assert main(["rejudge", str(tmp_path / "results"), "--judge", "lexical"]) == 0
    report = build([str(tmp_path / "results")], Options(all_runs=True))
    assert {run.settings.judged_by for run in report.runs.values()} == {"", "scripted", "text overlap"}
    cells = [cell for unit in report.units.values() for cell in unit.cells.values()]
    assert not [cell for cell in cells if "unlike_its_file" in cell.flags]
