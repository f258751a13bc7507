"""The benchmark of insertion's cost runs, and its real-size shape has the size that Table 4 gives."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "insertion.py"


@pytest.fixture(scope="module")
def benchmark_script():
    spec = importlib.util.spec_from_file_location("insertion_benchmark", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    sys.modules["insertion_benchmark"] = script
    spec.loader.exec_module(script)
    return script


@pytest.mark.slow
def test_latency_has_a_line_a_method():
    asked = ["--part", "latency", "--cases", "2", "--methods", "base,mcki"]
    run = subprocess.run([sys.executable, SCRIPT, *asked], capture_output=True, text=True, check=True)
    head, *lines = run.stdout.strip().splitlines()
    assert "to the plain model" in head
    assert [line.split("  ")[0] for line in map(str.strip, lines)] == [
        "base",
        "mcki, not activated",
        "mcki, activated",
    ]


@pytest.mark.slow
def test_throughput_has_the_rates_and_says_whether_texts_are_the_same():
    asked = ["--part", "throughput", "--requests", "4", "--rounds", "1", "--batches", "1,4"]
    run = subprocess.run([sys.executable, SCRIPT, *asked], capture_output=True, text=True, check=True)
    assert run.stdout.count("texts at all batch sizes are the same") == 3
    for row in ("plain", "as ike asks", "as mcki asks", "features", "internvl_hf (bfloat16)", "IKE", "MCKI"):
        assert any(line.strip().startswith(row) for line in run.stdout.splitlines())


@pytest.mark.parametrize(("shape", "billions"), [("internvl3.5-8b", 8.53), ("qwen3.5-9b", 9.41)])
def test_the_shapes_have_the_parameters_of_table_4(benchmark_script, shape, billions):
    kind, config, _ = benchmark_script.shaped(shape)
    with torch.device("meta"):
        model = kind(config)
    assert round(model.num_parameters() / 1e9, 2) == billions
