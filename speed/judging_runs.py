"""Whole harness runs that judge, for ``speed/judge.py``: the harnesses' own ways and this project's.

A run is a separate process: an unmodified harness, its ``dummy`` model, N documents. The harnesses' own ways are a
task whose ``process_results`` asks the judge (lmms-eval's ``llm_judge`` there, the ``openai`` package in lm-eval);
ours is ``culturalvqa_blind``. All send the same messages. Time is measured from the first document's
``process_results`` to the last aggregation, when all verdicts are in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import jsonlines

_LMMS_EVAL = """
import sys
import culture_tasks.harness.lmms_eval.plugin as plugin
try:  # aggregation imports this for any task, with all that it needs, the first time: that is starting up
    import lmms_eval.tasks.amber_g.utils
except ImportError:
    pass
from lmms_eval import evaluator, evaluator_utils
from lmms_eval.tasks import TaskManager
task, folder, workers = sys.argv[1:]
plugin.register()
evaluator._process_document_results = began_at(evaluator._process_document_results)
evaluator_utils.TaskOutput.calculate_aggregate_metric = ended_at(
    evaluator_utils.TaskOutput.calculate_aggregate_metric
)
results = evaluator.simple_evaluate(
    model="dummy", tasks=[task], task_manager=TaskManager(include_path=folder), batch_size=1,
    process_docs_parallel=int(workers),
)
show(results["results"][task])
"""

_LM_EVAL = """
import sys
from lm_eval import evaluator, evaluator_utils
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks import TaskManager
task, folder, _ = sys.argv[1:]
ConfigurableTask.process_results = began_at(ConfigurableTask.process_results)
evaluator_utils.aggregate_groups = ended_at(evaluator_utils.aggregate_groups)
results = evaluator.simple_evaluate(
    model="dummy", tasks=[task], task_manager=TaskManager(include_path=folder), bootstrap_iters=0
)
show(results["results"][task])
"""

_CLOCK = """
import functools, json, time
times = []
def began_at(function):
    @functools.wraps(function)
    def timed(*args, **kwargs):
        if not times:
            times.append((time.perf_counter(), time.process_time()))
        return function(*args, **kwargs)
    return timed
def ended_at(function):
    @functools.wraps(function)
    def timed(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        finally:
            times[1:] = [(time.perf_counter(), time.process_time())]
    return timed
def show(scores):
    began, ended = times
    print(json.dumps([ended[0] - began[0], ended[1] - began[1], scores]))
"""

_YAML = """
task: {task}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
{visual}
doc_to_text: question
doc_to_target: country
process_results: !function {task}.score
generation_kwargs:
  max_gen_toks: 64
metric_list:
  - metric: judged
    aggregation: mean
    higher_is_better: true
"""

_COMMON_HOOKS = """
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.rubric.verdicts import JudgeItem

def visual(doc):
    return []

def messages(doc, results):
    item = JudgeItem(doc["question"], tuple(doc["all_answers"]), results[0])
    return [dict(message) for message in LAVE.messages(item)]
"""

_LMMS_EVAL_HOOKS = """
from lmms_eval.llm_judge import Request, ServerConfig, get_server
from loguru import logger
logger.remove()
server = get_server(server_name="openai", config=ServerConfig(model_name="judge"))

def score(doc, results):
    return {"judged": float("rating=2" in server.evaluate(Request(messages=messages(doc, results))).content)}
"""

_LM_EVAL_HOOKS = """
from openai import OpenAI
client = OpenAI()

def score(doc, results):
    reply = client.chat.completions.create(
        model="judge", messages=messages(doc, results), **LAVE.sampling
    )
    return {"judged": float("rating=2" in reply.choices[0].message.content)}
"""


def _write(folder: Path, documents: int) -> None:
    rows = [
        {
            "u_id": str(number),
            "question": f"What is the dish in picture {number} called?",
            "country": "India",
            "facet": "food",
            "all_answers": ["biryani", "hyderabadi biryani", "a rice dish of Hyderabad"],
        }
        for number in range(documents)
    ]
    data = folder / "culturalvqa" / "test.jsonl"
    data.parent.mkdir()
    with jsonlines.open(data, "w") as file:
        file.write_all(rows)
    for harness, hooks in (("lmms_eval", _LMMS_EVAL_HOOKS), ("lm_eval", _LM_EVAL_HOOKS)):
        task, tasks = f"judged_in_{harness}", folder / harness
        tasks.mkdir()
        (tasks / f"{task}.py").write_text(_COMMON_HOOKS + hooks, encoding="utf-8")
        visual = f"doc_to_visual: !function {task}.visual" if harness == "lmms_eval" else ""
        (tasks / f"{task}.yaml").write_text(_YAML.format(task=task, data=data, visual=visual), encoding="utf-8")


def _run(script: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    settings = {"OPENAI_API_KEY": "none", "CULTURE_TASKS_DATA": str(folder), "HF_HOME": str(folder / "hf")}
    settings["HF_HUB_OFFLINE"] = "1"  # a harness may ask the Hub for things that no score needs
    command = [sys.executable, "-c", _CLOCK + script, *arguments]
    done = subprocess.run(
        command, env={**os.environ, **settings, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{arguments[0]}: the run failed\n{done.stderr[-3000:]}")
    seconds, cpu, scores = json.loads(done.stdout.splitlines()[-1])
    judged = scores.get("judged,none", scores.get("lave,none"))
    if judged != 1.0:
        raise SystemExit(f"{arguments[0]}: not all were judged\n{scores}")
    return seconds, cpu


def lmms_eval_way(url: str, workers: int, documents: int) -> tuple[float, float]:
    """Runs lmms-eval with its ``llm_judge`` in ``process_results``.

    Args:
        url: Base URL of the judge.
        workers: ``--process_docs_parallel``.
        documents: How many documents.

    Returns:
        Seconds, and seconds of processor time, from the first document's ``process_results`` to the last score.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, documents)
        arguments = ("judged_in_lmms_eval", str(folder / "lmms_eval"), str(workers))
        return _run(_LMMS_EVAL, arguments, folder, {"OPENAI_API_URL": url, "OPENAI_BASE_URL": url})


def lm_eval_way(url: str, documents: int) -> tuple[float, float]:
    """Runs lm-eval with the ``openai`` package in ``process_results``, which it calls one document after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, documents)
        arguments = ("judged_in_lm_eval", str(folder / "lm_eval"), "1")
        return _run(_LM_EVAL, arguments, folder, {"OPENAI_BASE_URL": url})


def our_way(url: str, in_flight: int, documents: int) -> tuple[float, float]:
    """Runs lmms-eval, with its default of four workers, on our ``culturalvqa_blind``, with an empty verdict cache."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, documents)
        environment = {
            "OPENAI_BASE_URL": url,
            "CULTURE_JUDGE": "openai:judge",
            "CULTURE_JUDGE_CACHE": str(folder / "verdicts.sqlite3"),
            "CULTURE_JUDGE_CONCURRENCY": str(in_flight),
        }
        return _run(_LMMS_EVAL, ("culturalvqa_blind", str(folder / "lmms_eval"), "4"), folder, environment)
