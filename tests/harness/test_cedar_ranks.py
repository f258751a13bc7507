"""CEDAR on the command line with one and two ranks, and with models that compute."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.cedar_data import counted, worked_out, write_folder

from culture_tasks.benchmarks.cedar.reported import pooled

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]


def _result(folder):
    (path,) = folder.rglob("*_results.json")
    return json.loads(path.read_text(encoding="utf-8"))["results"]["cedar_text"]


def _records(folder):
    (path,) = folder.rglob("*_samples_cedar_text.jsonl")
    return [json.loads(line)["acc"] for line in path.read_text(encoding="utf-8").splitlines()]


def _numbers(result):
    return {name: value for name, value in result.items() if isinstance(value, (int, float))}


@pytest.mark.timeout(600)
def test_two_ranks_give_the_numbers_of_one(tmp_path):
    environment = os.environ | {
        "PYTHONPATH": str(TESTS),
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
        "CULTURE_TASKS_DATA": str(write_folder(tmp_path)),
        "CULTURE_TASKS_LANGUAGES": "en,ja,zh",
    }
    common = ["-m", "support.run_lmms_eval", "--model", "emotional_chat", "--tasks", "cedar_text", "--log_samples"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    for name, start in (("one", [sys.executable]), ("two", torchrun)):
        command = [*start, *common, "--output_path", str(tmp_path / name)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    one, two = _numbers(_result(tmp_path / "one")), _numbers(_result(tmp_path / "two"))
    assert len(one) > 40
    assert one == pytest.approx(two, nan_ok=True)
    assert len(_records(tmp_path / "two")) == 15
    again = worked_out(counted(_records(tmp_path / "two")), pooled())
    of_samples = {f"{name},none": value for name, value in again.items() if f"{name},none" in two}
    assert len(of_samples) > 35
    assert two == pytest.approx({**two, **of_samples}, nan_ok=True)
    # Gold of en, ja and zh: happiness 3, sadness 2, embarrassment 1, fear 1; happiness is said to all 7.
    assert two["gepp_happiness,none"] == pytest.approx(7 / 3)
    assert two["acc,none"] == pytest.approx(3 / 7)
    assert math.isnan(two["acc_sw,none"])


@pytest.fixture
def toy_data(fixture_data, monkeypatch):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))


def _check(results):
    records = [sample["acc"] for sample in results["samples"]["cedar_multimodal"]]
    assert len(records) == 14
    assert len({record["response"] for record in records}) > 7  # each image and language is answered in its own way
    found = {name: results["results"]["cedar_multimodal"].get(f"{name},none") for name in ("acc", "unparsed")}
    again = worked_out(records, pooled())
    assert found == {name: again[name] for name in found}


def test_a_tiny_model_of_images_runs_in_lm_eval(tiny_vlm, toy_data):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    from culture_tasks.catalog import task_folder

    results = simple_evaluate(
        model="hf-multimodal",
        model_args={"pretrained": str(tiny_vlm), "device": "cpu", "dtype": "float32"},
        tasks=["cedar_multimodal"],
        task_manager=TaskManager(include_path=str(task_folder("lm_eval")), include_defaults=False),
        limit=14,
        bootstrap_iters=0,
        log_samples=True,
    )
    _check(results)


def test_a_tiny_model_of_images_runs_in_lmms_eval(tiny_vlm, toy_data):
    import lmms_eval.models  # noqa: F401 - loads the plug-in
    from lmms_eval.evaluator import simple_evaluate

    results = simple_evaluate(
        model="internvl_hf",
        model_args=f"pretrained={tiny_vlm},device=cpu,device_map=cpu",
        tasks=["cedar_multimodal"],
        limit=14,
        bootstrap_iters=0,
        log_samples=True,
    )
    _check(results)
