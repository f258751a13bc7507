"""Shards put together: the files are those of a run without shards, and bad sets of shards are refused."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from support.in_process import variant
from support.scripted_judge import ScriptedJudge, install
from support.sharded import comparable, content, run_shard, run_shards, samples

from culture_tasks import frames
from culture_tasks.cli.main import main
from culture_tasks.errors import DataError
from culture_tasks.judges.rubric.verdicts import Usage, Verdict

pytestmark = pytest.mark.filterwarnings("ignore")

HARNESSES = ("lm_eval", "lmms_eval")
TASKS = {
    "lm_eval": ["care", "culturalvqa_blind", "cedar_text", "cedar_multimodal_zh", "blend_uk"],
    "lmms_eval": ["care", "cedar_text", "crosscult_sequential"],
}


@pytest.fixture(autouse=True)
def toys(monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))


def merge(*paths, out):
    return main(["merge", *map(str, paths), "--output", str(out)])


def merged_file(folder):
    [file] = folder.glob("*results*.json")
    return file


@pytest.mark.parametrize("harness", HARNESSES)
def test_merged_files_are_those_of_a_run_without_shards(harness, tmp_path, capsys):
    whole = run_shard(harness, tmp_path / "whole", TASKS[harness], "")
    shards = run_shards(harness, tmp_path / "shards", TASKS[harness], 2)
    assert merge(tmp_path / "shards", out=tmp_path / "merged") == 0
    merged = merged_file(tmp_path / "merged")
    assert f"{merged}: 2 result files put together" in capsys.readouterr().out
    assert main(["merge", str(tmp_path / "shards"), "-o", str(tmp_path / "again"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shards"] == 2
    assert comparable(merged) == comparable(whole)
    assert samples(merged) == samples(whole)
    assert content(merged)["config"]["merged_from"] == [str(path) for path in shards]
    assert float(content(merged)["total_evaluation_time_seconds"]) == 2 * 1.5
    assert content(merged)["task_hashes"]["cedar_text"] == content(whole)["task_hashes"]["cedar_text"]
    one, two = (frames.scores(path) for path in (whole, merged))
    assert len(one) > 100
    assert one.equals(two)


@pytest.mark.parametrize("harness", HARNESSES)
def test_failed_verdicts_stay_failed_and_costs_add_up(harness, tmp_path, monkeypatch, capsys):
    models = {"scripted": {"input": 10, "output": 100}}
    prices = {"currency": "EUR", "date": "2026-01-02", "source": "here", "models": models}
    (tmp_path / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    monkeypatch.setenv("CULTURE_JUDGE_PRICES", str(tmp_path / "prices.json"))
    monkeypatch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0.1")
    good = Verdict("scored", 6.0, usage=Usage(1000, 10, cached_tokens=400), attempts=1)
    failed = Verdict("failed", error="503", attempts=3)
    judge = ScriptedJudge(lambda item: failed if len(item.question) % 2 else good)
    install(monkeypatch, judge)
    whole = run_shard(harness, tmp_path / "whole", ["care", "cedar_text"], "")
    run_shards(harness, tmp_path / "shards", ["care", "cedar_text"], 2)
    assert merge(tmp_path / "shards", out=tmp_path / "merged") == 0
    merged = merged_file(tmp_path / "merged")
    assert comparable(merged) == comparable(whole)
    assert content(merged)["results"]["care"]["care_rating_unscored,none"] > 0
    assert content(merged)["judge_costs"] == content(whole)["judge_costs"]

    # Grading again works on the merged run, and on shards before they are merged.
    judge.script = lambda item: good
    for folder in ("merged", "shards"):
        assert main(["rejudge", str(tmp_path / folder), "--judge", "openai:scripted", "--failed-only"]) == 0
    assert merge(tmp_path / "shards", out=tmp_path / "again") == 0
    again = content(merged_file(tmp_path / "again"))
    assert again["results"]["care"]["care_rating_unscored,none"] == 0
    assert "rejudged_from" not in again["config"]
    newest = max((tmp_path / "merged").glob("*results*.json"), key=lambda path: path.name)
    graded = {"care", "care_ar", "care_ja", "care_zh"}
    assert again["results"] == {**content(whole)["results"], **content(newest)["results"]}
    assert graded == content(newest)["results"].keys() < again["results"].keys()
    assert float(again["total_evaluation_time_seconds"]) == 2 * 1.5
    assert again.get("efficiency") == content(whole).get("efficiency")


@pytest.mark.parametrize("harness", HARNESSES)
def test_predictions_for_a_submission_are_written_once_and_whole(harness, tmp_path, monkeypatch, fixture_data):
    shutil.copytree(fixture_data / "culturalvqa", tmp_path / "data" / "culturalvqa")
    file = tmp_path / "data" / "culturalvqa" / "test.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in rows:
        del row["all_answers"]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CULTURE_TASKS_SUBMISSIONS", str(tmp_path / "submissions"))
    whole = run_shard(harness, tmp_path / "whole", ["culturalvqa"], "")
    [one] = (tmp_path / "submissions").iterdir()
    run_shards(harness, tmp_path / "shards", ["culturalvqa"], 2)
    assert list((tmp_path / "submissions").iterdir()) == [one]
    assert merge(tmp_path / "shards", out=tmp_path / "merged") == 0
    [two] = set((tmp_path / "submissions").iterdir()) - {one}
    assert content(two) == content(one)
    assert len(content(one)) == len(rows)
    assert comparable(merged_file(tmp_path / "merged")) == comparable(whole)


def test_repeats_and_variants_are_merged_too(tmp_path):
    tasks = variant(tmp_path, "lm_eval", "care_zh", repeats=3)
    options = {"include": tmp_path}
    whole = run_shard("lm_eval", tmp_path / "whole", tasks, "", **options)
    run_shards("lm_eval", tmp_path / "shards", tasks, 2, **options)
    assert merge(tmp_path / "shards", out=tmp_path / "merged") == 0
    merged = merged_file(tmp_path / "merged")
    assert "care_rating_lexical_run_sd,none" in content(merged)["results"]["variant"]
    assert comparable(merged) == comparable(whole)


@pytest.fixture(scope="module")
def four(tmp_path_factory, fixture_data):
    """Four shards of two tasks, of lm-eval."""
    folder = tmp_path_factory.mktemp("four")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_JUDGE", "lexical")
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        run_shards("lm_eval", folder, ["care_zh", "cedar_text"], 4)
    return folder


@pytest.fixture
def shards(four, tmp_path):
    shutil.copytree(four, tmp_path / "shards")
    return tmp_path / "shards"


def file_of(shards, number, pattern="results_*.json"):
    [file] = (shards / f"shard-{number}").rglob(pattern)
    return file


def refusal(shards, capsys):
    out = shards.parent / "merged"
    assert merge(shards, out=out) == 1
    assert not list(out.glob("*"))
    return capsys.readouterr().err


def test_a_shard_that_is_missing_or_there_twice_is_named(shards, capsys):
    shutil.copytree(shards / "shard-2", shards / "copy")
    assert re.search(r"merge: \S+: duplicate, a copy of \S+", refusal(shards, capsys))
    again = file_of(shards, 2).rename(file_of(shards, 2).with_name("results_2026-01-01T00-00-00.5.json"))
    for samples_file in list((shards / "shard-2").rglob("samples_*")):
        name = re.sub(r"\d{4}-.*(?=\.jsonl)", "2026-01-01T00-00-00.5", samples_file.name)
        samples_file.rename(samples_file.with_name(name))
    said = refusal(shards, capsys)
    assert "care_zh: shard 2 of 4 is there twice" in said
    assert str(again) in said
    assert str(next((shards / "copy").rglob("results_*.json"))) in said
    shutil.rmtree(shards / "copy")
    shutil.rmtree(shards / "shard-2")
    said = refusal(shards, capsys)
    assert "merge: care_zh: found 3 of 4 shards; missing 2. Run the missing ones (CULTURE_SHARD=2/4)" in said


OTHER_SHARDS = {
    "judge": ({"CULTURE_JUDGE": "none"}, {}, "{third} (shard 3 of 4) was run under other settings than", "no judge"),
    "prompt": ({}, {"system_instruction": "Be brief."}, "under other settings than", "prompt: system instruction"),
    "decoding": ({}, {"gen_kwargs": {"max_gen_toks": 7}}, "under other settings than", "decoding: max_tokens 7"),
    "model": ({}, {"model": "other"}, "under other settings than", "model: other"),
    "languages": (
        {"CULTURE_TASKS_LANGUAGES": "zh,en"},
        {},
        "cedar_text: {third} (shard 3 of 4) is of other documents or prompts than",
        "Run it again with the same data",
    ),
    "data": (
        {"CULTURE_TASKS_DATA": "{data}"},
        {},
        "care_zh: {third} (shard 3 of 4) is of other documents or prompts than",
        "",
    ),
    "number": (
        {"CULTURE_SHARD": "3/5"},
        {},
        "{third} is shard 3 of 5, with 5 shards in all",
        "is shard 1 of 4, with 4",
    ),
    "limit": (
        {},
        {"limit": 1},
        "care_zh: 1 of 10 documents are missing, the first with the doc_id 6: shard 3 of 4 ({third}) has 1 of its 2",
        "without --limit",
    ),
}


@pytest.mark.parametrize("other", OTHER_SHARDS)
def test_a_shard_of_another_run_is_named(other, shards, capsys, monkeypatch, tmp_path, fixture_data):
    variables, options, *said = OTHER_SHARDS[other]
    shutil.rmtree(shards / "shard-3")
    if other == "data":
        shutil.copytree(fixture_data, tmp_path / "data")
        table = tmp_path / "data" / "care" / "Chinese-test.json"
        table.write_text(table.read_text("utf-8").replace("京剧", "川剧"), encoding="utf-8")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(data=tmp_path / "data"))
    shard = variables.get("CULTURE_SHARD", "3/4")
    third = run_shard("lm_eval", shards / "shard-3", ["care_zh", "cedar_text"], shard, **options)
    refused = refusal(shards, capsys)
    assert "culture-tasks: error: merge: " in refused
    assert all(part.format(third=third) in refused for part in said)


def change(file, lines):
    kept = [line for line in file.read_text("utf-8").split("\n") if line]
    file.write_text("".join(f"{line}\n" for line in lines(kept)), encoding="utf-8")


def test_documents_that_are_missing_or_doubled_are_named(shards, capsys):
    one, two = (file_of(shards, number, "samples_care_zh_*") for number in (1, 2))
    first, second = ([json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in (one, two))
    change(one, lambda lines: lines[:-1])
    said = refusal(shards, capsys)
    assert f"care_zh: 1 of 10 documents are missing, the first with the doc_id {first[-1]['doc_id']}" in said
    assert f"shard 1 of 4 ({file_of(shards, 1)}) has 2 of its 3" in said
    change(one, lambda lines: [*lines, json.dumps(second[0])])
    said = refusal(shards, capsys)
    item = second[0]["care_rating_lexical"]["item"]
    assert f"{two}, line 1: document {second[0]['doc_id']} of care_zh (item {item}) is in {one}, line 3 too" in said
    change(one, lambda lines: [*lines[:-1], json.dumps({**first[-1], "doc_id": "x"})])
    assert f"{one}, line 3: expected a doc_id from 0 to 9, found 'x'" in refusal(shards, capsys)
    change(one, lambda lines: [*lines[:-1], '{"doc_id": 8'])
    assert f"{one}, line 3: not JSON" in refusal(shards, capsys)
    one.unlink()
    assert f"{file_of(shards, 1)} (shard 1 of 4): the samples of care_zh aren't there" in refusal(shards, capsys)


def test_a_whole_run_is_no_shard(shards, capsys, tmp_path):
    whole = run_shard("lm_eval", shards / "whole", ["care_zh"], "")
    assert f"{whole} has the whole of care_zh, and no shard of it" in refusal(shards, capsys)
    assert merge(whole, out=tmp_path / "merged") == 1
    assert merge(tmp_path / "nowhere", out=tmp_path / "merged") == 1
    said = capsys.readouterr().err
    assert "has the whole of care_zh" in said
    assert "nowhere: missing, no such file" in said


def test_the_merged_files_may_be_among_the_shards(shards, capsys):
    for _ in range(2):
        assert merge(*sorted(shards.iterdir()), out=shards / "merged") == 0
    assert len(list((shards / "merged").glob("results_*.json"))) == 1


def test_a_lone_shard_is_in_no_report(shards, capsys, tmp_path):
    one, two = file_of(shards, 1), file_of(shards, 2)
    problem = "partial, shard 1 of 4 of care_zh, cedar_text, whose numbers aren't the tasks'"
    assert main(["report", str(one), "-o", str(tmp_path / "out")]) == 1
    assert f"{one}: {problem}" in capsys.readouterr().err
    with pytest.raises(DataError, match="shard 1 of 4"):
        frames.scores(one)
    assert main(["compare", str(one), str(two), "--fail-on-regression"]) == 2
    assert "culture-tasks merge" in capsys.readouterr().err
    assert merge(shards, out=tmp_path / "merged") == 0
    assert main(["compare", str(tmp_path / "merged"), str(tmp_path / "merged" / "x*"), "--fail-on-regression"]) == 2
    run_shard("lm_eval", tmp_path / "whole", ["care_zh"], "", model="other")
    capsys.readouterr()
    paths = [str(tmp_path / name) for name in ("merged", "whole")]
    gate = ["compare", *paths, "--require", "care_zh", "--fail-on-regression"]
    assert main(gate) == 0
    shutil.copytree(shards / "shard-1", tmp_path / "whole" / "shard")
    assert main(gate) == 3
    assert "B has a file that can't be used: partial, shard 1 of 4" in capsys.readouterr().out
