"""``culture-tasks rejudge`` on files that both harnesses wrote."""

import itertools
import json
import math
import shutil
from pathlib import Path

import pytest
from support.scripted_judge import ScriptedJudge, install
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main
from culture_tasks.judges.rubric.verdicts import Usage, Verdict

pytestmark = pytest.mark.filterwarnings("ignore")

HARNESSES = ("lm_eval", "lmms_eval")
SIX = Verdict("scored", 6.0)


RUNS: dict[tuple[str, ...], Path] = {}


@pytest.fixture
def written(tmp_path, tmp_path_factory, monkeypatch, fixture_data):
    """Runs a harness, once for each offline judge, and writes its files with its own tracker."""
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))

    def run(harness, judge, tasks=("care_zh",), folder=tmp_path):
        monkeypatch.setenv("CULTURE_JUDGE", judge)
        key = (harness, judge, *tasks)
        if judge.startswith("openai") or key not in RUNS:
            RUNS[key] = tmp_path_factory.mktemp("run")
            if harness == "lm_eval":
                write_lm_eval(RUNS[key], tasks, lambda prompt, _: prompt)
            else:
                write_lmms_eval(RUNS[key], tasks)
        shutil.copytree(RUNS[key], folder, dirs_exist_ok=True)

    return run


def result_files(folder):
    return sorted(folder.rglob("*results*.json"), key=lambda path: path.stat().st_mtime_ns)


def values(path):
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def samples_of(path, task):
    stamp = path.stem.removeprefix("results_").removesuffix("_results")
    [file] = [file for file in path.parent.glob("*.jsonl") if stamp in file.name and f"samples_{task}" in file.name]
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def same(one, two):
    return one == two or (isinstance(one, float) and isinstance(two, float) and math.isclose(one, two)) or one != one


@pytest.mark.parametrize(
    ("harness", "tasks", "sampled"),
    [
        ("lm_eval", ("care", "culturalvqa_blind"), "care_zh"),
        ("lmms_eval", ("care", "culturalvqa_blind"), "care_zh"),
        ("lmms_eval", ("crosscult_single",), "crosscult_single_reliability"),  # each task weighs the same in its group
        ("lmms_eval", ("crosscult_sequential",), "crosscult_sequential_reliability_en"),  # a group of groups
    ],
)
def test_the_same_judge_gives_the_same_files(harness, tasks, sampled, tmp_path, written):
    written(harness, "lexical", tasks)
    assert main(["rejudge", str(tmp_path), "--judge", "lexical"]) == 0
    old, new = result_files(tmp_path)
    for task, entry in values(old).items():
        for key, value in entry.items():
            assert key in values(new)[task], key
            assert same(value, values(new)[task][key]), (task, key)
    assert samples_of(new, sampled) == samples_of(old, sampled)


@pytest.mark.parametrize("harness", HARNESSES)
def test_tasks_that_no_judge_grades_stay_with_the_old_run(harness, tmp_path, written):
    written(harness, "none", ("care", "cedar_text_zh"), folder=tmp_path / "runs")
    assert main(["rejudge", str(tmp_path / "runs"), "--judge", "lexical"]) == 0
    old, new = result_files(tmp_path / "runs")
    assert "cedar_text_zh" in values(old)
    assert set(values(new)) == {"care", "care_ar", "care_ja", "care_zh"}
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "out"), "--formats", "json"]) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert {problem["kind"] for problem in report["problems"]} == {"superseded"}  # the responses that had no verdict
    assert len(report["entrants"]) == 1


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("first", ["none", "lexical"])
def test_a_judge_after_none_and_after_text_overlap(first, harness, tmp_path, monkeypatch, capsys, written):
    written(harness, first, ("care",))
    install(monkeypatch, ScriptedJudge(lambda item: Verdict("scored", 7.0, rationale="fine")))
    assert main(["rejudge", str(tmp_path), "--judge", "openai:scripted"]) == 0
    new = result_files(tmp_path)[-1]
    assert values(new)["care_zh"]["care_rating,none"] == 7.0
    assert values(new)["care_zh"]["care_rating_coverage,none"] == 1.0
    assert values(new)["care_zh"]["care_rating_unscored,none"] == 0
    assert values(new)["care"]["care_rating,none"] == 7.0
    assert not any("lexical" in key for row in values(new).values() for key in row)
    record = samples_of(new, "care_zh")[0]["care_rating"]
    assert record["runs"][0]["rationale"] == "fine"
    assert record["judge"]["model"] == "scripted"
    assert "7.0000" in capsys.readouterr().out


