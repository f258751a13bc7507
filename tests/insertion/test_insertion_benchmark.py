"""The benchmark of insertion's cost runs, and its real-size shapes have the sizes that Table 4 gives."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

from culture_tasks.insertion.core.decoding import Decoding

SCRIPT = Path(__file__).parents[2] / "speed" / "insertion.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("insertion_benchmark", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    sys.modules["insertion_benchmark"] = script
    spec.loader.exec_module(script)
    return script


@pytest.mark.slow
def test_every_measurement_gives_its_numbers(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "Decoding", lambda **_: Decoding(max_new_tokens=4))

    def measured(*arguments):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
        script.main()
        return capsys.readouterr().out

    found = measured("--part", "throughput", "--requests", "2", "--rounds", "1", "--batches", "1,2")
    assert found.count("texts at all batch sizes are the same") == 3
    for row in ("plain", "as ike asks", "as mcki asks", "features", "IKE", "MCKI"):
        assert any(line.strip().startswith(row) for line in found.splitlines())
    alone = measured("--part", "one-latency", "--method", "mcki", "--variant", "activated", "--cases", "2")
    assert len(json.loads(alone)) == 7


@pytest.mark.parametrize(("shape", "billions"), [("internvl3.5-8b", 8.53), ("qwen3.5-9b", 9.41)])
def test_the_shapes_have_the_parameters_of_table_4(script, shape, billions):
    kind, config, _ = script.shaped(shape)
    with torch.device("meta"):
        model = kind(config)
    assert round(model.num_parameters() / 1e9, 2) == billions
