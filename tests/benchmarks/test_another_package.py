"""A benchmark of another package runs by the commands of both harnesses, with no edit of this one.

``test_scores_of_clusters`` has its rejudge, report and frames.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import another_package

TESTS = Path(__file__).parents[1]
COMMANDS = """
import runpy, sys
from culture_tasks.cli.main import main
from support import run_lm_eval

output = sys.argv[1]
assert main(["tasks", "--json"]) == main(["data", "check", "proverbs"]) == 0
options = ["--model", "dummy", "--tasks", "proverbs", "--log_samples", "--output_path"]
run_lm_eval.run("run", *options, f"{output}/lm_eval")
sys.argv = ["lmms_eval", *options, f"{output}/lmms_eval", "--model_args", "response=run deep"]
runpy.run_module("support.run_lmms_eval", run_name="__main__")
"""


@pytest.mark.slow
def test_both_harnesses_run_it_and_it_is_listed_and_checked(tmp_path):
    with another_package.installed(tmp_path / "site") as site:
        path = os.pathsep.join(map(str, (site, TESTS)))
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": path, "CULTURE_JUDGE": "lexical", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(f'"name": "{name}"' in done.stdout for name in ("proverbs", "proverbs_north", "proverbs_south"))
    assert "proverbs   5   paper: 5" in done.stdout
    for harness in ("lm_eval", "lmms_eval"):
        [path] = (path for path in (tmp_path / harness).rglob("*.json") if "results" in path.name)
        results = json.loads(path.read_text(encoding="utf-8"))["results"]
        scores = [results[f"proverbs_{region}"]["ending_lexical,none"] for region in ("north", "south")]
        if (
            harness == "lmms_eval"
        ):  # the model says "run deep", which is the end of one of the two proverbs of the north
            assert scores == [0.5, 0.0]
            assert results["proverbs_north"]["words,none"] == 2.0
        assert all(results[f"proverbs_{region}"]["ending_coverage,none"] == 1.0 for region in ("north", "south"))
        assert results["proverbs"]["ending_lexical,none"] == pytest.approx((2 * scores[0] + 3 * scores[1]) / 5)
