"""A build from what both harnesses really write: records, names of files, verdicts."""

from __future__ import annotations

import json

import pytest

from culture_tasks.cli.main import main
from culture_tasks.results.training_manifest import Manifest


@pytest.mark.slow
def test_models_of_both_harnesses_make_pairs(tmp_path, monkeypatch, fixture_data):
    from support.written_runs import write_lm_eval, write_lmms_eval

    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    rows = json.loads((fixture_data / "care/Chinese-test.json").read_text(encoding="utf-8"))
    answers = {each["question"]: each["answer"] for each in rows}
    write_lm_eval(tmp_path / "good", ["care_greedy_zh"], lambda prompt, _: answers[prompt.strip()], model="owner/good")
    write_lmms_eval(tmp_path / "echo", ["care_greedy_zh"], model="owner/echo")
    sources = [str(tmp_path / "good"), str(tmp_path / "echo")]
    command = ["preferences", "build", *sources, "-o", str(tmp_path / "out"), "--dev", "0", "--text-overlap"]
    assert main(command) == 1  # without being told that these are questions of a test
    assert main([*command, "--train-on-test"]) == 0
    pairs = [json.loads(line) for line in (tmp_path / "out/dpo/train.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {pair["prompt"][0]["content"] for pair in pairs} == set(answers)
    for pair in pairs:
        assert pair["chosen"][0]["content"] == answers[pair["prompt"][0]["content"]]
        assert (pair["chosen_by"], pair["rejected_by"], pair["chosen_rating"]) == ("owner/good", "owner/echo", 10.0)
        assert (pair["language"], pair["culture"]) == ("zh", "native")
    manifest = Manifest.load(tmp_path / "out")
    assert len(manifest.tested_items["care_greedy_zh"]) == len(manifest.tested_items["care_zh"]) == len(answers)
    assert {source.model for source in manifest.sources} == {"owner/good", "owner/echo"}
    assert manifest.rated_by.name.startswith("lexical:")
