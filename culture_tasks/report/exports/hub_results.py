"""Evaluation results for a model's repository on the Hub: ``.eval_results/<benchmark>.yaml``.

Source: https://huggingface.co/docs/hub/eval-results, https://github.com/huggingface/hub-docs (``eval_results.yaml``).
A file has one entry for each of a benchmark's tasks and groups in the report's first table. The Hub shows an entry on
a leaderboard where the data set's own ``eval.yaml`` lists its ``task_id``, which is the task's name here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from culture_tasks.report.exports.every_eval_ever import Evaluator, component, hub_of
from culture_tasks.report.model import FLAG_TEXT, Cell, Entrant, Flag, Report, Unit
from culture_tasks.results.runs import TaskRun
from culture_tasks.text_tables import plain

NOT_THE_TASK: tuple[Flag, ...] = (
    *("low_coverage", "lexical_judge", "unjudged", "mixed_settings", "incomplete"),
    *("trained_on_test", "unlike_its_file", "unknown_settings", "own_data", "corrected"),
)
"""Flags of numbers that aren't a result of the task as it is defined."""


def write_hub_results(report: Report, folder: Path, evaluator: Evaluator) -> tuple[list[Path], list[str]]:
    """Writes the scores of each of the user's models, and returns the paths and the omissions, each with a reason.

    The files are ``<developer>/<model>/.eval_results/<benchmark>.yaml``; an evaluator's address is each entry's source.
    Left out are rows of a model under other settings, benchmarks without a data set on the Hub, limited runs, and
    numbers with a flag of :data:`NOT_THE_TASK`. The notes of an entry name the subset where one was drawn.
    """
    import yaml

    files: dict[Path, list[dict[str, Any]]] = {}
    models: dict[Path, str] = {}
    omissions: list[str] = []
    for unit in report.units.values():
        for key, cell in unit.cells.items():
            entrant, runs = report.entrants[key], [report.runs[run] for run in cell.runs]
            if unit.benchmark is None or not unit.headline or cell.value is None:
                continue
            repository = hub_of(runs)
            if reason := _reason(entrant, cell, runs, repository):
                omissions.append(f"{entrant.label}, {unit.key}: {reason}")
                continue
            place = folder.joinpath(*map(component, entrant.model.split("/")), ".eval_results")
            if (model := models.setdefault(place, entrant.model)) != entrant.model:
                omissions.append(f"{entrant.label}, {unit.key}: its folder is that of {model}. Name it by --name")
                continue
            path = place / f"{component(unit.benchmark)}.yaml"
            files.setdefault(path, []).append(_entry(report, unit, cell, runs, repository, evaluator))
    for path, results in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(results, sort_keys=False, allow_unicode=True, width=1000), "utf-8", newline="\n")
    return list(files), omissions


def _reason(entrant: Entrant, cell: Cell, runs: Sequence[TaskRun], repository: str) -> str:
    """Says why a number isn't a result of the task on the Hub's data; empty where it is one."""
    if not repository:
        return "its data aren't on the Hub"
    if entrant.variation:
        return f"the model under other settings ({entrant.variation})"
    if any(run.settings.limit for run in runs):
        return "run with a limit"
    if any(run.settings.partial for run in runs):
        return "its samples, which say judge, prompts and data, aren't there"
    return "; ".join(FLAG_TEXT[flag] for flag in cell.flags if flag in NOT_THE_TASK)


def _entry(
    report: Report, unit: Unit, cell: Cell, runs: Sequence[TaskRun], repository: str, evaluator: Evaluator
) -> dict[str, Any]:
    commits = {commit for run in runs for name, commit in run.settings.commits if name == repository}
    revision = {"revision": commits.pop()} if len(commits) == 1 else {}
    source = {"source": {"url": evaluator.url, "name": evaluator.organization}} if evaluator.url else {}
    return {
        "dataset": {"id": repository, "task_id": unit.key, **revision},
        "value": cell.value,
        "date": max(run.date for run in runs)[:10],
        **source,
        "notes": plain("; ".join(_notes(report, unit, cell, runs))),
    }


def _notes(report: Report, unit: Unit, cell: Cell, runs: Sequence[TaskRun]) -> Iterator[str]:
    ends = f", {cell.scale.low:g} to {cell.scale.high:g}" if cell.scale.ends else ""
    yield f"{unit.quantity or unit.metric} ({cell.scale.unit}{ends}) of {cell.n} items"
    if cell.low is not None and cell.high is not None:
        yield f"95 % interval {cell.low:.6g} to {cell.high:.6g}"
    if judges := " + ".join(dict.fromkeys(run.settings.judged_by for run in runs if run.settings.judges)):
        yield f"judge {judges}" + ("" if cell.coverage is None else f", {cell.coverage:.1%} of its verdicts scored")
    for name, text in (("subset", "subset of {}"), ("prompt", "{}"), ("decoding", "decoding {}")):
        for value in dict.fromkeys(getattr(run.settings, name) for run in runs):
            if value:
                yield text.format(value)
    yield f"culture-tasks {report.version} in {' + '.join(sorted({run.harness for run in runs}))}"
