"""Two ranks, of one machine or of two, give the same numbers, records and verdicts as one."""

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.cedar_data import write_folder
from support.in_process import run_lm_eval, run_lmms_eval
from support.lmms_models import EmotionalChat
from support.scripted_lm import ScriptedLM

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TESTS = Path(__file__).parents[1]
TASKS = ("care_greedy_zh", "culturalvqa_blind", "cedar_text")
GROUPS = ["crosscult_single", "crosscult_sequential"]


@pytest.fixture(autouse=True)
def data(monkeypatch, fixture_data, tmp_path):
    for name in ("care", "culturalvqa", "crosscult"):
        (tmp_path / name).symlink_to(fixture_data / name)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(tmp_path)))
    monkeypatch.setenv("CULTURE_TASKS_LANGUAGES", "en,ja,zh")
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")


def launched(nodes, *arguments):
    """Runs a module on two ranks, of one node or of one each, with the variables that torchrun would set."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    meeting |= {"PYTHONPATH": str(TESTS), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    started = []
    for rank in range(2):
        of_rank = {"RANK": rank, "LOCAL_RANK": rank % (2 // nodes), "GROUP_RANK": rank * nodes // 2}
        of_rank["LOCAL_WORLD_SIZE"] = 2 // nodes
        environment = os.environ | meeting | {name: str(value) for name, value in of_rank.items()}
        command = [sys.executable, "-m", *map(str, arguments)]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        started.append(subprocess.Popen(command, env=environment, **output))
    with ThreadPoolExecutor() as readers:
        said = list(readers.map(lambda process: process.communicate()[0], started))
    assert [process.returncode for process in started] == [0, 0], "\n".join(text[-4000:] for text in said)


def numbers(row):
    return {name: value for name, value in row.items() if isinstance(value, (int, float))}


def test_two_ranks_of_lmms_eval_on_two_machines_equal_one(tmp_path):
    tasks, out = [*TASKS, *GROUPS], tmp_path / "out"
    options = ["--model", "emotional_chat", "--tasks", ",".join(tasks), "--log_samples", "--output_path", out]
    launched(2, "support.run_lmms_eval", *options)
    [file] = out.rglob("*_results.json")
    two = json.loads(file.read_text(encoding="utf-8"))["results"]
    one = run_lmms_eval(EmotionalChat(), tasks)
    for task in tasks:
        assert len(numbers(two[task])) > 1
        assert numbers(two[task]) == pytest.approx(numbers(one["results"][task]), nan_ok=True)
    logged = {}
    for task, samples in one["samples"].items():
        [file] = out.rglob(f"*_samples_{task}.jsonl")
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        logged[task] = [row["record"] for row in rows]
        records = {row["doc_id"]: json.loads(json.dumps(row["record"])) for row in samples}
        assert {row["doc_id"]: row["record"] for row in rows} == records
        assert all(record["runs"][0]["outcome"] == "scored" for record in logged[task])
    assert sum(len(records) for task, records in logged.items() if "crosscult" in task) == 4 * 12 + 9 * 6

    cedar = two["cedar_text"]
    assert len(numbers(cedar)) > 30
    # Gold of en, ja and zh: happiness 3, sadness 2, embarrassment 1, fear 1; happiness is said to all 7.
    assert cedar["gepp_happiness,none"] == pytest.approx(7 / 3)
    assert cedar["acc,none"] == pytest.approx(3 / 7)


def test_two_ranks_of_lm_eval_on_one_machine_equal_one(tmp_path):
    task, output = "care_greedy_zh", tmp_path / "two.json"
    launched(1, "support.ranked_lm", task, output)
    two = json.loads(output.read_text(encoding="utf-8"))
    one = run_lm_eval(ScriptedLM(lambda prompt, _: prompt[-20:]), [task])
    assert two["shares"] == [5, 5]
    assert numbers(two["values"]) == pytest.approx(numbers(one["results"][task]), nan_ok=True)
    expected = {sample["record"]["item"]: sample["record"] for sample in one["samples"][task]}
    assert {record["item"]: record for record in two["samples"]} == expected
