"""The registry is the test list: the benchmarks, the files on disk and both harnesses' indexes agree."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

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

each_folder = pytest.mark.parametrize(("harness", "benchmark"), FOLDERS)


class PlainLoader(yaml.CSafeLoader):
    """Reads ``!function`` as the text that follows it."""


class Function(str):
    __slots__ = ()


PlainLoader.add_constructor("!function", lambda loader, node: Function(loader.construct_scalar(node)))


def files(harness: str, benchmark: str = "**") -> list[Path]:
    return sorted(task_folder(harness).glob(f"{benchmark}/*.yaml"))


@cache
def written(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=PlainLoader)


def with_template(path: Path) -> dict[str, Any]:
    """Returns a file's keys over those of the template that it includes."""
    content = written(path)
    return written(path.parent / content["include"]) | content if "include" in content else content


def functions(value: Any) -> Iterator[str]:
    if isinstance(value, Function):
        yield str(value)
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from functions(each)


def tags(path: Path) -> list[str]:
    given = written(path).get("tag", [])
    return [given] if isinstance(given, str) else given


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


def test_every_entry_is_in_a_harness_and_says_where_its_data_come_from():
    for entry in entries().values():
        assert any(in_harness(entry, harness) for harness in HARNESSES), entry.name
        assert all(task.data.sources for task in tasks_below(entry.name)), entry.name


@each_folder
def test_a_file_is_named_as_its_entry_has_a_version_and_calls_only_its_harness_s_hooks(harness, benchmark):
    (other,) = set(HARNESSES) - {harness}
    for path in files(harness, benchmark):
        content, entry = written(path), entries()[path.stem]
        assert content.get("group", content["task"]) == path.stem
        assert benchmark_of(entry.name).name == benchmark, path
        assert isinstance(entry, Group if "group" in content else Task), path
        assert with_template(path)["metadata"]["version"], path
        for name in functions(with_template(path)):
            assert name.startswith("culture_tasks."), path
            assert not name.startswith(f"culture_tasks.harness.{other}."), path


@each_folder
def test_templates_have_names_that_the_harnesses_do_not_index(harness, benchmark):
    included = {written(path)["include"] for path in files(harness, benchmark) if "include" in written(path)}
    beside = {path.name for path in (task_folder(harness) / benchmark).iterdir() if path.suffix != ".yaml"}
    assert included == beside
    assert all(name.startswith("_") and name.endswith("_template_yaml") for name in included)


def test_the_members_of_a_group_exist_in_its_harnesses_and_its_benchmark():
    for name, entry in entries().items():
        assert tasks_below(name)
        for member in () if isinstance(entry, Task) else entry.members:
            assert benchmark_of(member) is benchmark_of(name)
            assert all(in_harness(entries()[member], harness) for harness in HARNESSES if in_harness(entry, harness))


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_members_in_the_files_are_those_that_are_declared(harness):
    tagged = {path.stem: tags(path) for path in files(harness)}
    for entry in ours(harness).values():
        if isinstance(entry, Group):
            assert tuple(written(task_file(entry, harness))["task"]) == entry.members
        if isinstance(entry, Tag):
            assert {name for name, given in tagged.items() if entry.name in given} == set(entry.members)
    assert {tag for given in tagged.values() for tag in given} <= entries().keys()


# lm-eval


def test_lm_eval_s_index_holds_all_of_ours_and_none_of_its_own_names():
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(task_folder("lm_eval")), include_defaults=False)
    kinds = {Task: manager.all_subtasks, Group: manager.all_groups, Tag: manager.all_tags}
    for kind, names in kinds.items():
        assert set(names) == {entry.name for entry in ours("lm_eval").values() if isinstance(entry, kind)}
    theirs = set(TaskManager().all_tasks)
    assert len(theirs) > 1_000
    assert theirs.isdisjoint(entries())


def test_the_entry_point_names_the_folder_of_lm_eval_s_tasks():
    """lm-eval's pull request #4015 finds the package that an entry point names, and reads the first of its folders."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [value] = project["entry-points"]["lm_eval.tasks"].values()
    [folder] = importlib.util.find_spec(value).submodule_search_locations
    assert Path(folder).resolve() == task_folder("lm_eval").resolve()


@pytest.mark.parametrize("benchmark", [name for harness, name in FOLDERS if harness == "lm_eval"])
def test_every_function_resolves_in_lm_eval(benchmark):
    from lm_eval.tasks._yaml_loader import load_yaml

    for path in files("lm_eval", benchmark):
        content = load_yaml(path, resolve_func=True)
        if "group" not in content:
            check(content, ("custom_dataset", "doc_to_text", "process_results"), path.stem)


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
    requests = [task.construct_requests(doc=doc, ctx=task.doc_to_text(doc)) for doc in docs]
    assert [request.doc for request in requests] == [instance.doc for instance in task.instances] == docs
    assert {request.request_type for request in requests} == {task.OUTPUT_TYPE}


# lmms-eval


@pytest.fixture(scope="module")
def lmms_eval_manager():
    """lmms-eval's task manager as its command line builds it: the plug-in is loaded, and nothing is included."""
    import lmms_eval.models  # noqa: F401 - loads the entry points
    from lmms_eval.tasks import TaskManager

    return TaskManager()


def test_lmms_eval_loads_the_plug_in_whose_index_holds_all_of_ours_and_none_of_its_own_names(lmms_eval_manager):
    manager = type(lmms_eval_manager)
    before = (manager.initialize_tasks, manager.load_task_or_group)
    plugin.register()  # again, which changes nothing
    assert (manager.initialize_tasks, manager.load_task_or_group) == before
    theirs = set(manager.initialize_tasks.__wrapped__(lmms_eval_manager, include_defaults=True))
    assert len(theirs) > 500
    assert theirs.isdisjoint(entries())
    assert set(lmms_eval_manager.all_tasks) - theirs == ours("lmms_eval").keys()


def test_the_index_from_the_benchmarks_is_what_lmms_eval_reads_from_the_files(lmms_eval_manager):
    read = lmms_eval_manager._get_task_and_group(str(task_folder("lmms_eval")))
    assert {name: in_order(entry) for name, entry in plugin.task_index().items()} == {
        name: in_order(entry) for name, entry in read.items()
    }


def in_order(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: sorted(value) if isinstance(value, list) else value for key, value in entry.items()}


@pytest.mark.parametrize("benchmark", [name for harness, name in FOLDERS if harness == "lmms_eval"])
def test_every_function_resolves_in_lmms_eval(benchmark):
    from lmms_eval.utils import load_yaml_config

    hooks = ("process_docs", "doc_to_text", "doc_to_messages", "doc_to_visual", "process_results")
    for path in files("lmms_eval", benchmark):
        content = load_yaml_config(str(path), mode="full")
        if "group" not in content:
            check(content, hooks, path.stem)
            (placeholder,) = content["dataset_kwargs"]["data_files"].values()
            assert Path(placeholder).is_file()


def check(content: Mapping[str, Any], hooks: tuple[str, ...], name: str) -> None:
    """Checks that hooks and aggregations can be called, and that metrics are told apart and know their direction."""
    assert [hook for hook in hooks if not callable(content[hook])] == [], name
    metrics = {metric["metric"]: metric for metric in content["metric_list"]}
    assert Counter(metric["metric"] for metric in content["metric_list"]).most_common(1)[0][1] == 1, name
    for metric in metrics.values():
        assert callable(metric["aggregation"]) or metric["aggregation"] in ("mean", "nanmean"), name
        assert metric["higher_is_better"] in (True, False, None), name
    assert tasks_below(name)[0].metric in metrics, name
