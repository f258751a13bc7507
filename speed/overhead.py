"""What our bookkeeping costs: ``culturalvqa_blind`` against a trivial task of the same size, in both harnesses.

Both tasks have the same N text-only rows, the same generation settings and the harness's ``dummy`` model, which answers
at once, and both are run as users run them: the harness's own command with its samples logged and its result files
written. The trivial task has one metric over numbers, and its prompt is the question. Each run is a separate process.
Time is measured from the moment the harness has its tasks (start-up and data loading apart) until all files are
written, as time on the clock and as processor time; the whole run with start-up is given beside it. Runs alternate;
medians, their ratio and their difference for each document are printed: the ratio alone hides that the harnesses have
costs of their own after loading that don't grow with the documents.

    python speed/overhead.py --documents 10000 --repeats 5
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import jsonlines

TASKS = ("trivial", "culturalvqa_blind")
KINDS = ("evaluation", "processor", "whole")

_RUN = """
import json, sys, time
clocks = (time.perf_counter, time.process_time)
started = [clock() for clock in clocks]
manager_module, loading, main_module, main, *sys.argv = sys.argv[1:]
manager = getattr(__import__(manager_module, fromlist=["TaskManager"]), "TaskManager")
load = getattr(manager, loading)
ready = []
def timed(*args, **kwargs):
    tasks = load(*args, **kwargs)
    ready.extend(clock() for clock in clocks)
    return tasks
setattr(manager, loading, timed)
getattr(__import__(main_module, fromlist=[main]), main)()
ended = [clock() for clock in clocks]
print(json.dumps({
    "evaluation": ended[0] - ready[0], "processor": ended[1] - ready[1], "whole": ended[0] - started[0]
}))
"""

_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "lmms_eval": (
        *("lmms_eval.tasks", "load_task_or_group", "lmms_eval.__main__", "cli_evaluate", "lmms-eval"),
        *("--model", "dummy", "--model_args", "response=dish"),
    ),
    "lm_eval": (
        *("lm_eval.tasks", "load", "culture_tasks.cli.main", "main", "culture-tasks", "lm-eval", "run"),
        *("--model", "dummy"),
    ),
}

_COMMON_YAML = """
task: trivial
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_text: !function trivial.text
doc_to_target: country
process_results: !function trivial.score
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""

_YAMLS = {
    "lmms_eval": """
doc_to_visual: !function trivial.visual
generation_kwargs:
  until: []
  max_new_tokens: 64
  do_sample: false
  temperature: 0
  num_beams: 1
""",
    "lm_eval": """
num_fewshot: 0
generation_kwargs:
  until: []
  max_gen_toks: 64
  do_sample: false
""",
}

_HOOKS = """
def visual(doc):
    return []

def text(doc):
    return doc["question"]

def score(doc, results):
    return {"acc": float(results[0] == doc["country"])}
"""


def _write_data(folder: Path, documents: int) -> None:
    rows = [
        {
            "u_id": str(number),
            "question": f"What is dish number {number} called?",
            "facet": "food",
            "country": "Brazil",
            "all_answers": ["feijoada", f"dish {number}"],
        }
        for number in range(documents)
    ]
    data = folder / "culturalvqa" / "test.jsonl"
    data.parent.mkdir(parents=True)
    with jsonlines.open(data, "w") as file:
        file.write_all(rows)
    for harness, yaml in _YAMLS.items():
        tasks = folder / harness
        tasks.mkdir()
        (tasks / "trivial.py").write_text(_HOOKS, encoding="utf-8")
        (tasks / "trivial.yaml").write_text(_COMMON_YAML.format(data=data) + yaml, encoding="utf-8")


def _measure(harness: str, task: str, folder: Path, judge: str) -> dict[str, float]:
    environment = {**os.environ, "CULTURE_TASKS_DATA": str(folder), "CULTURE_JUDGE": judge, "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory(dir=folder) as output:
        arguments = ["--tasks", task, "--include_path", str(folder / harness), "--log_samples", "--output_path", output]
        command = [sys.executable, "-c", _RUN, *_COMMANDS[harness], *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not list(Path(output).rglob("*samples*.jsonl")):
            raise SystemExit(f"{harness}, {task}: the run failed\n{done.stderr[-3000:]}")
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def _compare(harness: str, folder: Path, documents: int, repeats: int, judge: str) -> None:
    runs = [{task: _measure(harness, task, folder, judge) for task in TASKS} for _ in range(repeats)]
    for kind in KINDS:
        trivial, ours = (statistics.median(run[task][kind] for run in runs) for task in TASKS)
        more = (ours - trivial) / documents * 1e6
        print(
            f"{harness:>9} {kind:>10}: trivial {trivial:.2f} s, ours {ours:.2f} s, ratio {ours / trivial:.2f}", end=""
        )
        print(f", {more:+.0f} microseconds a document")


def main() -> None:
    """Runs the comparison and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--harness", choices=tuple(_COMMANDS), nargs="+", default=list(_COMMANDS))
    parser.add_argument("--judge", choices=("lexical", "none"), default="none", help="lexical adds the grading itself")
    options = parser.parse_args()
    print(f"{options.documents} documents, {options.repeats} runs each, CULTURE_JUDGE={options.judge}, dummy model")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_data(folder, options.documents)
        for harness in options.harness:
            _compare(harness, folder, options.documents, options.repeats, options.judge)


if __name__ == "__main__":
    main()
