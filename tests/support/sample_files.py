"""Small result and sample files, written by hand, for tests that need no run of a harness."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.cedar.labels import pair_of
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.results.finding import Harness, result_name, samples_name

JUDGE = {
    "backend": "openai",
    "model": "judge-1",
    "rubric": "lave",
    "prompt": "lave.v1",
    "prompt_sha256": "a" * 64,
    "delimiters": True,
    "sampling": {"temperature": 0},
}
LEXICAL = JUDGE | {"backend": "lexical"}
COUNTRIES = ("brazil", "china", "india", "usa")


def record(
    benchmark: str, task: str, metric: str, item: str, groups: Mapping[str, str | None], **changes: Any
) -> dict[str, Any]:
    """A record of a task's metric, without verdicts."""
    scale = next(task_metric.scale for task_metric in task_named(task).metrics() if task_metric.name == metric)
    return {
        "record": 2,
        "benchmark": benchmark,
        "metric": metric,
        "scale": asdict(scale),
        "item": item,
        "cluster": item,
        "groups": dict(groups),
        "data": {"data": "d1"},
        "question": f"question {item}?",
        "references": ["this", "that"],
    } | changes


def judged(score: float | None) -> dict[str, Any]:
    """What a judge adds to a record; without a score the verdict could not be read."""
    outcome = "scored" if score is not None else "unparsable"
    run = {"response": "an answer", "outcome": outcome, "rating": None, "rationale": "because", "tokens": [1, 1]}
    verdict = {"judge": JUDGE, "runs": [run], "outcomes": {outcome: 1}}
    return verdict if score is None else verdict | {"score": score}


def vqa_record(number: int, score: float | None, country: str = "", **changes: Any) -> dict[str, Any]:
    """A record of CulturalVQA."""
    groups = {"country": country or COUNTRIES[number % 4], "facet": "food"}
    base = record("culturalvqa", "culturalvqa", "lave", f"q{number}", groups, question=f"question {number}?")
    return base | judged(score) | changes


def vqa_samples(scores: Sequence[float | None], **changes: Any) -> list[dict[str, Any]]:
    """Samples of CulturalVQA with these scores."""
    return [{"doc_id": n, "record": vqa_record(n, score, **changes)} for n, score in enumerate(scores)]


def care_sample(
    number: int, score: float, language: str = "zh", category: str = "norms", **changes: Any
) -> dict[str, Any]:
    """A sample of CARE."""
    groups = {"language": language, "category": category, "scope": "nationwide", "culture": "Native"}
    base = record("care", "care_zh", "care_rating", f"{language}-{number}", groups)
    return {"record": base | judged(score) | changes}


def care_samples(scores: Sequence[float], language: str = "zh", first: int = 0, **changes: Any) -> list[dict[str, Any]]:
    """Samples of CARE with these scores, the first half about norms, the second about literacy."""
    return [
        care_sample(first + at, score, language, "norms" if at < len(scores) / 2 else "literacy", **changes)
        for at, score in enumerate(scores)
    ]


def crosscult_sample(
    number: int,
    score: float | None,
    rouge_l: float,
    partition: str = "zh",
    role: str = "reliability",
    after: int = 1,
    **changes: Any,
) -> dict[str, Any]:
    """A sample of CrossCult-KIBench; topics come by turns, and every item has a scenario of its own."""
    topic = ("social", "religious", "ethical")[number % 3]
    groups = {"role": role, "topic": topic, "partition": partition, "language": partition, "after": str(after)}
    more = {"cluster": f"s{number}", "data": {"data": "d1", "draw": "d"}, "values": {"rouge_l": rouge_l}}
    base = record("crosscult", "crosscult_diagnostic", "judge_score", f"c{number}-{partition}", groups, **more)
    return {"record": base | judged(score) | changes}


def cedar_sample(
    item: str,
    language: str,
    gold: str,
    prediction: str | None,
    *,
    modality: str = "text",
    prompt_language: str = "",
    supported: bool = True,
    minority: str = "",
    task: str = "cedar_text",
) -> dict[str, Any]:
    """A sample of CEDAR: right where the label that was read is the gold one, and without a score if not supported."""
    groups = {"language": language, "prompt_language": prompt_language or language, "gold": gold}
    groups |= {"prediction": prediction, "supported": str(supported)}
    groups |= {"minority": minority} if minority else {}
    groups |= {"pair": pair_of(groups["prompt_language"], language)} if task.endswith("_matrix") else {}
    outcome = "unparsable" if prediction is None else "scored"
    more = {
        "cluster": f"{modality} {item}",
        "prompt": "p",
        "prompt_sha256": "0" * 64,
        "references": [gold],
        "runs": [{"response": "x", "outcome": outcome, "label": prediction}],
        "outcomes": {outcome: 1},
    }
    score = {"score": float(prediction == gold)} if supported else {}
    return {"record": record("cedar", task, "acc", f"{language} {item}", groups, **more) | score}


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
    """Writes the files of one run as the harness names them whose stamp it is, and returns the result file."""
    folder.mkdir(parents=True, exist_ok=True)
    harness: Harness = "lm_eval" if "T" in stamp else "lmms_eval"
    for task, lines in samples.items():
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / samples_name(harness, task, stamp)).write_text(text, encoding="utf-8", errors="surrogatepass")
    counts = {task: {"original": len(lines), "effective": len(lines)} for task, lines in samples.items()}
    path = folder / result_name(harness, stamp)
    changes = {"n-samples": counts} | changes
    path.write_text(json.dumps(result_data(list(samples), model, 0, **changes)), encoding="utf-8")
    return path


def write_vqa(
    folder: Path, model: str, scores: list[float | None], stamp: str = "20260101_000000", **changes: Any
) -> Path:
    """Writes a run of CulturalVQA; the changes are the result file's."""
    return write_run(folder, model, {"culturalvqa": vqa_samples(scores)}, stamp, **changes)


def write_inserted(
    folder: Path, model: str, method: str, samples: dict[str, list[dict[str, Any]]], *stamp: str, **changes: Any
) -> Path:
    """Writes a run of a model with an insertion method."""
    config = {"model": "knowledge_insertion", "model_args": f"pretrained={model},method={method}"}
    return write_run(folder, model, samples, *stamp, config=config, **changes)


def rewrite(path: Path, **changes: Any) -> None:
    """Changes entries of a result file; a mapping that it has gets further entries, at any depth."""

    def merged(old: Any, new: Any) -> Any:
        if not (isinstance(old, dict) and isinstance(new, dict)):
            return new
        return old | {key: merged(old.get(key), value) for key, value in new.items()}

    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(merged(content, changes)), encoding="utf-8")