ENDINGS = ("unparsable", "refused", "failed", "unjudged")


@pytest.mark.parametrize("harness", HARNESSES)
def test_failed_only_asks_again_whatever_was_not_scored(harness, tmp_path, monkeypatch, written):
    endings, unscored = list(ENDINGS), []

    def script(item):
        if not endings:
            return SIX
        unscored.append(item.question)
        return Verdict(endings.pop(), error="why")

    judge = install(monkeypatch, ScriptedJudge(script, threads=1))
    written(harness, "openai:scripted")
    judge.asked.clear()
    assert main(["rejudge", str(tmp_path), "--judge", "openai:scripted", "--failed-only"]) == 0
    assert len(unscored) == len(ENDINGS)
    assert sorted(item.question for _, item in judge.asked) == sorted(unscored)
    assert values(result_files(tmp_path)[-1])["care_zh"]["care_rating_coverage,none"] == 1.0


@pytest.mark.parametrize("harness", HARNESSES)
def test_result_files_say_what_the_judge_cost_and_what_was_kept(harness, tmp_path, monkeypatch, capsys, written):
    models = {"scripted": {"input": 10, "output": 100}}
    prices = {"currency": "EUR", "date": "2026-01-02", "source": "here", "models": models}
    (tmp_path / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    monkeypatch.setenv("CULTURE_JUDGE_PRICES", str(tmp_path / "prices.json"))
    failing = {"all": True}

    def script(item):
        if failing["all"] and len(item.question) % 2:
            return Verdict("failed", error="503", attempts=3)
        return Verdict("scored", 6.0, usage=Usage(1000, 10, cached_tokens=400), attempts=1)

    judge = install(monkeypatch, ScriptedJudge(script))
    written(harness, "openai:scripted", folder=tmp_path / "runs")
    scored = sum(len(item.question) % 2 == 0 for _, item in judge.asked)
    failed = len(judge.asked) - scored
    [first] = result_files(tmp_path / "runs")
    costs = json.loads(first.read_text(encoding="utf-8"))["judge_costs"]
    assert (costs["currency"], costs["prices"]) == ("EUR", "here, 2026-01-02")
    asked, kept = (costs["tasks"]["care_zh"][part] for part in ("asked", "kept"))
    assert asked["verdicts"] == scored + failed
    assert (asked["prompt_tokens"], asked["cached_tokens"]) == (1000 * scored, 400 * scored)
    assert asked["money"] == pytest.approx(scored * (1000 * 10 + 10 * 100) / 1e6)
    assert kept == {"verdicts": 0, "prompt_tokens": 0, "completion_tokens": 0, "money": 0.0}

    failing["all"] = False
    assert main(["rejudge", str(tmp_path / "runs"), "--judge", "openai:scripted", "--failed-only"]) == 0
    new = result_files(tmp_path / "runs")[-1]
    costs = json.loads(new.read_text(encoding="utf-8"))["judge_costs"]["tasks"]["care_zh"]
    assert (costs["judge"], costs["asked"]["verdicts"], costs["kept"]["verdicts"]) == ("scripted", failed, scored)
    assert costs["kept"]["money"] == pytest.approx(asked["money"])
    printed = capsys.readouterr().out
    said = f"{1000 * scored:,} + {10 * scored:,} tokens ({400 * scored:,} from the endpoint's prompt cache)"
    assert f"{scored} verdicts kept: {said}, 0.0" in printed
    assert f"{failed} verdicts asked: " in printed


def test_failed_only_may_ask_elsewhere_and_each_verdict_says_where(tmp_path, monkeypatch, written):
    def first(item):
        ending = {"error": "503"} if len(item.question) % 2 else {"score": 6.0}
        return Verdict("failed" if "error" in ending else "scored", endpoint="http://one:8000/v1", **ending)

    install(monkeypatch, ScriptedJudge(first))
    written("lm_eval", "openai:scripted")
    install(monkeypatch, ScriptedJudge(lambda item: Verdict("scored", 7.0, endpoint="http://two:8001/v1")))
    assert main(["rejudge", str(tmp_path), "--judge", "openai:scripted", "--failed-only"]) == 0
    runs = [sample["care_rating"]["runs"][0] for sample in samples_of(result_files(tmp_path)[-1], "care_zh")]
    assert {(run["rating"], run["endpoint"]) for run in runs} == {
        (6.0, "http://one:8000/v1"),
        (7.0, "http://two:8001/v1"),
    }


def test_failed_only_refuses_to_mix_judges(tmp_path, monkeypatch, capsys, written):
    judge = ScriptedJudge(lambda item: Verdict("failed", error="503") if len(item.question) % 2 else SIX)
    install(monkeypatch, judge)
    written("lm_eval", "openai:scripted")
    judge.sampling = {"temperature": 1.0}
    judge.asked.clear()
    assert main(["rejudge", str(tmp_path), "--judge", "openai:scripted", "--failed-only"]) == 1
    assert "another sampling" in capsys.readouterr().err
    assert judge.asked == []
    assert main(["rejudge", str(tmp_path), "--judge", "lexical", "--failed-only"]) == 1
    assert "leave out --failed-only" in capsys.readouterr().err
    assert main(["rejudge", str(tmp_path), "--judge", "lexical", "--judge", "lexical"]) == 1
    assert "the same judge is named twice" in capsys.readouterr().err


def test_a_folder_stands_for_the_newest_grading(tmp_path, written):
    written("lm_eval", "none")
    for _ in range(2):
        assert main(["rejudge", str(tmp_path), "--judge", "lexical"]) == 0
    assert len(result_files(tmp_path)) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not readable JSON"),
        ("[]", "has no 'results'"),
        ('{"results": {}, "configs": {}}', "none of these runs has logged samples"),
        ('{"results": {"care_zh": 3}}', "field 'results.care_zh': found 3"),
        ('{"results": {}, "group_subtasks": {"care": 7}}', "field 'group_subtasks.care': found 7"),
    ],
)
def test_bad_result_files_are_named(tmp_path, capsys, content, said):
    (tmp_path / "20260101_000000_results.json").write_text(content, encoding="utf-8")
    assert main(["rejudge", str(tmp_path), "--judge", "lexical"]) == 1
    assert said in capsys.readouterr().err


