"""The task files of a benchmark, written from its declarations.

The keys that all tasks of a benchmark share are in a template that each file includes; tasks that compare
log-likelihoods have another one. A template's name has no ``.yaml`` at its end, so that no harness takes it for a task.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import HARNESSES, Benchmark, Entry, Group, Harness, JudgedScore, Task
from culture_tasks.benchmarks.registry import cultures
from culture_tasks.harness.scoring import LEXICAL

TEMPLATE, LIKELIHOOD_TEMPLATE = "_default_template_yaml", "_likelihood_template_yaml"
PLACEHOLDER = "_placeholder.jsonl"
"""File of one row that lmms-eval loads before our documents take its place."""

_PLACEHOLDER_ROW = '{"placeholder": "culture-tasks puts the documents here when the task is loaded"}\n'

_Keys = Mapping[str, Any]


class _Function(str):
    """The path of a function that a harness resolves."""

    __slots__ = ()


def task_files(benchmark: Benchmark) -> dict[Path, str]:
    """Returns the files of a benchmark, by their path below the folder of task files."""
    files: dict[Path, str] = {}
    for harness in HARNESSES:
        entries = [
            entry for entry in benchmark.entries() if isinstance(entry, (Task, Group)) and harness in entry.harnesses
        ]
        for name, text in _files_of_harness(benchmark, entries, harness):
            files[Path(harness) / benchmark.name / name] = text
    if any("lmms_eval" in path.parts for path in files):
        files[Path("lmms_eval") / PLACEHOLDER] = _PLACEHOLDER_ROW
    return files


def _files_of_harness(benchmark: Benchmark, entries: Sequence[Entry], harness: Harness) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, Group):
            yield f"{entry.name}.yaml", _yaml(_group_keys(entry, entries, harness))
    tasks = [entry for entry in entries if isinstance(entry, Task)]
    yield from _files_of_tasks(benchmark, [task for task in tasks if task.choices is None], TEMPLATE, harness)
    yield from _files_of_tasks(benchmark, [task for task in tasks if task.choices], LIKELIHOOD_TEMPLATE, harness)


def _files_of_tasks(
    benchmark: Benchmark, tasks: Sequence[Task], template: str, harness: Harness
) -> Iterator[tuple[str, str]]:
    """Yields the files of tasks, and the template with the keys that they share."""
    if not tasks:
        return
    keys_of = {task.name: _keys(task, harness) for task in tasks}
    shared = {
        key: value
        for key, value in keys_of[tasks[0].name].items()
        # A harness looks for tags in a task's own file.
        if key != "tag" and len(tasks) > 1 and all(keys.get(key) == value for keys in keys_of.values())
    }
    notes = dict.fromkeys(task.note for task in tasks if task.note)
    comment = f"# {' '.join(' '.join([f'{benchmark.title} ({benchmark.paper}).', *notes]).split())}\n"
    if shared:
        yield template, comment + _yaml(shared)
    for name, keys in keys_of.items():
        unshared = {key: value for key, value in keys.items() if key not in shared}
        yield f"{name}.yaml", _yaml({"include": template} | unshared) if shared else comment + _yaml(unshared)


def _keys(task: Task, harness: Harness) -> dict[str, Any]:
    """Returns the keys of a task's file, the template's included."""

    def hook(kind: str) -> _Function:
        return _Function(f"culture_tasks.harness.{harness}.hooks.{task.name}__{kind}")

    responses = _Function(f"{task.responses.__module__}.{task.responses.__qualname__}")
    names = {"task": task.name} | ({"tag": task.tag} if task.tag else {})
    output_type = "generate_until" if task.choices is None else "multiple_choice"
    kind = {"output_type": output_type, "test_split": "test", "num_fewshot": 0}
    shared = {
        "doc_to_target": hook("target"),
        "process_results": hook("results"),
        "metric_list": hook("metrics"),
        # lm-eval's own filter takes the log-likelihoods.
        **({} if task.choices else {"filter_list": [{"name": "none", "filter": [{"function": responses}]}]}),
        "metadata": {"version": task.version},
    }
    sampling = task.decoding.temperature > 0
    top_p = {} if task.decoding.top_p is None else {"top_p": task.decoding.top_p}
    if harness == "lm_eval":
        generation = {
            "until": [],
            "max_gen_toks": task.decoding.max_tokens,
            "do_sample": sampling,
            **({"temperature": task.decoding.temperature} if sampling else {}),
            **(top_p if sampling else {}),
        }
        return {
            **names,
            "class": _Function("culture_tasks.harness.lm_eval.task.CultureTask"),
            "custom_dataset": hook("dataset"),
            **kind,
            "fewshot_split": "test",  # so that a question is never among its own examples
            "doc_to_text": hook("text"),
            **({"doc_to_image": hook("images")} if task.shows_images else {}),
            **({"doc_to_choice": hook("choices")} if task.choices else {"generation_kwargs": generation}),
            **shared,
        }
    return {
        **names,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"../{PLACEHOLDER}"}},
        **kind,
        "process_docs": hook("documents"),
        "doc_to_text": hook("text"),
        "doc_to_visual": hook("visuals"),
        "doc_to_messages": hook("messages"),
        "generation_kwargs": {
            "until": [],
            "max_new_tokens": task.decoding.max_tokens,
            "do_sample": sampling,
            "temperature": task.decoding.temperature or 0,
            **top_p,
            "num_beams": 1,
        },
        **shared,
    }


def _group_keys(group: Group, entries: Sequence[Entry], harness: Harness) -> dict[str, Any]:
    tasks = _tasks_below(group, {entry.name: entry for entry in entries})
    metrics = {metric.name: metric for metric in tasks[0].metrics()}
    listed = []
    for name in group.means:
        endings = [""]
        if harness == "lm_eval" and isinstance(metrics[name], JudgedScore):
            endings += [LEXICAL, "_coverage", "_unscored"]
        # lmms-eval takes an entry for every metric whose name holds these letters, and needs the filter's name.
        extra = {"filter_list": ["none"]} if harness == "lmms_eval" else {}
        for ending in endings:
            mean = {"metric": f"{name}{ending}", "aggregation": "mean", "weight_by_size": group.weight_by_size}
            listed.append(mean | extra)
    return {
        "group": group.name,
        "task": list(group.members),
        **({"aggregate_metric_list": listed} if listed else {}),
        "metadata": {"version": tasks[0].version},
    }


def _tasks_below(group: Group, entries: Mapping[str, Entry]) -> list[Task]:
    tasks: list[Task] = []
    for entry in (entries[member] for member in group.members if member in entries):
        if isinstance(entry, Group):
            tasks += _tasks_below(entry, entries)
        elif isinstance(entry, Task):
            tasks.append(entry)
    return tasks


def _yaml(keys: _Keys, indent: str = "") -> str:
    """Returns keys as YAML, in their order, with each name of a short list on its own line."""
    lines: list[str] = []
    for key, value in keys.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{key}:\n{_yaml(value, indent + '  ')}")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            lines.append(f"{indent}{key}:\n")
            for entry in value:
                entry_lines = _yaml(entry, indent + "    ").splitlines(keepends=True)
                lines += [f"{indent}  - {entry_lines[0].lstrip()}", *entry_lines[1:]]
        elif isinstance(value, list) and key == "task":
            lines.append(f"{indent}{key}:\n" + "".join(f"{indent}  - {name}\n" for name in value))
        else:
            lines.append(f"{indent}{key}: {_scalar(value)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, _Function):
        return f"!function {value}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    return str(value)


def write_task_files_of_cultures() -> None:
    """Writes the task files of own cultures into the user's cache, unless they, and nothing else, are there.

    A harness runs what a task file names, so files that anybody else left there are replaced.
    """
    for benchmark in cultures().values():
        folder = benchmark.task_files
        if _holds_only(folder, task_files(benchmark)):
            continue
        unfinished = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
        write_task_files(benchmark, unfinished)
        if folder.is_symlink():
            folder.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            unfinished.replace(folder)
        except OSError:  # another process was first
            shutil.rmtree(unfinished)


def _holds_only(folder: Path, files: Mapping[Path, str]) -> bool:
    there = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    if folder.is_symlink() or any(path.is_symlink() or not path.is_file() for path in there):
        return False
    return {path.relative_to(folder): path.read_bytes() for path in there} == {
        path: text.encode() for path, text in files.items()
    }


def write_task_files(benchmark: Benchmark, folder: Path) -> None:
    """Writes the files of a benchmark below a folder of task files, and removes what it no longer declares."""
    files = {folder / path: text for path, text in task_files(benchmark).items()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in stale_files(benchmark, folder):
        path.unlink()


def stale_files(benchmark: Benchmark, folder: Path) -> list[Path]:
    """Returns the files of a benchmark that are missing, have another text, or aren't declared."""
    files = {folder / path: text for path, text in task_files(benchmark).items()}
    existing = {path for harness in HARNESSES for path in (folder / harness / benchmark.name).glob("*")}
    different = [path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    return sorted({*different, *(existing - files.keys())})
