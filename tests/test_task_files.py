"""The registry is the test list: the benchmarks, the files on disk and both harnesses' indexes agree."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from culture_tasks.benchmarks.interface import HARNESSES, Entry, Group, Tag, Task
from culture_tasks.benchmarks.registry import (
    benchmark_of,
    benchmarks,
    entries,
    in_harness,
    task_file,
    task_folder,
    tasks_below,
)
from culture_tasks.errors import MissingExtraError
from culture_tasks.harness.lmms_eval import plugin
from culture_tasks.harness.task_files import stale_files

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [(harness, name) for harness in HARNESSES for name in benchmarks() if (task_folder(harness) / name).is_dir()]


def files(harness: str, benchmark: str = "**") -> list[Path]:
    return sorted(task_folder(harness).glob(f"{benchmark}/*.yaml"))


def names_in(harness: str) -> set[str]:
    """Returns every word of the lines that name tasks in a harness's own files; its index takes ten times as long."""
    tasks = Path(*importlib.util.find_spec(harness).submodule_search_locations) / "tasks"
    named = re.compile(r"^\s*(?:-\s+)?(?:(?:task|group|tag):.*|-\s+\S+\s*)$", re.MULTILINE)
    lines = (line for path in tasks.rglob("*.yaml") for line in named.findall(path.read_text("utf-8")))
    return {word.strip("\"'") for line in lines for word in re.split(r"[\s,\[\]]+", line)}


def ours(harness: str) -> dict[str, Entry]:
    return {name: entry for name, entry in entries().items() if in_harness(entry, harness)}


@pytest.mark.parametrize("benchmark", benchmarks().values(), ids=benchmarks())
def test_the_files_are_what_the_benchmarks_declare(benchmark):
    assert stale_files(benchmark, task_folder("lm_eval").parent) == [], "run `make task-files`"


@pytest.mark.parametrize("harness", HARNESSES)
def test_every_file_is_declared_and_every_entry_has_its_file(harness):
    declared = {task_file(entry, harness) for entry in ours(harness).values() if not isinstance(entry, Tag)}
    assert declared == set(files(harness))
    assert len(declared) > 20
    # A harness would read `!function` from a Python file beside a task's, and keep its state apart.
    assert list(task_folder(harness).rglob("*.py")) == []


def test_every_entry_is_in_a_harness_and_its_members_in_the_same_and_has_data():
    for name, entry in entries().items():
        harnesses = [harness for harness in HARNESSES if in_harness(entry, harness)]
        assert harnesses, name
        assert all(task.data.sources for task in tasks_below(name)), name
        for member in () if isinstance(entry, Task) else entry.members:
            assert benchmark_of(member) is benchmark_of(name)
            assert all(in_harness(entries()[member], harness) for harness in harnesses)


# lm-eval


def test_lm_eval_s_index_holds_all_of_ours_and_none_of_its_own_names():
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(task_folder("lm_eval")), include_defaults=False)
    kinds = {Task: manager.all_subtasks, Group: manager.all_groups, Tag: manager.all_tags}
    for kind, names in kinds.items():
        assert set(names) == {entry.name for entry in ours("lm_eval").values() if isinstance(entry, kind)}
    theirs = names_in("lm_eval")
    assert {"mmlu", "arc_easy", "hellaswag"} <= theirs
    assert theirs.isdisjoint(entries())


def test_the_entry_point_names_the_folder_of_lm_eval_s_tasks():
    """lm-eval's pull request #4015 finds the package that an entry point names, and reads the first of its folders."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [value] = project["entry-points"]["lm_eval.tasks"].values()
    [folder] = importlib.util.find_spec(value).submodule_search_locations
    assert Path(folder).resolve() == task_folder("lm_eval").resolve()


@pytest.mark.parametrize("benchmark", [name for harness, name in FOLDERS if harness == "lm_eval"])
def test_what_lm_eval_itself_checks_of_a_task_holds(benchmark, monkeypatch, fixture_data, caplog):
    """The checks of ``tests/test_tasks.py`` in lm-eval's repository, for all tasks of which there are toy data."""
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    manager = TaskManager(include_path=str(task_folder("lm_eval") / benchmark), include_defaults=False)
    checked = []
    for name in manager.all_subtasks:
        with contextlib.suppress(MissingExtraError):
            checked += manager.load([name])["tasks"].values()
            check_as_lm_eval(checked[-1])
    assert checked
    assert "--metadata" not in caplog.text


