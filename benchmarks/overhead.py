"""What our bookkeeping costs: ``culturalvqa`` against a trivial task of the same size, in the same harness.

Both tasks have N text-only documents and lmms-eval's ``dummy`` model, which answers at once. Each run is a process of
its own. Time is measured from the moment the harness has its tasks (start-up apart) to the end of the process, and the
whole run with start-up is given beside it. Runs alternate; medians and their ratio are printed.

    python benchmarks/overhead.py --documents 10000 --repeats 3
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_RUN = """
import json, sys, time
started = time.perf_counter()
import culture_tasks.harness.lmms_eval.plugin as plugin
from lmms_eval import evaluator
from lmms_eval.tasks import TaskManager
plugin.register()
manager = TaskManager(include_path=sys.argv[2])
load = manager.load_task_or_group
ready = []
def timed(*args, **kwargs):
    tasks = load(*args, **kwargs)
    ready.append(time.perf_counter())
    return tasks
manager.load_task_or_group = timed
results = evaluator.simple_evaluate(model="dummy", tasks=[sys.argv[1]], task_manager=manager, batch_size=1)
with open(sys.argv[3], "w") as file:
    json.dump(results["samples"], file, default=str)
ended = time.perf_counter()
print(json.dumps({"evaluation": ended - ready[0], "whole": ended - started}))
"""

_TRIVIAL_YAML = """
task: trivial
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_visual: !function trivial.visual
doc_to_text: !function trivial.text
doc_to_target: country
process_results: !function trivial.score
generation_kwargs:
  max_new_tokens: 64
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""

_TRIVIAL_HOOKS = """
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
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    tasks = folder / "tasks"
    tasks.mkdir()
    (tasks / "trivial.py").write_text(_TRIVIAL_HOOKS, encoding="utf-8")
    (tasks / "trivial.yaml").write_text(_TRIVIAL_YAML.format(data=data), encoding="utf-8")


def _measure(task: str, folder: Path, judge: str) -> dict[str, float]:
    environment = {**os.environ, "CULTURE_TASKS_DATA": str(folder), "CULTURE_JUDGE": judge}
    command = [sys.executable, "-c", _RUN, task, str(folder / "tasks"), str(folder / "samples.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{task}: the run failed\n{done.stderr[-3000:]}")
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def main() -> None:
    """Runs the comparison and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--judge", choices=("lexical", "none"), default="none", help="lexical adds the grading itself")
    options = parser.parse_args()
    runs: dict[str, list[dict[str, float]]] = {"trivial": [], "culturalvqa_blind": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_data(folder, options.documents)
        for _ in range(options.repeats):
            for task, measured in runs.items():
                measured.append(_measure(task, folder, options.judge))
    print(f"{options.documents} documents, {options.repeats} runs each, CULTURE_JUDGE={options.judge}, dummy model")
    for kind in ("evaluation", "whole"):
        trivial, ours = (statistics.median(run[kind] for run in measured) for measured in runs.values())
        print(f"{kind:>10}: trivial {trivial:6.2f} s, culturalvqa {ours:6.2f} s, ratio {ours / trivial:.2f}")


if __name__ == "__main__":
    main()
