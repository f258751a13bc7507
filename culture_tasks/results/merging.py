"""Putting the shards of a run together: one result file and sample files, as a run of the whole tasks would have left.

The values are worked out from all samples by the aggregations that a run uses, in the order of the task's documents, so
that they equal those of an unsharded run to the last digit.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Run
from culture_tasks.costs.prices import Prices
from culture_tasks.errors import DataError
from culture_tasks.harness import model_costs
from culture_tasks.harness.aggregation import Aggregation, MeanOfScores
from culture_tasks.harness.judge_costs import KEY as JUDGE_COSTS
from culture_tasks.harness.judge_costs import judge_costs, judged_records
from culture_tasks.harness.loading import Shard
from culture_tasks.harness.records import ClusteredValue, CountedRecord, PartRecord
from culture_tasks.harness.result_rows import MetricRecords
from culture_tasks.harness.scoring import listed_metrics
from culture_tasks.results.comparability import variation
from culture_tasks.results.finding import Harness, find, parse_name, result_name
from culture_tasks.results.loaded_runs import LoadedRun, Loading, Names, load
from culture_tasks.results.rows import FILTER, PARTS_BY_TASK, TaskRecords, keep_tasks, renew_groups, task_row
from culture_tasks.results.run_files import GRADED_FROM, RunFiles, read_run, write_result_file, write_samples
from culture_tasks.results.samples import LoggedSample, samples_of
from culture_tasks.settings import Settings

MERGED_FROM = "merged_from"
"""Key in the configuration of a merged result file: the result files of its shards."""

_LISTED = 5
"""How many names a message lists."""


class MergedRun(NamedTuple):
    """A merged run: its tasks, each with the number of its documents, and tasks of others, which every shard ran."""

    run: RunFiles
    tasks: Mapping[str, int]
    shards: int
    left_out: Sequence[str]


class _ShardRun(NamedTuple):
    run: LoadedRun
    shard: Shard

    @property
    def path(self) -> Path:
        return self.run.result.path


def merge(paths: Sequence[Path], folder: Path, settings: Settings, prices: Prices) -> MergedRun:
    """Puts the shards of one run, found in files, folders or patterns, together in a folder, which isn't searched."""
    result_files, merged = find(paths), folder.resolve()
    files = [path for path in result_files.results if merged not in path.resolve().parents]
    loading = load([str(path) for path in files], Names(), shards=True)
    for problem in (*result_files.problems, *loading.problems):
        name = parse_name(Path(problem.path))
        if problem.kind != "foreign" and not (name and name.task):  # sample files are read once more, line by line
            raise DataError(f"merge: {problem.path}: {problem.kind}, {problem.detail}.")
    parts, left_out = _shards_of_tasks(loading)
    for task, shard_runs in parts.items():
        _refuse_incomplete(task, shard_runs)
    _refuse_different([part for shard_runs in parts.values() for part in shard_runs])
    samples = {task: _samples(task, shard_runs) for task, shard_runs in parts.items()}
    records = {task: _records(task, parts[task][0], logged) for task, logged in samples.items()}
    shards = {part.path: part.run for shard_runs in parts.values() for part in shard_runs}
    contents = _contents(shards)
    new = _united_run(contents, newest=max(shards, key=lambda path: shards[path].order), folder=folder)
    for task, task_records in records.items():
        _renew_task(new, task, task_records, samples[task])
    keep_tasks(new.content, {*renew_groups(new.content, records), *records})
    _renew_run_entries(new.content, list(shards.values()), contents)
    judged = {
        task: [record for metric in task_records.records.values() for record in judged_records(metric.records)]
        for task, task_records in records.items()
    }
    if costs := judge_costs(judged, prices):
        new.content[JUDGE_COSTS] = costs
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(next(iter(shards.values())).result.model, folder, settings)
    for task, task_records in records.items():
        write_samples(new.samples_file(task), [sample.content for sample in samples[task]])
        for aggregation, values, _ in task_records.records.values():
            if aggregation is not None:
                aggregation.finish(values, task, run)
    write_result_file(new)
    return MergedRun(new, {task: len(logged) for task, logged in samples.items()}, len(shards), left_out)