def check_as_lm_eval(task):
    assert (task.has_training_docs(), task.has_validation_docs(), task.has_test_docs()) == (False, False, True)
    assert not task.should_decontaminate()
    docs = list(itertools.islice(task.test_docs(), 3))
    # Only a template that is printed with blanks at its end has them.
    declared = [entries()[task.config.task].prompt(doc).parts[-1] for doc in docs]
    texts = list(map(task.doc_to_text, docs))
    assert all(text.strip() for text in texts)
    assert all(text == text.rstrip() or text.endswith(end) for text, end in zip(texts, declared, strict=True))
    task.build_all_requests(rank=0, limit=3, world_size=1)
    made = [task.construct_requests(doc=doc, ctx=task.doc_to_text(doc)) for doc in docs]
    requests = list(itertools.chain.from_iterable(one if isinstance(one, list) else [one] for one in made))
    assert [request.doc for request in requests] == [instance.doc for instance in task.instances]
    assert [doc for doc, _ in itertools.groupby(request.doc for request in requests)] == docs
    by_likelihood = entries()[task.config.task].choices is not None
    assert {request.request_type for request in requests} == {"loglikelihood" if by_likelihood else task.OUTPUT_TYPE}


# lmms-eval


@pytest.fixture(scope="module")
def lmms_eval_manager():
    """lmms-eval's task manager with the plug-in, and without the harness's own tasks."""
    import lmms_eval.models  # noqa: F401 - loads the entry points
    from lmms_eval.tasks import TaskManager

    return TaskManager(include_defaults=False)


def test_lmms_eval_loads_the_plug_in_whose_index_holds_all_of_ours_and_none_of_its_own_names(lmms_eval_manager):
    manager = type(lmms_eval_manager)
    before = (manager.initialize_tasks, manager.load_task_or_group)
    plugin.register()  # again, which changes nothing
    assert (manager.initialize_tasks, manager.load_task_or_group) == before
    assert set(lmms_eval_manager.all_tasks) == ours("lmms_eval").keys()
    theirs = names_in("lmms_eval")
    assert {"mme", "mmmu_val", "chartqa"} <= theirs
    assert theirs.isdisjoint(entries())


def test_the_index_from_the_benchmarks_is_what_lmms_eval_reads_from_the_files(lmms_eval_manager):
    read = lmms_eval_manager._get_task_and_group(str(task_folder("lmms_eval")))
    ours = {name: in_order(entry) for name, entry in plugin.task_index().items()}
    tags = {name: ours.pop(name) for name, entry in entries().items() if isinstance(entry, Tag) and name in ours}
    assert ours == {name: in_order(entry) for name, entry in read.items()}
    assert tags  # which lmms-eval doesn't read from a file with a class


def in_order(entry: Mapping[str, Any]) -> dict[str, Any]:
    ordered = {key: sorted(value) if isinstance(value, list) else value for key, value in entry.items()}
    return ordered | {"type": entry["type"].removeprefix("python_")}  # lmms-eval lists tasks of this type alone


@pytest.mark.parametrize(("harness", "benchmark"), FOLDERS)
def test_every_file_names_its_class_and_task_in_at_most_eight_lines_or_its_members(harness, benchmark):
    from lm_eval.tasks._yaml_loader import load_yaml
    from lmms_eval.utils import load_yaml_config

    for path in files(harness, benchmark):
        lines = path.read_text(encoding="utf-8").splitlines()
        content = (
            load_yaml(path, resolve_func=True) if harness == "lm_eval" else load_yaml_config(str(path), mode="full")
        )
        if "group" in content:
            assert set(content["task"]) <= entries().keys(), path
            continue
        assert len(lines) <= 8, path
        assert content["class"].__module__ == f"culture_tasks.harness.{harness}.task", path
        assert content["metadata"]["culture_task"] == content["task"] == path.stem, path
