"""The measurements for one GPU run in their tiny form, with what an image with PyTorch and transformers has."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.scripts import ROOT

ABSENT = ("aiohttp", "datasets", "genai_prices", "lm_eval", "lmms_eval", "matplotlib", "openai", "pandas", "pyarrow")
PROGRAM = f"""\
import runpy, sys
sys.modules.update(dict.fromkeys({ABSENT}))
runpy.run_path("speed/on_gpu.py", run_name="__main__")
"""


@pytest.mark.slow
def test_each_part_is_measured_and_the_hours_of_table_2_follow(tmp_path):
    file = tmp_path / "figures.json"
    options = ["--tiny", "--requests", "2", "--folder", str(tmp_path), "--output", str(file)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run([sys.executable, "-c", PROGRAM, *options], cwd=ROOT, env=variables, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(file.read_text(encoding="utf-8"))
    rows = {row["what"]: row for row in figures["rows"]}
    assert len(rows) == 8
    assert all(row["seconds"] > 0 and row["peak_gib"] > 0 for row in rows.values())
    assert {row["new_tokens"] for row in rows.values()} == {None, 64}
    assert list(figures["table_2"]) == ["base", "IKE", "MCKI", "FineTune", "MEND", "SERAC"]
    seconds = 5_800 * rows["MEND step"]["seconds"] + 4_000 * rows["MEND edit"]["seconds"]
    seconds += 16_000 * rows["base request"]["seconds"]
    assert figures["table_2"]["MEND"]["hours"] == pytest.approx(seconds / 3600, abs=0.006)