def test_missing_paths_and_empty_folders_are_named(tmp_path, capsys):
    assert main(["rejudge", str(tmp_path / "nowhere"), "--judge", "lexical"]) == 1
    assert "no such file, folder or match of a pattern" in capsys.readouterr().err
    assert main(["rejudge", str(tmp_path), "--judge", "lexical"]) == 1
    assert "holds no result file" in capsys.readouterr().err


def test_named_and_cut_off_sample_files_are_refused(tmp_path, capsys, monkeypatch, written):
    written("lm_eval", "lexical")
    [file] = tmp_path.rglob("*.jsonl")
    assert main(["rejudge", str(file), "--judge", "lexical"]) == 1
    assert "a sample file. Name its result file, results_" in capsys.readouterr().err
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert main(["rejudge", str(tmp_path), "--judge", "lexical"]) == 1
    assert f"{file}, line 10" in capsys.readouterr().err


def install_by_name(monkeypatch, **scripts):
    """Makes scripted judges those of all sessions, by the models that ``openai:`` names."""
    judges = {f"openai:{model}": ScriptedJudge(script, model=model) for model, script in scripts.items()}
    monkeypatch.setattr(
        "culture_tasks.harness.session.shared_judge", lambda settings, model: judges[settings.judge or ""]
    )
    return judges


