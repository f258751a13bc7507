"""The benchmark of insertion's cost runs, and its real-size shape has the size that Table 4 gives."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "insertion.py"


@pytest.mark.slow
def test_prints_a_line_a_method():
    run = subprocess.run([sys.executable, SCRIPT, "--cases", "2"], capture_output=True, text=True, check=True)
    head, *lines = run.stdout.splitlines()
    assert len(lines) == 4
    assert "to the plain model" in head
    for name in ("base", "ike", "mcki, not activated", "mcki, activated"):
        assert any(line.strip().startswith(name) for line in lines)


def test_the_shape_has_the_parameters_of_table_4():
    from transformers import InternVLForConditionalGeneration

    spec = importlib.util.spec_from_file_location("insertion_benchmark", SCRIPT)
    benchmark = importlib.util.module_from_spec(spec)
    sys.modules["insertion_benchmark"] = benchmark
    spec.loader.exec_module(benchmark)
    with torch.device("meta"):
        model = InternVLForConditionalGeneration(benchmark.shaped_config("internvl3.5-8b", image_token_id=5))
    assert round(model.num_parameters() / 1e9, 2) == 8.53