def _shards_of_tasks(loading: Loading) -> tuple[dict[str, list[_ShardRun]], list[str]]:
    """Returns the shards of each task in their order, and the tasks of others; a grading counts for its shard."""
    regraded = {(run.result.graded_from, run.result.task) for run in loading.runs}
    parts: dict[str, list[_ShardRun]] = {}
    left_out: dict[str, None] = {}
    for run in loading.runs:
        result = run.result
        if (result.path, result.task) in regraded or result.members:
            continue
        if result.shard is not None:
            if not result.samples_file.is_file():
                raise DataError(
                    f"merge: {result.path} ({result.shard}): the samples of {result.task} aren't there, in "
                    f"{result.samples_file.name}. Run the shard with --log_samples."
                )
            parts.setdefault(result.task, []).append(_ShardRun(run, result.shard))
        elif run.kind is None:
            left_out[result.task] = None
        else:
            raise DataError(
                f"merge: {result.path} has the whole of {result.task}, and no shard of it. Leave the file out."
            )
    if not parts:
        raise DataError(
            "merge: found no shard. Expected the result files of runs with CULTURE_SHARD, such as CULTURE_SHARD=3/16, "
            "and their sample files (--log_samples)."
        )
    for shards in parts.values():
        shards.sort(key=lambda part: part.shard.number)
    return parts, list(left_out)


def _refuse_incomplete(task: str, parts: Sequence[_ShardRun]) -> None:
    first, total = parts[0], parts[0].shard.of
    paths: dict[int, Path] = {}
    for part in parts:
        if part.shard.of != total:
            raise DataError(
                f"merge: {task}: {part.path} is {part.shard}, with {part.shard.of} shards in all, and {first.path} is "
                f"{first.shard}, with {total}. Name the shards of one run."
            )
        if part.shard.fingerprint != first.shard.fingerprint:
            raise DataError(
                f"merge: {task}: {part.path} ({part.shard}) is of other documents or prompts than {first.path} "
                f"({first.shard}). Run it again with the same data, settings and version of culture-tasks."
            )
        if paths.setdefault(part.shard.number, part.path) != part.path:
            raise DataError(
                f"merge: {task}: {part.shard} is there twice, in {paths[part.shard.number]} and {part.path}. "
                "Leave one of them out."
            )
    if missing := [str(number) for number in range(1, total + 1) if number not in paths]:
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        raise DataError(
            f"merge: {task}: found {len(paths)} of {total} shards; missing {', '.join(missing[:_LISTED])}{more}. "
            f"Run the missing ones (CULTURE_SHARD={missing[0]}/{total}), or name their files too."
        )


def _refuse_different(parts: Sequence[_ShardRun]) -> None:
    """Refuses shards of other settings than the first of their task, or of another model than the first of all."""
    firsts: dict[str, _ShardRun] = {}
    for part in parts:
        task = part.run.run.task
        of_any_task = replace(parts[0].run.run, settings=part.run.run.settings, own_data=part.run.run.own_data)
        for first, run in ((firsts.setdefault(task, part), None), (parts[0], of_any_task)):
            different = _different(part.run, replace(first.run, run=run or first.run.run))
            if different:
                raise DataError(
                    f"merge: {task}: {part.path} ({part.shard}) was run under other settings than {first.path} "
                    f"({first.shard}): {different}. Run it again with the same settings, or name the shards of one run."
                )


def _different(shard: LoadedRun, reference: LoadedRun) -> str:
    """Returns in words how a shard differs from another; empty if it doesn't."""
    ours, theirs = (
        # Prompts and data are in the fingerprints of shards: not every shard has samples of every language, say.
        replace(run, settings=replace(run.settings, asked=None, limit=None, data=(), prompt=result.settings.prompt))
        for run, result in ((shard.run, shard.result), (reference.run, reference.result))
    )
    parts = [
        f"model: {shard.result.model}" if shard.result.model != reference.result.model else "",
        variation(ours, theirs),
        f"data: {ours.own_data or 'the release'}" if ours.own_data != theirs.own_data else "",
    ]
    return ", ".join(filter(None, parts))


