"""Small result and sample files, written by hand, for tests that need no run of a harness."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JUDGE = {
    "backend": "openai",
    "model": "judge-1",
    "rubric": "lave",
    "prompt": "lave.v1",
    "prompt_sha256": "a" * 64,
    "delimiters": True,
    "sampling": {"temperature": 0},
}
COUNTRIES = ("brazil", "china", "india", "usa")


def vqa_record(number: int, score: float | None, **changes: Any) -> dict[str, Any]:
    """A record of CulturalVQA; without a score the verdict could not be read."""
    outcome = "scored" if score is not None else "unparsable"
    run = {"prediction": "an answer", "outcome": outcome, "rating": None, "rationale": "because", "tokens": [1, 1]}
    record = {
        "record": 1,
        "benchmark": "culturalvqa",
        "id": f"q{number}",
        "country": COUNTRIES[number % 4],
        "facet": "food",
        "data": "d1",
        "question": f"question {number}?",
        "references": ["this", "that"],
        "judge": JUDGE,
        "runs": [run],
        "outcomes": {outcome: 1},
    }
    return record | ({} if score is None else {"score": score}) | changes


def crosscult_sample(
    number: int, score: float, rouge_l: float, partition: str = "zh", role: str = "reliability", after: int = 1
) -> dict[str, Any]:
    """A sample of CrossCult-KIBench; topics come by turns, and every item has a scenario of its own."""
    topic = ("social", "religious", "ethical")[number % 3]
    about = {"benchmark": "crosscult", "id": f"c{number}-{partition}", "role": role, "scenario": f"s{number}"}
    about |= {"topic": topic, "partition": partition, "language": partition, "after": after, "draw": "d"}
    return {"judge_score": vqa_record(number, score) | about | {"rouge_l": rouge_l}}


def vqa_samples(scores: list[float | None], metric: str = "lave", **changes: Any) -> list[dict[str, Any]]:
    """Samples of CulturalVQA with these scores."""
    return [{"doc_id": n, metric: vqa_record(n, score, **changes)} for n, score in enumerate(scores)]


def result_data(tasks: list[str], model: str, size: int, **changes: Any) -> dict[str, Any]:
    """What a result file has that a report reads."""
    settings = {"output_type": "generate_until", "generation_kwargs": {"max_new_tokens": 64, "do_sample": False}}
    return {
        "results": {task: {"alias": task} for task in tasks},
        "configs": dict.fromkeys(tasks, settings),
        "versions": dict.fromkeys(tasks, 1.0),
        "n-samples": {task: {"original": size, "effective": size} for task in tasks},
        "config": {"model": "x", "model_args": f"pretrained={model}"},
        "model_name": model,
    } | changes


def write_run(
    folder: Path,
    model: str,
    samples: dict[str, list[dict[str, Any]]],
    stamp: str = "20260101_000000",
    **changes: Any,
) -> Path:
    """Writes the files of one run as lmms-eval names them, and returns the result file."""
    folder.mkdir(parents=True, exist_ok=True)
    for task, lines in samples.items():
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"{stamp}_samples_{task}.jsonl").write_text(text, encoding="utf-8", errors="surrogatepass")
    size = max((len(lines) for lines in samples.values()), default=0)
    path = folder / f"{stamp}_results.json"
    path.write_text(json.dumps(result_data(list(samples), model, size, **changes)), encoding="utf-8")
    return path


def write_vqa(
    folder: Path, model: str, scores: list[float | None], stamp: str = "20260101_000000", **changes: Any
) -> Path:
    """Writes a run of CulturalVQA; the changes are the result file's."""
    return write_run(folder, model, {"culturalvqa": vqa_samples(scores)}, stamp, **changes)
