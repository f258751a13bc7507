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
from support.in_process import run_lm_eval, run_lmms_eval

TESTS = Path(__file__).parents[1]


def _result(folder):
    (path,) = folder.rglob("*_results.json")
    return json.loads(path.read_text(encoding="utf-8"))["results"]["cedar_text"]


def _records(folder):
    (path,) = folder.rglob("*_samples_cedar_text.jsonl")
    return [json.loads(line)["acc"] for line in path.read_text(encoding="utf-8").splitlines()]


def _numbers(result):
    return {name: value for name, value in result.items() if isinstance(value, (int, float))}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_ranks_give_the_numbers_of_one(tmp_path, monkeypatch):
    from support.lmms_models import EmotionalChat

    monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(tmp_path)))
    monkeypatch.setenv("CULTURE_TASKS_LANGUAGES", "en,ja,zh")
    environment = os.environ | {"PYTHONPATH": str(TESTS), "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    options = ["--model", "emotional_chat", "--tasks", "cedar_text", "--log_samples", "--output_path", tmp_path / "two"]
    command = [*torchrun, "-m", "support.run_lmms_eval", *options]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    two = _numbers(_result(tmp_path / "two"))
    one = _numbers(run_lmms_eval(EmotionalChat(), ["cedar_text"])["results"]["cedar_text"])
    assert len(one) > 40
    assert one == pytest.approx(two, nan_ok=True)
    assert len(_records(tmp_path / "two")) == 15
    again = worked_out(counted(_records(tmp_path / "two")), is_pooled=True)
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
    assert (
        len({record["runs"][0]["response"] for record in records}) > 7
    )  # each image and language is answered in its own way
    found = {name: results["results"]["cedar_multimodal"].get(f"{name},none") for name in ("acc", "unparsed")}
    again = worked_out(records, is_pooled=True)
    assert found == {name: again[name] for name in found}


def test_a_tiny_model_of_images_runs_in_lm_eval(tiny_vlm, toy_data):
    arguments = {"pretrained": str(tiny_vlm), "device": "cpu", "dtype": "float32"}
    _check(run_lm_eval("hf-multimodal", ["cedar_multimodal"], model_args=arguments, limit=14, bootstrap_iters=0))


def test_a_tiny_model_of_images_runs_in_lmms_eval(tiny_vlm, toy_data):
    arguments = f"pretrained={tiny_vlm},device=cpu,device_map=cpu"
    _check(run_lmms_eval("internvl_hf", ["cedar_multimodal"], model_args=arguments, limit=14, bootstrap_iters=0))