def _samples(task: str, parts: Sequence[_ShardRun]) -> list[LoggedSample]:
    """Returns the samples of a task in the order of its documents."""
    samples: dict[int, LoggedSample] = {}
    items: dict[str, LoggedSample] = {}
    gaps: list[str] = []
    total = parts[0].shard.of_documents
    for part in parts:
        before = len(samples)
        for sample in samples_of(part.run.result.samples_file):
            number = sample.content.get("doc_id")
            if type(number) is not int or not 0 <= number < total:
                raise DataError(
                    f"merge: {sample.where}: expected a doc_id from 0 to {total - 1}, found {str(number)[:40]!r}."
                )
            item = sample.record.item if sample.logged[0] else ""
            duplicate = samples.get(number) or (items.get(item) if item else None)
            if duplicate is not None:
                raise DataError(
                    f"merge: {sample.where}: document {number} of {task}{f' (item {item})' if item else ''} is in "
                    f"{duplicate.where} too. Each shard may be there once."
                )
            samples[number] = items[item] = sample
        if (count := len(samples) - before) != part.shard.documents:
            gaps.append(f"{part.shard} ({part.path}) has {count} of its {part.shard.documents}")
    if len(samples) < total:
        first = next(number for number in range(total) if number not in samples)
        raise DataError(
            f"merge: {task}: {total - len(samples)} of {total} documents are missing, the first with the doc_id "
            f"{first}: {'; '.join(gaps[:_LISTED])}. Run these shards again, without --limit."
        )
    return [samples[number] for number in range(total)]


def _records(task: str, part: _ShardRun, samples: Sequence[LoggedSample]) -> TaskRecords:
    """Returns the records of samples as they were when the harness aggregated them."""
    kind = part.run.kind
    if kind is None or not kind.metrics:
        raise DataError(
            f"merge: {task}: no installed package defines its metrics, or its samples have no record. Install the "
            "package that the benchmark comes from."
        )
    listed = listed_metrics(kind.metrics.values(), main=kind.metric)
    functions: dict[str, Aggregation] = {entry["metric"]: entry["aggregation"] for entry in listed}
    records: dict[str, list[Any]] = {}
    for sample in samples:
        main, record = sample.logged
        for name in functions.keys() & sample.content.keys():
            value = sample.content[name]
            value = value if name == main else _as_aggregated(value, functions[name], record)
            records.setdefault(name, []).append(value)
    metrics = {
        f"{name},{FILTER}": MetricRecords(functions[name], records[name]) for name in functions if name in records
    }
    return TaskRecords(kind.metric, list(functions), metrics)


def _as_aggregated(value: Any, function: Aggregation, record: Mapping[str, Any]) -> Any:
    """Returns a logged value as a metric's aggregation had it: a log has no views, clusters and tuples."""
    if value == {}:
        return PartRecord(record) if function.is_score else CountedRecord(record)
    if isinstance(value, float) and isinstance(function, MeanOfScores) and record:
        return ClusteredValue(value, (record["benchmark"], record["cluster"]))
    return tuple(value) if isinstance(value, list) else value


def _contents(files: Mapping[Path, LoadedRun]) -> list[RunFiles]:
    """Returns the result files, without the tasks and groups that a later grading among them has."""
    runs = {path: run for path in files if isinstance(run := read_run(path), RunFiles)}
    for run in runs.values():
        if run.graded_from in runs:
            content = runs[run.graded_from].content
            keep_tasks(content, content["results"].keys() - run.content["results"].keys())
    return list(runs.values())


def _united_run(runs: Sequence[RunFiles], *, newest: Path, folder: Path) -> RunFiles:
    """Returns the merged run, named as the newest shard, with the entries of the tasks of all shards."""
    base = next(run for run in runs if run.result_file == newest)
    content = copy.deepcopy(base.content)
    for part in PARTS_BY_TASK:
        if entries := [run.content[part] for run in runs if run.content.get(part)]:
            content[part] = _unite(entries)
    return RunFiles(base.harness, folder / result_name(base.harness, base.stamp), base.stamp, content)


