"""``culture-tasks preferences build`` end to end: TRL's form, the same bytes, all or nothing; and its manifest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import datasets
import pytest
from support.rated_data import row, rows_of, write_rows

from culture_tasks.cli.main import main
from culture_tasks.errors import DataError
from culture_tasks.results.trained_on import Manifest, question_fingerprint

DATA = {f"{method}/{split}.jsonl" for method in ("sft", "dpo", "kto") for split in ("train", "dev")}


@pytest.fixture(autouse=True)
def data_folder(monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))


@pytest.fixture
def rated(tmp_path):
    return write_rows(tmp_path / "rated.jsonl", rows_of(20))


def build(*arguments):
    return main(["preferences", "build", *map(str, arguments)])


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_method_gets_rows_in_trls_form(rated, tmp_path, capsys):
    out = tmp_path / "out"
    assert build(rated, "-o", out) == 0
    assert {name for name in contents(out) if name.endswith(".jsonl")} == DATA
    (first, *_) = lines(out / "dpo/train.jsonl")
    question = first["prompt"][0]["content"]
    number = question.removeprefix("What is polite at table ").removesuffix("?")
    facts = {"question_id": question_fingerprint(question), "language": "zh", "category": "norms", "culture": "native"}
    rated_by = {"chosen_rating": 9.0, "rejected_rating": 3.0, "chosen_by": "LLM", "rejected_by": "LLM"}
    assert first == {
        "prompt": [{"role": "user", "content": question}],
        "chosen": [{"role": "assistant", "content": f"custom 9 of table {number}"}],
        "rejected": [{"role": "assistant", "content": f"custom 3 of table {number}"}],
        **facts,
        **rated_by,
    }
    (reference, *_) = lines(out / "sft/train.jsonl")
    answer = f"the answer to {reference['prompt'][0]['content']}"
    assert reference["completion"] == [{"role": "assistant", "content": answer}]
    labels = [(each["label"], each["rating"]) for each in lines(out / "kto/train.jsonl")]
    assert labels == [(True, 9.0), (False, 3.0)] * 18
    manifest = manifest_of(out)
    assert (len(manifest["items"]), len(manifest["dev_items"])) == (18, 2)
    assert manifest["counts"]["dpo_train_rows"] == 18
    assert re.search(r"train pairs +18\n", capsys.readouterr().out)
    for method, columns in {"sft": {"completion"}, "dpo": {"chosen", "rejected"}, "kto": {"label"}}.items():
        loaded = datasets.load_dataset(str(out / method))  # as TRL does
        assert set(loaded) == {"train", "validation"}
        assert {"prompt", *columns} <= set(loaded["train"].column_names)
        assert loaded["train"].features == loaded["validation"].features


def test_the_same_input_and_seed_give_the_same_bytes_in_another_process_too(rated, tmp_path, monkeypatch):
    about = {"associated_culture": "Foreign", "language": "zh"}
    rows = [each | about | {"question": f"{each['question']} abroad"} for each in rows_of(20)]
    foreign = write_rows(tmp_path / "foreign.jsonl", rows)
    options = [str(rated), str(foreign), "-o", "out", "--fraction", "0.5", "--culture", "mixed"]
    for name, *seed in (("same",), ("other", "--seed", "1"), ("process",)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        if name == "process":
            command = [sys.executable, "-m", "culture_tasks.cli.main", "preferences", "build", *options]
            subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "1"}, timeout=120)
        else:
            assert build(*options, *seed) == 0
    same, other, process = (contents(tmp_path / name) for name in ("same", "other", "process"))
    assert same == process
    assert same["out/dpo/train.jsonl"] != other["out/dpo/train.jsonl"]


def test_questions_of_the_tests_are_left_out_and_counted_or_named_in_the_manifest(
    rated, tmp_path, fixture_data, capsys
):
    (asked, *_) = json.loads((fixture_data / "care/Chinese-test.json").read_text(encoding="utf-8"))
    question = asked["question"]
    leak = [row(f"「{question}」", "a", 3), row(question, "b", 9)]
    near = [row(f"请问{question}", "a", 3), row(f"请问{question}", "b", 9)]
    write_rows(rated, rows_of(20) + leak + near)
    assert build(rated, "-o", tmp_path / "out") == 0
    manifest = manifest_of(tmp_path / "out")
    assert manifest["counts"]["questions_held_out"] == 1
    assert question_fingerprint(question) not in manifest["items"] + manifest["dev_items"]
    assert not manifest["tested_items"]
    assert set(manifest["rule"]["hold_out"]) == {"care_ar", "care_ja", "care_zh"}
    assert not any(f'"{question}"'.encode() in text for text in contents(tmp_path / "out").values())
    (listed,) = manifest["near_duplicates"]
    assert (listed["question"], listed["task"]) == (question_fingerprint(f"请问{question}"), "care_zh")
    assert "resemble one of a test, and aren't left out: 1. The closest:" in capsys.readouterr().out
    assert build(rated, "-o", tmp_path / "trained", "--train-on-test", "--dev", 0) == 0
    manifest = manifest_of(tmp_path / "trained")
    assert question_fingerprint(question) in manifest["items"]
    assert len(manifest["tested_items"]["care_zh"]) == 1
    assert manifest["tested_items"]["care_zh"] == manifest["tested_items"]["care_greedy_zh"]
    assert manifest["rule"]["test_questions"]


def test_questions_are_chosen_by_language_and_category_and_unknown_characters_are_replaced(tmp_path):
    about = {"cul_type": "Opinion", "associated_culture": "General"}
    rows = rows_of(4) + [row("كيف", text, rating, **about) for text, rating in (("a\ud800", 3), ("b", 9))]
    path = tmp_path / "rated.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    options = ("--language", "ar", "--category", "OPINION", "--dev", 0)
    assert build(path, "-o", tmp_path / "ar", *options) == 0
    assert manifest_of(tmp_path / "ar")["counts"]["questions_of_another_language"] == 4
    (pair,) = lines(tmp_path / "ar/dpo/train.jsonl")
    assert [pair[name][0]["content"] for name in ("chosen", "rejected")] == ["b", "a\ufffd"]


def test_a_full_disk_leaves_nothing_and_an_empty_folder_is_filled(rated, tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    (tmp_path / "empty").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", full)
        assert build(rated, "-o", tmp_path / "empty") == 1
    assert "can't write" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["empty", "rated.jsonl"]
    assert build(rated, "-o", tmp_path / "empty") == 0


def test_a_manifest_is_read_from_its_file_and_from_its_folder_and_anything_else_is_refused(rated, tmp_path):
    assert build(rated, "-o", tmp_path / "out") == 0
    path = tmp_path / "out" / "manifest.json"
    assert Manifest.load(path) == Manifest.load(tmp_path / "out")
    with pytest.raises(DataError, match=r"nowhere: can't be read .* Expected the manifest, format 1, of a folder"):
        Manifest.load(tmp_path / "nowhere")
    for text, said in (
        (json.dumps(manifest_of(tmp_path / "out") | {"format": 2}), "format, Input should be 1"),
        ("{", ""),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=f"not a manifest, {said}"):
            Manifest.load(path)


def test_case_punctuation_and_width_make_no_other_question():
    for one, other, same in (
        ("Do you tip in Cairo?", "do you  tip in ＣＡＩＲＯ", True),
        ("كَيْفَ الحال؟", "كيف الحـال", True),
        ("在中国，超市里？", "在中国超市里", True),
        ("Do you tip in Cairo?", "Do you tip in Rome?", False),
        ("?!", "!!", False),
    ):
        assert (question_fingerprint(one) == question_fingerprint(other)) is same
