"""Logs of Every Eval Ever: one JSON file per model with its scores and judges.

Source: https://github.com/evaleval/every_eval_ever, schema 0.3.0. A log has one result for each number that the report
has of a model: the whole score of each task, the score of each group of its samples, and each further statistic.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import entries, rubrics
from culture_tasks.benchmarks.reporting import Where
from culture_tasks.harness.rows import LEXICAL
from culture_tasks.report.model import ModelRow, Number, Report, Unit
from culture_tasks.report.numbers.numbers import report_of
from culture_tasks.report.numbers.selection import SCORE
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.run_files import LAYOUTS, read_run
from culture_tasks.results.runs import Run, RunJudge
from culture_tasks.text import escaped, storable

SCHEMA_VERSION = "0.3.0"

COLLECTION = "culture-tasks"
"""Folder of our logs in a datastore, and the platform that they name as their source."""

Relationship = Literal["first_party", "third_party", "collaborative", "other"]
"""Who evaluated: the model's developers, somebody else, both together, or none of these."""

_GENERATION = ("temperature", "top_p", "top_k", "max_tokens")

_UNITS: Mapping[str, str] = {"share": "proportion"}
"""Units that Every Eval Ever calls by other names."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Who reports the numbers.

    Attributes:
        organization: Name of the organization; ``unknown`` where nobody says.
        relationship: Its relation to the models' developers.
        url: Address of more about the evaluation, such as a repository with its files; may be empty.
    """

    organization: str = "unknown"
    relationship: Relationship = "other"
    url: str = ""


class _Result(NamedTuple):
    """A number of the report with its address."""

    unit: Unit
    statistic: str
    where: Where
    cell: Number

    @property
    def name(self) -> str:
        """The evaluation's name: ``culturalvqa``, or ``culturalvqa.country.brazil`` for a part of it."""
        return ".".join((self.unit.key, *(part for pair in self.where for part in pair)))

    @property
    def metric(self) -> str:
        """The metric's name, which says where text overlap replaces a judge."""
        metric = self.unit.metric if self.statistic == SCORE else self.statistic
        return f"{metric}{LEXICAL}" if "lexical_judge" in self.cell.flags else metric

    @property
    def id(self) -> str:
        """Its name within the log."""
        return f"{self.name}#{self.metric}"

    @property
    def is_judged(self) -> bool:
        """Whether it is computed from a judge's verdicts, where the run has any."""
        if self.statistic == SCORE:
            return True
        derived = report_of(self.unit.benchmark).derived
        return any(statistic.name == self.statistic for statistic in derived)


def write_eval_logs(report: Report, folder: Path, evaluator: Evaluator) -> list[Path]:
    """Writes a log for each of the user's rows of a report, and returns the paths.

    A row whose runs are of both harnesses has a log for each. The files are, as in the project's datastore,
    ``data/culture-tasks/<developer>/<model>/<uuid>.json``. Their names depend on the runs alone, so that the same runs
    overwrite their files.
    """
    by_log: dict[tuple[str, str], list[_Result]] = {}
    for entrant, result in _results(report):
        harnesses = sorted({report.runs[key].harness for key in result.cell.runs})
        by_log.setdefault((entrant, " + ".join(harnesses)), []).append(result)
    paths: list[Path] = []
    for (entrant, _), results in by_log.items():
        runs = list({key: report.runs[key] for result in results for key in result.cell.runs}.values())
        log, name = _log(report, report.entrants[entrant], runs, results, evaluator)
        developer, _, model = log["model_info"]["id"].rpartition("/")
        subfolder = Path("data", COLLECTION, _component(developer), _component(model))
        (folder / subfolder).mkdir(parents=True, exist_ok=True)
        path = folder / subfolder / f"{name}.json"
        text = escaped(json.dumps(log, ensure_ascii=False, indent=2, allow_nan=False))
        path.write_text(f"{text}\n", encoding="utf-8", newline="\n")
        paths.append(path)
    return paths


