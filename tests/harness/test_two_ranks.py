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


def launched(ranks, module, arguments, fixture_data):
    """Runs a harness's command line on that many ranks, and returns what it printed."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks), "-m"]
    environment = os.environ | {
        "PYTHONPATH": str(TESTS),
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
        "CULTURE_JUDGE": "lexical",
        "CULTURE_TASKS_DATA": str(fixture_data),
    }
    done = subprocess.run(
        [*command, module, *arguments], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    return done.stdout + done.stderr


def results_of(output, pattern, printed):
    files = list(output.rglob(pattern))
    assert files, printed[-4000:]
    return json.loads(files[0].read_text(encoding="utf-8"))["results"]


def run(ranks, output, fixture_data):
    arguments = ["--model", "echo_chat", "--tasks", ",".join(TASKS), "--output_path", str(output)]
    arguments.append("--log_samples")
    printed = launched(ranks, "support.run_lmms_eval", arguments, fixture_data)
    return results_of(output, "*_results.json", printed), output


def assert_same_values(one, two):
    values = {key: value for key, value in one.items() if isinstance(value, float)}
    assert values
    for key, value in values.items():
        assert math.isclose(value, two[key]) or (math.isnan(value) and math.isnan(two[key])), key


def logged(output, task):
    [file] = output.rglob(f"*_samples_{task}.jsonl")
    samples = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {sample["doc_id"]: sample for sample in samples}


def test_two_ranks_of_lmms_eval_equal_one(tmp_path, fixture_data):
    one, one_output = run(1, tmp_path / "one", fixture_data)
    two, two_output = run(2, tmp_path / "two", fixture_data)
    for task in TASKS:
        assert_same_values(one[task], two[task])
        ours, theirs = logged(one_output, task), logged(two_output, task)
        metric = "lave_lexical" if "vqa" in task else "care_rating_lexical"
        assert {number: sample[metric] for number, sample in ours.items()} == {
            number: sample[metric] for number, sample in theirs.items()
        }
        assert all(sample[metric]["runs"][0]["outcome"] == "scored" for sample in theirs.values())


def test_two_ranks_of_lm_eval_equal_one(tmp_path, fixture_data):
    found = {}
    for ranks in (1, 2):
        output = tmp_path / f"{ranks}.json"
        printed = launched(ranks, "support.ranked_lm", ["care_greedy_zh", str(output)], fixture_data)
        assert output.is_file(), printed[-4000:]
        found[ranks] = json.loads(output.read_text(encoding="utf-8"))
    assert [found[ranks]["shares"] for ranks in (1, 2)] == [[10], [5, 5]]
    assert_same_values(found[1]["values"], found[2]["values"])
    one, two = ({record["item"]: record for record in found[ranks]["samples"]} for ranks in (1, 2))
    assert one == two
