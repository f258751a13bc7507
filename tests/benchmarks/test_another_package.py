"""A benchmark of another package runs by the commands of both harnesses, with no edit of this one.

``test_scores_of_clusters`` has its rejudge, report and frames.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support import another_package

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The package where Python finds it, with the task files that it would ship."""
    with another_package.installed(tmp_path_factory.mktemp("site")) as folder:
        return folder


def python(site, *arguments):
    environment = os.environ | {"PYTHONPATH": str(site), "CULTURE_JUDGE": "lexical", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def runs(installed, tmp_path_factory):
    """Folders with the results of both harnesses."""
    output = tmp_path_factory.mktemp("runs")
    options = ["--model", "dummy", "--tasks", "proverbs", "--log_samples", "--output_path"]
    python(installed, "-m", "lmms_eval", *options, str(output / "lmms_eval"), "--model_args", "response=run deep")
    python(installed, "-m", "culture_tasks.cli.main", "lm-eval", "run", *options, str(output / "lm_eval"))
    return output


def result_file(folder):
    [path] = (path for path in folder.rglob("*.json") if "results" in path.name)
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("harness", ["lm_eval", "lmms_eval"])
def test_both_harnesses_run_it(runs, harness):
    results = result_file(runs / harness)["results"]
    scores = [results[f"proverbs_{region}"]["ending_lexical,none"] for region in ("north", "south")]
    if harness == "lmms_eval":  # the model says "run deep", which is the end of one of the two proverbs of the north
        assert scores == [0.5, 0.0]
        assert results["proverbs_north"]["words,none"] == 2.0
    assert all(results[f"proverbs_{region}"]["ending_coverage,none"] == 1.0 for region in ("north", "south"))
    assert results["proverbs"]["ending_lexical,none"] == pytest.approx((2 * scores[0] + 3 * scores[1]) / 5)


def test_it_stands_in_the_task_table_and_its_data_are_checked(installed):
    listed = json.loads(python(installed, "-m", "culture_tasks.cli.main", "tasks", "--json"))
    assert {"proverbs", "proverbs_north", "proverbs_south"} <= {each["name"] for each in listed}
    assert "proverbs   5   paper: 5" in python(installed, "-m", "culture_tasks.cli.main", "data", "check", "proverbs")