def _results(report: Report) -> list[tuple[str, _Result]]:
    """Returns the user's numbers, each with the key of its row; papers' have no runs."""
    return [
        (number.row, _Result(report.units[number.unit], number.statistic, number.where, number))
        for number in report.numbers
        if number.runs and number.value is not None and math.isfinite(number.value)
    ]


def _log(
    report: Report, entrant: ModelRow, runs: Sequence[Run], results: Sequence[_Result], evaluator: Evaluator
) -> tuple[dict[str, Any], str]:
    """Returns a log, and the name of its file."""
    identity = [entrant.label, *sorted((run.task, run.date, run.path.name) for run in runs)]
    sha = hashlib.sha256(json.dumps(identity).encode()).digest()
    name, model, evaluated = str(uuid.UUID(bytes=sha[:16], version=4)), storable(entrant.model), _epoch(runs)
    versions, backends = zip(*map(_origin, {run.path for run in runs}), strict=True)
    model_details = {
        "model_args": _shared({run.task: run.model_args for run in runs}),
        "backend": " + ".join(sorted(set(filter(None, backends)))),
    }
    log = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{COLLECTION}/{model}/{evaluated}-{name[:8]}",
        "evaluation_timestamp": str(evaluated),
        "retrieved_timestamp": str(int(datetime.fromisoformat(report.created).timestamp())),
        "source_metadata": {
            "source_name": COLLECTION,
            "source_type": "evaluation_run",
            "source_organization_name": evaluator.organization,
            "evaluator_relationship": evaluator.relationship,
            "additional_details": _texts({"url": evaluator.url, "variation": entrant.variation}),
        },
        "eval_library": {
            "name": " + ".join(sorted({run.harness for run in runs})),
            "version": " + ".join(sorted(set(versions))),
            "additional_details": {"culture_tasks": report.version},
        },
        "model_info": _model(model, _texts(model_details)),
        "evaluation_results": [
            _evaluation(result, [report.runs[key] for key in result.cell.runs]) for result in results
        ],
    }
    return log, name


