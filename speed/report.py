"""What a report costs: time and peak memory against the number of models and of samples.

    python speed/report.py                     # 1, 5 and 17 models with 11,000 samples each
    python speed/report.py --million           # and a million samples of 91 models
    python speed/report.py --models 8 --folder /scratch/synthetic

Each model gets result and sample files in lmms-eval's layout, about a benchmark suite's size: CulturalVQA (2,378),
CARE (450) and CEDAR, text (8,162). Lines are as long as real ones, and mostly what a report doesn't need. A child
process makes the report, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonlines

from culture_tasks.benchmarks.care.benchmark import CATEGORIES
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES
from culture_tasks.benchmarks.culturalvqa.benchmark import COUNTRIES, FACETS
from culture_tasks.benchmarks.registry import benchmark_of, task_named
from culture_tasks.harness.records import RECORD, RECORD_VERSION

_STAMP = "20260101_000000"
_SIZES = {"culturalvqa": 2_378, "care_ar": 150, "care_ja": 150, "care_zh": 150, "cedar_text": 8_162}
_TEXT = "The host offers a second cup and the guest waits for the eldest to begin before drinking. " * 3


def main() -> None:
    """Runs the benchmark and prints a table."""
    options = _options()
    if options.measure is not None:
        _measure(options.measure, options.formats)
        return
    sizes = options.models or [1, 5, 17]
    if options.million:
        sizes.append(91)
    print("| models | samples | files | time | CPU time | peak memory |\n| ---: | ---: | ---: | ---: | ---: | ---: |")
    for models in sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            size = sum(_write_model(Path(folder), number) for number in range(models))
            cost = _child(folder, options.formats)
        samples = models * sum(_SIZES.values())
        cells = (str(models), f"{samples:,}", f"{size / 2**30:.2f} GiB", f"{cost['seconds']:.1f} s")
        print(f"| {' | '.join(cells)} | {cost['cpu']:.1f} s | {cost['peak_mib']:.0f} MiB |", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, nargs="+", help="numbers of models (default: 1 5 17)")
    parser.add_argument("--million", action="store_true", help="also a million samples; needs some 4 GB of disk")
    parser.add_argument("--folder", help="where the synthetic files go (default: the system's)")
    parser.add_argument("--formats", default="markdown,csv,json", help="formats to write (default: %(default)s)")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _child(folder: str, formats: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", folder, "--formats", formats]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    cost: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return cost


def _measure(folder: Path, formats: str) -> None:
    from culture_tasks.cli.main import main as command

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as output:
        command(["report", str(folder), "-o", output, "--formats", formats])
    seconds, cpu = time.perf_counter() - start, time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mib": peak}))


def _write_model(folder: Path, number: int) -> int:
    """Writes one model's files and returns their size."""
    target = folder / f"model_{number}"
    target.mkdir()
    rng = random.Random(number)
    for task in _SIZES:
        with jsonlines.open(target / f"{_STAMP}_samples_{task}.jsonl", "w") as file:
            file.write_all(_samples(task, rng))
    (target / f"{_STAMP}_results.json").write_text(json.dumps(_results(number)), encoding="utf-8")
    return sum(path.stat().st_size for path in target.iterdir())


def _results(number: int) -> dict[str, Any]:
    settings = {"output_type": "generate_until", "generation_kwargs": {"max_new_tokens": 64, "do_sample": False}}
    return {
        "results": {task: {"alias": task} for task in _SIZES},
        "configs": dict.fromkeys(_SIZES, settings),
        "versions": dict.fromkeys(_SIZES, 1.0),
        "n-samples": {task: {"original": size, "effective": size} for task, size in _SIZES.items()},
        "config": {"model": "synthetic", "model_args": f"pretrained=synthetic/model-{number:02d}"},
        "model_name": f"synthetic/model-{number:02d}",
        "date": _STAMP,
    }


def _samples(task: str, rng: random.Random) -> Iterator[dict[str, Any]]:
    make = {"culturalvqa": _culturalvqa, "cedar_text": _cedar}.get(task, _care)
    skill = rng.uniform(0.3, 0.8)
    for number in range(_SIZES[task]):
        yield {"doc_id": number, "target": _TEXT, "filtered_resps": [_TEXT], **make(task, number, rng, skill)}


def _record(task: str, item: str, groups: dict[str, str], score: float, **more: Any) -> dict[str, Any]:
    """Returns a record as a run of the task logs it."""
    main = next(metric for metric in task_named(task).metrics() if metric.name == task_named(task).metric)
    record = {"record": RECORD_VERSION, "benchmark": benchmark_of(task).name, "metric": main.name}
    record |= {"scale": asdict(main.scale), "item": item, "cluster": item, "groups": groups, "data": {"data": "0" * 16}}
    return record | {"question": _TEXT, "references": [_TEXT], "outcomes": {"scored": 1}, "score": score, **more}


def _judged(task: str, item: str, groups: dict[str, str], rating: float, score: float) -> dict[str, Any]:
    judge = {"backend": "openai", "model": "judge", "rubric": "synthetic", "prompt": "v1"}
    run = {"response": _TEXT, "outcome": "scored", "rating": rating, "rationale": _TEXT, "tokens": [400, 40]}
    record = _record(task, item, groups, score, judge=judge | {"prompt_sha256": "0" * 64, "sampling": {}}, runs=[run])
    return {RECORD: record}


def _culturalvqa(task: str, number: int, rng: random.Random, skill: float) -> dict[str, Any]:
    right = float(rng.random() < skill)
    groups = {"country": tuple(COUNTRIES)[number % len(COUNTRIES)], "facet": FACETS[number % len(FACETS)]}
    return _judged(task, f"q{number}", groups, right + 1, right)


def _care(task: str, number: int, rng: random.Random, skill: float) -> dict[str, Any]:
    language = task.rsplit("_", 1)[1]
    rating = float(min(10, max(1, round(rng.gauss(10 * skill, 2)))))
    groups = {"language": language, "category": CATEGORIES[number % len(CATEGORIES)], "scope": "nationwide"}
    groups |= {"culture": "Native", "prompt_language": language}
    return _judged(task, f"{language}-{number}", groups, rating, rating)


def _cedar(task: str, number: int, rng: random.Random, skill: float) -> dict[str, Any]:
    language, gold = LANGUAGES[number % len(LANGUAGES)], EMOTIONS[number // len(LANGUAGES) % len(EMOTIONS)]
    label = gold if rng.random() < skill else rng.choice(EMOTIONS)
    groups = {"language": language, "prompt_language": language, "gold": gold, "prediction": label, "supported": "True"}
    runs = [{"response": label, "outcome": "scored", "label": label}]
    prompt = {"prompt": f"text_{language}.v1", "prompt_sha256": "0" * 64}
    item = f"{language} {number // len(LANGUAGES)}"
    record = _record(task, item, groups, float(label == gold), runs=runs, **prompt)
    names = [metric.name for metric in task_named(task).metrics() if metric.name != "acc"]
    return {"acc": record, **{key: [language, gold, label] for key in names}}


if __name__ == "__main__":
    main()
