"""``culture-tasks rejudge`` on files that both harnesses wrote."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from support.rejudged import content, result_files, samples_of, verdicts_of
from support.scripted_judge import ScriptedJudge, install, install_by_name

from culture_tasks.cli.main import main
from culture_tasks.judges.rubric.verdicts import Usage, Verdict

pytestmark = pytest.mark.filterwarnings("ignore")

SIX = Verdict("scored", 6.0)
FAILED = Verdict("failed", error="503", attempts=3)
SCRIPTED = ("--judge", "openai:scripted")


def rejudge(folder, *options):
    return main(["rejudge", str(folder), *options])


def values(path):
    return content(path)["results"]


def is_odd(item):
    """Whether an item is one of those that a test treats in another way: some of them, the same in each run."""
    return len(item.question) % 2 == 1


def same(one, two):
    return one == two or (isinstance(one, float) and isinstance(two, float) and math.isclose(one, two)) or one != one


@pytest.mark.parametrize(
    ("harness", "tasks", "sampled"),
    [
        ("lm_eval", ("care", "culturalvqa_blind"), "care_zh"),
        ("lmms_eval", ("crosscult_sequential",), "crosscult_sequential_reliability_en"),  # a group of groups
    ],
)
def test_the_same_judge_gives_the_same_files(harness, tasks, sampled, tmp_path, written):
    written(harness, "lexical", tasks)
    assert rejudge(tmp_path, "--judge", "lexical") == 0
    old, new = result_files(tmp_path)
    for task, entry in values(old).items():
        for key, value in entry.items():
            assert key in values(new)[task], key
            assert same(value, values(new)[task][key]), (task, key)
    assert samples_of(new, sampled) == samples_of(old, sampled)


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_tasks_that_no_judge_grades_stay_with_the_old_run(harness, tmp_path, written):
    written(harness, "none", ("care", "cedar_text_zh"), folder=tmp_path / "runs")
    [file] = result_files(tmp_path / "runs")
    run = content(file)
    run["config"]["model_args"] = "pretrained=toy,hf_token=s3cr3t,api_secret=s3cr3t"
    file.write_text(json.dumps(run))
    assert rejudge(tmp_path / "runs", "--judge", "lexical") == 0
    old, new = result_files(tmp_path / "runs")
    assert content(new)["config"]["model_args"] == "pretrained=toy,hf_token=***,api_secret=***"
    assert "cedar_text_zh" in values(old)
    assert set(values(new)) == {"care", "care_ar", "care_ja", "care_zh"}
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "out"), "--formats", "json"]) == 0
    report = content(tmp_path / "out" / "report.json")
    assert {problem["kind"] for problem in report["problems"]} == {"superseded"}  # the responses that had no verdict
    assert len(report["entrants"]) == 1


@pytest.mark.parametrize(("harness", "first"), [("lm_eval", "none"), ("lmms_eval", "lexical")])
def test_a_judge_after_none_and_after_text_overlap(first, harness, tmp_path, monkeypatch, capsys, written):
    written(harness, first, ("care",))
    install(monkeypatch, ScriptedJudge(lambda item: Verdict("scored", 7.0, rationale="fine")))
    assert rejudge(tmp_path, *SCRIPTED) == 0
    new = result_files(tmp_path)[-1]
    row = values(new)["care_zh"]
    metrics = ("care_rating", "care_rating_coverage", "care_rating_unscored")
    assert [row[f"{metric},none"] for metric in metrics] == [7.0, 1.0, 0]
    assert values(new)["care"]["care_rating,none"] == 7.0
    assert not any("lexical" in key for row in values(new).values() for key in row)
    record = samples_of(new)[0]["record"]
    assert (record["runs"][0]["rationale"], record["judge"]["model"]) == ("fine", "scripted")
    assert "7.0000" in capsys.readouterr().out
    assert rejudge(tmp_path, *SCRIPTED, "--json") == 0
    scores = json.loads(capsys.readouterr().out)["runs"][0]["scores"]
    assert ("care_zh", "care_rating", 7.0, 1.0) in [
        (one["task"], one["metric"], one["value"], one["coverage"]) for one in scores
    ]


def test_result_files_say_what_each_judge_s_verdicts_cost(tmp_path, monkeypatch, capsys, written):
    models = {"scripted": {"input": 10, "output": 100}}
    prices = {"currency": "EUR", "date": "2026-01-02", "source": "here", "models": models}
    (tmp_path / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    monkeypatch.setenv("CULTURE_JUDGE_PRICES", str(tmp_path / "prices.json"))
    good = Verdict("scored", 6.0, usage=Usage(1000, 10, cached_tokens=400), attempts=1)
    judge = install(monkeypatch, ScriptedJudge(lambda item: FAILED if is_odd(item) else good))
    written("lmms_eval", "openai:scripted", folder=tmp_path / "runs")
    failed = sum(is_odd(item) for _, item in judge.asked)
    scored = len(judge.asked) - failed
    costs = content(result_files(tmp_path / "runs")[0])["judge_costs"]
    assert (costs["currency"], costs["prices"]) == ("EUR", "here, 2026-01-02")
    asked, kept = (costs["tasks"]["care_zh"][part] for part in ("asked", "kept"))
    assert asked["verdicts"] == scored + failed
    assert (asked["prompt_tokens"], asked["cached_tokens"]) == (1000 * scored, 400 * scored)
    assert asked["money"] == pytest.approx(scored * (1000 * 10 + 10 * 100) / 1e6)
    assert kept == {"verdicts": 0, "prompt_tokens": 0, "completion_tokens": 0, "money": 0.0}

    judge.script = lambda item: good
    assert rejudge(tmp_path / "runs", *SCRIPTED, "--failed-only") == 0
    costs = content(result_files(tmp_path / "runs")[-1])["judge_costs"]["tasks"]["care_zh"]
    assert (costs["judge"], costs["asked"]["verdicts"], costs["kept"]["verdicts"]) == ("scripted", failed, scored)
    assert costs["kept"]["money"] == pytest.approx(asked["money"])
    printed = capsys.readouterr().out
    tokens = f"{1000 * scored:,} + {10 * scored:,} tokens ({400 * scored:,} from the endpoint's prompt cache)"
    assert f"{scored} verdicts kept: {tokens}, 0.0" in printed
    assert f"{failed} verdicts asked: " in printed


def test_failed_only_may_ask_elsewhere_but_no_other_judge(tmp_path, monkeypatch, capsys, written):
    def script(score, place):
        return lambda item: Verdict("scored", score, endpoint=place)

    one, two = "http://one:8000/v1", "http://two:8001/v1"
    judge = ScriptedJudge(lambda item: FAILED if is_odd(item) else script(6.0, one)(item))
    install(monkeypatch, judge)
    written("lm_eval", "openai:scripted")
    judge.sampling = {"temperature": 1.0}
    judge.asked.clear()
    for options, said in (
        ((*SCRIPTED, "--failed-only"), "another sampling"),
        (("--judge", "lexical", "--failed-only"), "leave out --failed-only"),
    ):
        assert rejudge(tmp_path, *options) == 1
        assert said in capsys.readouterr().err
    assert judge.asked == []
    install(monkeypatch, ScriptedJudge(script(7.0, two)))
    assert rejudge(tmp_path, *SCRIPTED, "--failed-only") == 0
    verdicts = verdicts_of(result_files(tmp_path)[-1])
    assert {(verdict["rating"], verdict["endpoint"]) for verdict in verdicts} == {(6.0, one), (7.0, two)}


def test_a_sample_file_and_one_that_was_cut_off_are_refused(tmp_path, capsys, written):
    written("lm_eval", "lexical")
    [file] = tmp_path.rglob("*.jsonl")
    assert rejudge(file, "--judge", "lexical") == 1
    assert "a sample file. Name its result file, results_" in capsys.readouterr().err
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert rejudge(tmp_path, "--judge", "lexical") == 1
    assert f"{file}, line 10" in capsys.readouterr().err


def ratings(path):
    [model] = {sample["record"]["judge"]["model"] for sample in samples_of(path)}
    return model, {verdict["rating"] for verdict in verdicts_of(path)}


def test_several_judges_grade_the_same_responses(tmp_path, monkeypatch, written):
    written("lm_eval")
    judges = install_by_name(monkeypatch, mild=lambda _: Verdict("scored", 9.0), stern=lambda _: SIX)
    for judge in judges:
        assert rejudge(tmp_path, "--judge", judge) == 0
    old, first, second = result_files(tmp_path)
    assert (ratings(first), ratings(second)) == (("mild", {9.0}), ("stern", {6.0}))
    assert [content(path)["config"]["rejudged_from"] for path in (first, second)] == [old.name, first.name]
    asked = len(judges["openai:mild"].asked)
    assert asked == len(judges["openai:stern"].asked) > 0
    assert rejudge(tmp_path, "--judge", "openai:mild") == 0  # once, although there are two gradings
    assert (len(result_files(tmp_path)), len(judges["openai:mild"].asked)) == (4, 2 * asked)


def test_prompts_that_begin_alike_are_asked_together(tmp_path, monkeypatch, written):
    """Two models on the same questions, in several tasks: each question's requests follow each other."""
    for model in ("a", "b"):
        written("lm_eval", "none", ("care_zh", "culturalvqa_blind"), folder=tmp_path / model)
    judge = install(monkeypatch, ScriptedJudge(lambda item: Verdict("scored", 2.0)))
    assert rejudge(tmp_path, *SCRIPTED) == 0
    asked = [(rubric, item.question) for rubric, item in judge.asked]
    for order in (asked, [rubric for rubric, _ in asked]):
        assert len([*itertools.groupby(order)]) == len(set(order))
    assert len(asked) >= 2 * len(set(asked))
    for model in ("a", "b"):
        for sample in samples_of(result_files(tmp_path / model)[-1]):
            assert sample["record"]["question"] in sample["arguments"]["gen_args_0"]["arg_0"]
