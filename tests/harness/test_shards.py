"""Shards of a task: which documents they have, and that both harnesses run them as they run the whole."""

from __future__ import annotations

import json
import shutil

import pytest
from support.in_process import run_lm_eval, run_lmms_eval, variant
from support.lmms_models import ChatEcho
from support.scripted_lm import ScriptedLM

from culture_tasks.errors import SettingsError
from culture_tasks.harness.loading import Shard, all_documents, load_for_evaluation, loaded_task
from culture_tasks.harness.scoring import scorer_of

pytestmark = pytest.mark.filterwarnings("ignore")


def run(harness, tasks, **options):
    if harness == "lm_eval":
        return run_lm_eval(ScriptedLM(lambda prompt, _: prompt[-20:]), tasks, **options)
    return run_lmms_eval(ChatEcho(), tasks, **options)


def documents(monkeypatch, task, shard):
    monkeypatch.setenv("CULTURE_SHARD", shard)
    return list(load_for_evaluation(task))


@pytest.mark.parametrize("task", ["care_zh", "culturalvqa", "cedar_text", "blend_uk", "crosscult_single_reliability"])
def test_shards_have_every_document_once_and_whole_clusters(task, monkeypatch):
    whole, places, clusters, sha = documents(monkeypatch, task, ""), [], [], ""
    assert loaded_task(task).shard is None
    for number in (1, 2, 3):
        rows = documents(monkeypatch, task, f"{number}/3")
        part = loaded_task(task)
        sha = sha or part.shard.fingerprint
        expected = Shard(number=number, of=3, documents=len(rows), of_documents=len(whole), fingerprint=sha)
        assert part.shard == expected
        for row, place in zip(rows, part.places, strict=True):
            one, other = (
                {**each, "image": each.get("image") and each["image"].tobytes()} for each in (row, whole[place])
            )
            assert one == other
        assert len(all_documents(task)) == len(whole)
        places += part.places
        clusters.append([scorer_of(task).cluster_of(row) for row in rows])
    assert sorted(places) == list(range(len(whole)))
    every = list(dict.fromkeys(scorer_of(task).cluster_of(row) for row in whole))
    assert [list(dict.fromkeys(of_shard)) for of_shard in clusters] == [every[0::3], every[1::3], every[2::3]]


def test_a_task_with_fewer_clusters_than_shards_is_refused_by_every_shard_and_what_is_none(monkeypatch):
    for number in (1, 4):
        said = rf"CULTURE_SHARD={number}/4: the 3 documents of blend_uk are in 3 clusters"
        with pytest.raises(SettingsError, match=said):
            documents(monkeypatch, "blend_uk", f"{number}/4")
    for text in ("3", "0/3", "4/3", "1/0", "-1/3", "1/3/3", "a/b", "1 / 3", "1.0/3"):
        with pytest.raises(SettingsError, match=r"CULTURE_SHARD=.*such as 3/16"):
            documents(monkeypatch, "care_zh", text)


def numbered(results, task):
    return [sample["doc_id"] for sample in results["samples"][task]]


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_samples_have_the_numbers_of_the_whole_task_and_rows_say_that_they_are_of_a_shard(harness, monkeypatch):
    monkeypatch.setenv("CULTURE_SHARD", "2/3")
    results = run(harness, ["care"])
    assert numbered(results, "care_zh") == [1, 4, 7]
    rows = results["results"]
    assert all("(shard 2 of 3)" in rows[name]["alias"] for name in ("care", "care_zh"))
    named = results["configs"]["care_zh"]["metadata"]["shard"]
    assert named.items() >= {"number": 2, "of": 3, "documents": 3, "of_documents": 10}.items()
    limited = run(harness, ["care_zh"], limit=2)
    assert numbered(limited, "care_zh") == [1, 4]  # a limit is of the shard's documents


def test_examples_are_those_of_the_whole_task_in_every_shard(tmp_path, monkeypatch):
    def prompts(shard):
        monkeypatch.setenv("CULTURE_SHARD", shard)
        results = run("lm_eval", tasks, include=tmp_path)
        return {sample["doc_id"]: sample["arguments"][0][0] for sample in results["samples"]["variant"]}

    tasks = variant(tmp_path, "lm_eval", "culturalvqa_blind", num_fewshot=4)
    whole = prompts("")
    assert len(set(whole.values())) == len(whole) > 10
    assert {**prompts("1/2"), **prompts("2/2")} == whole


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_a_variant_that_chooses_documents_has_no_shards(harness, tmp_path, monkeypatch):
    monkeypatch.setenv("CULTURE_SHARD", "1/2")
    (tmp_path / "choose.py").write_text("def some(data):\n    return data.select(range(2))\n", encoding="utf-8")
    tasks = variant(tmp_path, harness, "care_zh")
    file = tmp_path / "variant.yaml"
    if harness == "lmms_eval":
        chosen = "def some(data):\n    from culture_tasks.harness.lmms_eval import hooks\n"
        chosen += "    return getattr(hooks, 'care_zh__documents')(data).select(range(2))\n"
        (tmp_path / "choose.py").write_text(chosen, encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8") + "process_docs: !function choose.some\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"^variant: its process_docs leaves 2 of the 5 documents of shard 1 of 2"):
        run(harness, tasks, include=tmp_path)


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
@pytest.mark.parametrize(
    ("variable", "value", "part"),
    [
        ("CULTURE_SHARD", "1/2", "shard 1 of 2"),
        ("CULTURE_SUBSET", "2", "a subset of 2 of"),
    ],
)
def test_requests_of_a_part_are_not_kept_under_the_name_of_the_task(harness, monkeypatch, variable, value, part):
    monkeypatch.setenv(variable, value)
    said = f"culturalbench_easy: --cache_requests keeps one set of requests for a task, and {part} .* unset {variable}"
    with pytest.raises(SettingsError, match=said):
        run(harness, ["culturalbench_easy"], cache_requests=True)


def test_lmms_eval_s_response_cache_tells_shards_apart(tmp_path, monkeypatch, fixture_data):
    """Documents of two shards have the same numbers, and pictures are no part of a key of the cache."""
    shutil.copytree(fixture_data / "culturalvqa", tmp_path / "culturalvqa")
    file = tmp_path / "culturalvqa" / "test.jsonl"
    rows = [json.loads(line) | {"question": "What is this?"} for line in file.read_text("utf-8").splitlines()]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    model = ChatEcho()
    for shard, asked in (("1/2", 11), ("1/2", 11), ("2/2", 22)):
        monkeypatch.setenv("CULTURE_SHARD", shard)
        run_lmms_eval(model, ["culturalvqa"], use_cache=str(tmp_path / "cache"))
        assert len(model.seen) == asked
