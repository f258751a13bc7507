"""Two ranks give the same numbers and the same verdicts as one."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
TASKS = ("care_greedy_zh", "culturalvqa_blind")


def run(ranks, output, fixture_data):
    launch = [sys.executable, "-m"]
    if ranks > 1:
        launch += ["torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks), "-m"]
    arguments = ["--model", "echo_chat", "--tasks", ",".join(TASKS), "--log_samples", "--output_path", str(output)]
    environment = os.environ | {
        "PYTHONPATH": str(TESTS),
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
        "CULTURE_JUDGE": "lexical",
        "CULTURE_TASKS_DATA": str(fixture_data),
    }
    command = [*launch, "support.run_lmms_eval", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    files = list(output.rglob("*_results.json"))
    assert files, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(files[0].read_text(encoding="utf-8"))["results"], output


def logged(output, task):
    [file] = output.rglob(f"*_samples_{task}.jsonl")
    samples = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {sample["doc_id"]: sample for sample in samples}


def test_two_ranks_equal_one(tmp_path, fixture_data):
    one, one_output = run(1, tmp_path / "one", fixture_data)
    two, two_output = run(2, tmp_path / "two", fixture_data)
    for task in TASKS:
        values = {key: value for key, value in one[task].items() if isinstance(value, float)}
        assert values
        for key, value in values.items():
            same = two[task][key]
            assert math.isclose(value, same) or (math.isnan(value) and math.isnan(same)), key
        ours, theirs = logged(one_output, task), logged(two_output, task)
        metric = "lave_lexical" if "vqa" in task else "care_rating_lexical"
        assert {number: sample[metric] for number, sample in ours.items()} == {
            number: sample[metric] for number, sample in theirs.items()
        }
        assert all(sample[metric]["runs"][0]["outcome"] == "scored" for sample in theirs.values())