def _renew_task(new: RunFiles, task: str, records: TaskRecords, samples: Sequence[LoggedSample]) -> None:
    content = new.content
    content["results"][task] = task_row(content["results"][task], records, new.harness)
    content["n-samples"][task] = {"original": len(samples), "effective": len(samples)}
    config, order = content["configs"][task], list(records.names)
    config["metadata"] = {name: value for name, value in config["metadata"].items() if name != Shard.key}
    if unknown := [entry["metric"] for entry in config["metric_list"] if entry["metric"] not in order]:
        raise DataError(
            f"merge: {task} has the metric {unknown[0]}, which isn't one of its benchmark's, so its value can't be "
            "worked out from samples. Run the task without shards."
        )
    config["metric_list"] = sorted(config["metric_list"], key=lambda entry: order.index(entry["metric"]))
    if task in content.get("task_hashes", {}):
        content["task_hashes"][task] = _task_hash([sample.content for sample in samples], new.harness)


def _renew_run_entries(content: dict[str, Any], shards: Sequence[LoadedRun], runs: Sequence[RunFiles]) -> None:
    """Renews the entries about the whole run: names, tokens, times and costs.

    A grading repeats these entries of its run.
    """
    paths = {run.result_file for run in runs}
    run_contents = {run.result_file: run.content for run in runs if run.graded_from not in paths}
    inferences = [shard for shard in shards if shard.result.path in run_contents]
    for part in ("results", "groups"):
        for row in content.get(part, {}).values():
            if isinstance(row.get("alias"), str):
                row["alias"] = re.sub(r" \(shard \d+ of \d+\)$", "", row["alias"])
    config = content.setdefault("config", {})
    config.pop(GRADED_FROM, None)
    config[MERGED_FROM] = [str(shard.result.path) for shard in shards]
    for name in ("throughput", "start_time", "end_time", JUDGE_COSTS, model_costs.KEY):
        content.pop(name, None)
    seconds = [shard.result.seconds for shard in inferences if shard.result.seconds is not None]
    content["total_evaluation_time_seconds"] = str(sum(seconds)) if len(seconds) == len(inferences) else None
    for name in ("efficiency", "usage"):
        if name in content:
            content[name] = _sum([entries.get(name) for entries in run_contents.values()])
    efficiency = content.get("efficiency") or {}
    for counts in (*(efficiency.get("by_task") or {}).values(), efficiency.get("overall") or {}):
        tokens = counts.get("total_output_tokens") or 0.0
        for name, divisor, default in (
            ("avg_output_tokens_per_sample", "docs_with_token_counts", 0.0),
            ("tokens_per_correct_answer", "total_correct_score", None),
        ):
            if name in counts:
                counts[name] = tokens / counts[divisor] if counts.get(divisor) else default
    if costs := [shard.result.costs for shard in inferences if shard.result.costs is not None]:
        content[model_costs.KEY] = model_costs.total_costs(costs).model_dump(mode="json")


def _unite(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns entries of several result files in one, with the metrics of each, and lm-eval's counts added up."""
    united: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            old = united.get(name)
            united[name] = copy.deepcopy(value)
            if isinstance(old, dict) and isinstance(value, dict):
                united[name] = old | united[name]
                for count in ("sample_len", "sample_count"):
                    if count in united[name]:
                        united[name][count] = _sum([old.get(count), value.get(count)])
                if isinstance(value.get("metric_list"), list):
                    listed = [*(old.get("metric_list") or ()), *value["metric_list"]]
                    united[name]["metric_list"] = list({entry["metric"]: entry for entry in listed}.values())
    return united


def _sum(values: Sequence[Any]) -> Any:
    """Adds numbers up, at any depth; of other values it returns the first."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, Mapping) for value in present):
        return {name: _sum([value.get(name) for value in present]) for name in dict.fromkeys(chain(*present))}
    if present and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present):
        return sum(present)
    return next(iter(present), None)


def _task_hash(samples: Sequence[Mapping[str, Any]], harness: Harness) -> str:
    if harness == "lm_eval":
        names = ("doc_hash", "prompt_hash", "target_hash")
        parts = [f"{sample.get(name)}" for sample in samples for name in names]
    else:
        parts = [f"sample_{number}{sample.get('doc_hash')}" for number, sample in enumerate(samples)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()
