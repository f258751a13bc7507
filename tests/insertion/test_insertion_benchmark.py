"""The benchmark of insertion's cost runs, and its real-size shapes have the sizes that Table 4 gives."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "speed" / "insertion.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("insertion_benchmark", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    sys.modules["insertion_benchmark"] = script
    spec.loader.exec_module(script)
    return script


def run(script, monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    script.main()
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("shape", "billions"),
    [
        ("internvl3.5-8b", 8.53),
        ("qwen3.5-9b", 9.41),
        # Table 4 gives SERAC 9.61 and 10.29, of which 0.02 are the encoder's: 1.06 and 0.86 less what was rounded.
        ("internvl3.5-1b", 1.06),
        ("qwen3.5-0.8b", 0.85),
    ],
)
def test_the_shapes_have_the_parameters_of_table_4(script, shape, billions):
    assert round(script.meta(shape).num_parameters() / 1e9, 2) == billions


def test_all_rows_are_estimated_at_the_size_of_the_release(script, monkeypatch, capsys):
    (single, sequential), cases = script.full_release()
    # Table 1: 4,000 cases with four requests each, of which two should change; 2,000 chains of three with nine.
    assert (single.after, single.in_scope, single.insertions, single.chains) == (16_000, 8_000, 4_000, 4_000)
    assert (sequential.after, sequential.insertions, sequential.chains) == (18_000, 6_000, 2_000)
    assert cases.count == 11_600
    monkeypatch.setattr(script, "full_release", lambda: ((single, sequential), cases))
    shown = run(script, monkeypatch, capsys, "--part", "estimate")
    assert shown.count("ESTIMATED") == 2
    lines = [line.split("  ")[0] for line in shown.splitlines()]
    for label in ("Base Model", "FineTune", "IKE", "MEND", "SERAC", "MSCKE", "MCKI"):
        assert lines.count(label) == 2
    mend = next(line for line in shown.splitlines() if line.startswith("MEND")).split()
    assert float(mend[1]) > 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_rows_are_measured(script, monkeypatch, capsys, tmp_path):
    for name in ("CULTURE_TASKS_DATA", "CULTURE_JUDGE", "HF_HUB_OFFLINE", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "")  # which the script sets; undone afterwards
    folder = ("--folder", str(tmp_path), "--raw-cases", "12")
    more = ("--methods", "mcki", "--batches", "2", "--limit", "1", "--cases", "4")
    shown = run(script, monkeypatch, capsys, "--part", "measure", *folder, *more)
    assert "of that the fingerprint" in shown
    rows = {line.split("  ")[0]: line.split() for line in shown.splitlines()}
    assert float(rows["MCKI"][3]) > 0  # milliseconds a training case
    assert float(rows["MCKI"][-3]) > 0  # requests a second
