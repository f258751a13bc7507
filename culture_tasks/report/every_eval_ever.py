"""The report's numbers as logs of Every Eval Ever: one JSON file per model and harness.

Source: https://github.com/evaleval/every_eval_ever, schema 0.3.0. A log has one result for each number that the report
has of a model: the whole score of each task, the score of each group of its samples, and each further statistic.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import entries
from culture_tasks.harness.rows import LEXICAL
from culture_tasks.report.model import Number, Report, Unit
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.run_files import LAYOUTS, read_run
from culture_tasks.results.runs import Run, RunJudge
from culture_tasks.text import escaped, storable

SCHEMA_VERSION = "0.3.0"
_NAME = "culture-tasks"
_GENERATION = ("temperature", "top_p", "top_k", "max_tokens")
_SETTINGS = ("decoding", "prompt", "chat_template", "task_version", "limit", "subset")


def write_eval_logs(report: Report, folder: Path, organization: str = "unknown") -> list[Path]:
    """Writes a log for each of the user's rows of a report and each harness, and returns the paths.

    The files are, as in the project's datastore, ``data/culture-tasks/<developer>/<model>/<uuid>.json``. Their names
    depend on the runs alone, so that the same runs overwrite their files. ``organization`` is who evaluated.
    """
    logs: dict[tuple[str, str], list[Number]] = {}
    for number in report.numbers:
        if number.runs and number.value is not None and math.isfinite(number.value):
            harnesses = " + ".join(sorted({report.runs[key].harness for key in number.runs}))
            logs.setdefault((number.row, harnesses), []).append(number)
    paths: list[Path] = []
    for (row, harnesses), numbers in logs.items():
        runs = [report.runs[key] for key in dict.fromkeys(key for number in numbers for key in number.runs)]
        log, name = _log(report, row, harnesses, runs, organization)
        log["evaluation_results"] = [_result(report, number) for number in numbers]
        developer, _, model = log["model_info"]["id"].rpartition("/")
        paths.append(folder / "data" / _NAME / _component(developer) / _component(model) / f"{name}.json")
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        text = escaped(json.dumps(log, ensure_ascii=False, indent=2, allow_nan=False))
        paths[-1].write_text(f"{text}\n", encoding="utf-8", newline="\n")
    return paths


def _log(
    report: Report, row: str, harnesses: str, runs: Sequence[Run], organization: str
) -> tuple[dict[str, Any], str]:
    """Returns a log without its results, and the name of its file."""
    entrant = report.entrants[row]
    identity = [entrant.label, *sorted((run.task, run.date, run.path.name) for run in runs)]
    name = str(uuid.UUID(bytes=hashlib.sha256(json.dumps(identity).encode()).digest()[:16], version=4))
    model, evaluated = storable(entrant.model), _epoch(runs)
    model_info = _model(model)
    model_info["additional_details"] |= _texts({"model_args": _shared({run.task: run.model_args for run in runs})})
    log = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{_NAME}/{model}/{evaluated}-{name[:8]}",
        "evaluation_timestamp": str(evaluated),
        "retrieved_timestamp": str(int(datetime.fromisoformat(report.created).timestamp())),
        "source_metadata": {
            "source_name": _NAME,
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "other",
            "additional_details": _texts({"variation": entrant.variation}),
        },
        "eval_library": {
            "name": harnesses,
            "version": " + ".join(sorted({_harness_version(run.path) for run in runs})),
            "additional_details": {"culture_tasks": report.version},
        },
        "model_info": model_info,
    }
    return log, name


def _epoch(runs: Iterable[Run]) -> int:
    """Returns when the newest run was, in seconds; a time without a zone is taken for UTC, on every machine."""
    dates = (datetime.fromisoformat(run.date) for run in runs)
    return max(int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()) for date in dates)


def _harness_version(results_file: Path) -> str:
    files = read_run(results_file)
    return (
        "unknown" if isinstance(files, UnusedFile) else str(files.content.get(LAYOUTS[files.harness][0]) or "unknown")
    )


def _model(name: str) -> dict[str, Any]:
    developer = {"developer": name.split("/")[0]} if "/" in name else {}
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {"name": name, "id": name, **developer, "additional_details": unknown}


def _result(report: Report, cell: Number) -> dict[str, Any]:
    """Returns one result: ``culturalvqa``, or ``culturalvqa.country.brazil`` for a part of it."""
    unit, statistic, where = report.units[cell.unit], cell.statistic, cell.where
    runs = [report.runs[key] for key in cell.runs]
    name = ".".join((unit.key, *(part for pair in where for part in pair)))
    metric = (unit.metric if statistic == "score" else statistic) + LEXICAL * ("lexical_judge" in cell.flags)
    details = {"coverage": cell.coverage, "flags": " ".join(cell.flags), "note": cell.note}
    uncertainty: dict[str, Any] = {"num_samples": cell.n}
    if cell.low is not None and cell.high is not None:
        uncertainty["confidence_interval"] = {"lower": cell.low, "upper": cell.high, "confidence_level": 0.95}
    scale, address = cell.scale, {"task": unit.key, "statistic": statistic}
    address |= {"groups": json.dumps(where, ensure_ascii=False)} if where else {}
    neutral = "" if scale.neutral is None else f", {scale.neutral:g} is neutral"
    config = {
        "evaluation_description": unit.about,
        "metric_id": f"{unit.benchmark or unit.key}.{metric}",
        "metric_name": metric,
        "metric_kind": (unit.quantity if statistic == "score" else "") or metric,
        "metric_unit": "proportion" if scale.unit == "share" else scale.unit,
        "lower_is_better": scale.better == "lower",
        "score_type": "continuous",
        "min_score": "-Infinity" if scale.low is None else scale.low,
        "max_score": "Infinity" if scale.high is None else scale.high,
        "additional_details": _texts({**address, "better": "" if scale.better else f"neither end{neutral}"}),
    }
    judges = [judge for run in runs for judge in run.settings.judges if judge.backend not in ("lexical", "none")]
    if judges and statistic == "score":
        config["llm_scoring"] = _scoring(list(dict.fromkeys(judges)))
    return {
        "evaluation_result_id": storable(f"{name}#{metric}"),
        "evaluation_name": storable(name),
        "source_data": _source_data(unit, runs),
        "evaluation_timestamp": str(_epoch(runs)),
        "metric_config": config,
        "score_details": {"score": cell.value, "details": _texts(details), "uncertainty": uncertainty},
        "generation_config": _generation(runs),
    }


def _scoring(judges: Sequence[RunJudge]) -> dict[str, Any]:
    """Returns the judges with the hashes of their prompts, whose texts are part of this package."""
    prompts = (f"{rubric} ({prompt}), SHA-256 {sha}" for judge in judges for rubric, prompt, sha in judge.prompts)
    details = (
        {
            "backend": judge.backend,
            "rubrics": json.dumps({rubric: prompt for rubric, prompt, _ in judge.prompts}),
            "prompt_sha256": json.dumps({rubric: sha for rubric, _, sha in judge.prompts}),
            "sampling": judge.sampling,
            "delimiters": str(judge.delimiters).lower(),
        }
        for judge in judges
    )
    return {
        "judges": [
            {"model_info": _model(storable(judge.model)), "additional_details": _texts(own)}
            for judge, own in zip(judges, details, strict=True)
        ],
        "input_prompt": "\n".join(dict.fromkeys(prompts)),
    }


def _source_data(unit: Unit, runs: Sequence[Run]) -> dict[str, Any]:
    own_data = "; ".join(dict.fromkeys(run.own_data for run in runs if run.own_data))
    fingerprints = ", ".join(dict.fromkeys(text for run in runs for text in run.settings.data))
    tasks = [entry for run in runs if isinstance(entry := entries().get(run.task), Task)]
    hub = "" if own_data else next((source.hub for task in tasks for source in task.data.sources if source.hub), "")
    commits = json.dumps(dict(pair for run in runs for pair in run.settings.commits)) if hub else ""
    return {
        "dataset_name": unit.benchmark or unit.key,
        **({"source_type": "hf_dataset", "hf_repo": hub} if hub else {"source_type": "other"}),
        "additional_details": _texts({"fingerprints": fingerprints, "own_data": own_data, "commits": commits}),
    }


def _generation(runs: Sequence[Run]) -> dict[str, Any]:
    decodings = [json.loads(run.settings.decoding or "{}") for run in runs]
    shared = decodings[0] if all(decoding == decodings[0] for decoding in decodings) else {}
    arguments = {name: shared[name] for name in _GENERATION if isinstance(shared.get(name), int | float)}
    arguments |= {"temperature": 0.0} if shared.get("greedy") else {}
    details = {name: _shared({run.task: str(getattr(run.settings, name) or "") for run in runs}) for name in _SETTINGS}
    hashes = {run.task: run.settings.asked.sha for run in runs if run.settings.asked is not None}
    return {
        "generation_args": arguments,
        "additional_details": _texts({**details, "prompts_sha256": json.dumps(hashes) if hashes else ""}),
    }


def _shared(values: Mapping[str, str]) -> str:
    """Returns the text that all tasks share, or each task's, as JSON."""
    return next(iter(values.values())) if len(set(values.values())) == 1 else json.dumps(values, ensure_ascii=False)


def _texts(details: Mapping[str, object]) -> dict[str, str]:
    """Returns details as the schema has them: texts alone, without empty ones."""
    return {
        name: storable(value) if isinstance(value, str) else json.dumps(value)
        for name, value in details.items()
        if value not in (None, "", "{}")
    }


def _component(text: str) -> str:
    """Returns a text as one part of a path on every file system; a name on the Hub stays whole."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", text[:96]).strip(".") or "unknown"