def _epoch(runs: Iterable[Run]) -> int:
    """Returns when the newest run was, in seconds; a time without a zone is taken for UTC, on every machine."""
    dates = (datetime.fromisoformat(run.date) for run in runs)
    return max(int((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()) for date in dates)


def _origin(results_file: Path) -> tuple[str, str]:
    """Returns the harness's version and its backend, as a result file says them."""
    files = read_run(results_file)
    if isinstance(files, UnusedFile):
        return "unknown", ""
    version = files.content.get(LAYOUTS[files.harness][0])
    return str(version or "unknown"), str((files.content.get("config") or {}).get("model") or "")


def _model(name: str, details: Mapping[str, str]) -> dict[str, Any]:
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    developer = {"developer": name.split("/")[0]} if "/" in name else {}
    return {"name": name, "id": name, **developer, "additional_details": {**unknown, **details}}


def _evaluation(result: _Result, runs: Sequence[Run]) -> dict[str, Any]:
    cell, unit = result.cell, result.unit
    details = {"coverage": cell.coverage, "flags": " ".join(cell.flags), "note": cell.note}
    uncertainty: dict[str, Any] = {"num_samples": cell.n}
    if cell.low is not None and cell.high is not None:
        uncertainty["confidence_interval"] = {"lower": cell.low, "upper": cell.high, "confidence_level": 0.95}
    return {
        "evaluation_result_id": storable(result.id),
        "evaluation_name": storable(result.name),
        "source_data": _source_data(unit, runs),
        "evaluation_timestamp": str(_epoch(runs)),
        "metric_config": _metric(result, runs),
        "score_details": {"score": cell.value, "details": _texts(details), "uncertainty": uncertainty},
        "generation_config": _generation(runs),
    }


def _metric(result: _Result, runs: Sequence[Run]) -> dict[str, Any]:
    unit, scale = result.unit, result.cell.scale
    neutral = "" if scale.neutral is None else f", {scale.neutral:g} is neutral"
    address = {
        "task": unit.key,
        "statistic": result.statistic,
        "groups": json.dumps(result.where, ensure_ascii=False) if result.where else "",
        "better": "" if scale.better else f"neither end{neutral}",
    }
    config = {
        "evaluation_description": unit.about,
        "metric_id": f"{unit.benchmark or unit.key}.{result.metric}",
        "metric_name": result.metric,
        "metric_kind": unit.quantity or result.metric if result.statistic == SCORE else result.statistic,
        "metric_unit": _UNITS.get(scale.unit, scale.unit),
        "lower_is_better": scale.better == "lower",
        "score_type": "continuous",
        "min_score": "-Infinity" if scale.low is None else scale.low,
        "max_score": "Infinity" if scale.high is None else scale.high,
        "additional_details": _texts(address),
    }
    judges = dict.fromkeys(
        judge for run in runs for judge in run.settings.judges if judge.backend not in ("lexical", "none")
    )
    if judges and result.is_judged:
        config["llm_scoring"] = {
            "judges": [_judge(judge) for judge in judges],
            "input_prompt": "\n\n---\n\n".join(dict.fromkeys(text for judge in judges for text in _wordings(judge))),
        }
    return config


def _judge(judge: RunJudge) -> dict[str, Any]:
    temperature = json.loads(judge.sampling or "{}").get("temperature")
    details = {
        "backend": judge.backend,
        "rubrics": json.dumps({rubric: prompt for rubric, prompt, _ in judge.prompts}),
        "prompt_sha256": json.dumps({rubric: sha for rubric, _, sha in judge.prompts}),
        "sampling": judge.sampling,
        "delimiters": str(judge.delimiters).lower(),
    }
    config = {"model_info": _model(storable(judge.model), {}), "additional_details": _texts(details)}
    return config | ({"temperature": temperature} if isinstance(temperature, int | float) else {})


def _wordings(judge: RunJudge) -> Iterator[str]:
    """Yields the prompts of a judge; of one that isn't part of this version, its hash alone."""
    for name, prompt, sha in judge.prompts:
        rubric = rubrics().get(name)
        if rubric is not None and rubric.prompt_sha256(delimiters=judge.delimiters) == sha:
            yield rubric.wording(delimiters=judge.delimiters)
        else:
            yield f"{name} ({prompt}), which isn't part of this version of culture-tasks: SHA-256 {sha}"


def _source_data(unit: Unit, runs: Sequence[Run]) -> dict[str, Any]:
    details = {
        "fingerprints": ", ".join(dict.fromkeys(text for run in runs for text in run.settings.data)),
        "own_data": "; ".join(dict.fromkeys(run.own_data for run in runs if run.own_data)),
    }
    repository = "" if details["own_data"] else _hub_of(runs)
    on_hub = {"source_type": "hf_dataset", "hf_repo": repository}
    details["commits"] = json.dumps(dict(pair for run in runs for pair in run.settings.commits)) if repository else ""
    return {
        "dataset_name": unit.benchmark or unit.key,
        **(on_hub if repository else {"source_type": "other"}),
        "additional_details": _texts(details),
    }


def _hub_of(runs: Sequence[Run]) -> str:
    """Returns the Hub data set of the tasks of some runs, the first of several; empty where they have none."""
    tasks = (entry for run in runs if isinstance(entry := entries().get(run.task), Task))
    return next((source.hub for task in tasks for source in task.data.sources if source.hub), "")


def _generation(runs: Sequence[Run]) -> dict[str, Any]:
    decodings = [json.loads(run.settings.decoding or "{}") for run in runs]
    shared = decodings[0] if all(decoding == decodings[0] for decoding in decodings) else {}
    arguments = {name: shared[name] for name in _GENERATION if isinstance(shared.get(name), int | float)}
    arguments |= {"temperature": 0.0} if shared.get("greedy") else {}
    names = ("decoding", "prompt", "chat_template", "task_version", "limit", "subset")
    details = {name: _shared({run.task: str(getattr(run.settings, name) or "") for run in runs}) for name in names}
    hashes = {run.task: run.settings.asked.sha for run in runs if run.settings.asked is not None}
    details["prompts_sha256"] = json.dumps(hashes) if hashes else ""
    return {"generation_args": arguments, "additional_details": _texts(details)}


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