def ratings(path):
    [record] = {sample["care_rating"]["judge"]["model"] for sample in samples_of(path, "care_zh")}
    return record, {sample["care_rating"]["runs"][0]["rating"] for sample in samples_of(path, "care_zh")}


@pytest.mark.parametrize("harness", HARNESSES)
def test_several_judges_grade_the_same_responses(harness, tmp_path, monkeypatch, capsys, written):
    written(harness, "none")
    judges = install_by_name(monkeypatch, mild=lambda _: Verdict("scored", 9.0), stern=lambda _: SIX)
    both = ["--judge", "openai:mild", "--judge", "openai:stern"]
    assert main(["rejudge", str(tmp_path), *both]) == 0
    old, first, second = result_files(tmp_path)
    assert (ratings(first), ratings(second)) == (("mild", {9.0}), ("stern", {6.0}))
    assert [json.loads(path.read_text())["config"]["rejudged_from"] for path in (first, second)] == [old.name] * 2
    assert "judge openai:mild" in capsys.readouterr().out
    asked = len(judges["openai:mild"].asked)
    assert asked == len(judges["openai:stern"].asked) > 0
    assert main(["rejudge", str(tmp_path), "--judge", "openai:mild"]) == 0  # once, although there are two gradings
    assert (len(result_files(tmp_path)), len(judges["openai:mild"].asked)) == (4, 2 * asked)


def test_of_several_gradings_each_judge_completes_its_own(tmp_path, monkeypatch, written):
    failing = {"all": True}

    def script(score):
        return lambda item: (
            Verdict("failed", error="503") if failing["all"] and len(item.question) % 2 else Verdict("scored", score)
        )

    written("lm_eval", "none")
    judges = install_by_name(monkeypatch, mild=script(9.0), stern=script(6.0))
    both = ["--judge", "openai:mild", "--judge", "openai:stern"]
    assert main(["rejudge", str(tmp_path), *both]) == 0
    failing["all"] = False
    for judge in judges.values():
        judge.asked.clear()
    assert main(["rejudge", str(tmp_path), *both, "--failed-only"]) == 0
    assert [ratings(path) for path in result_files(tmp_path)[-2:]] == [("mild", {9.0}), ("stern", {6.0})]
    assert all(0 < len(judge.asked) < 10 for judge in judges.values())


def test_prompts_that_begin_alike_are_asked_together(tmp_path, monkeypatch, written):
    """Two models on the same questions, in several tasks: each question's requests follow each other."""
    for model in ("a", "b"):
        written("lm_eval", "none", ("care_zh", "culturalvqa_blind"), folder=tmp_path / model)
    judge = install(monkeypatch, ScriptedJudge(lambda item: Verdict("scored", 2.0)))
    assert main(["rejudge", str(tmp_path), "--judge", "openai:scripted"]) == 0
    asked = [(rubric, item.question) for rubric, item in judge.asked]
    assert len([*itertools.groupby(asked)]) == len(set(asked))
    assert len(asked) >= 2 * len(set(asked))
    assert len([*itertools.groupby(rubric for rubric, _ in asked)]) == len({rubric for rubric, _ in asked})
    for model in ("a", "b"):
        new = result_files(tmp_path / model)[-1]
        for sample in samples_of(new, "care_zh"):
            assert sample["care_rating"]["question"] in sample["arguments"]["gen_args_0"]["arg_0"]
