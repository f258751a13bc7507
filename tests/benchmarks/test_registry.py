"""Which benchmarks there are, of other packages and of built cultures, and what is none or clashes is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.cultures import cultures_in
from support.groups import Group

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.care.rubrics import RUBRICS
from culture_tasks.benchmarks.cultures import BuiltCulture, built_cultures
from culture_tasks.benchmarks.interface import Benchmark, Tag
from culture_tasks.errors import CultureTasksError, DataError
from culture_tasks.harness.lmms_eval.plugin import task_index
from culture_tasks.harness.task_files import stale_files


def made(name="proverbs", entries=(), rubrics=()):
    class Made(Benchmark):
        title = paper = data = "made up"

        def entries(self):
            return entries

        def rubrics(self):
            return rubrics

        def check(self, data_folder):
            raise NotImplementedError

    Made.name = name
    return Made()


def offer(value):
    """Has another package offer an object, and asks for all benchmarks."""
    point = SimpleNamespace(name="other", value="other.benchmark:BENCHMARK", load=lambda: value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINTS else [])
        return registry.benchmarks.__wrapped__()


def test_another_package_s_benchmark_comes_after_ours():
    assert list(offer(made()))[-1] == "proverbs"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a text", "found str. Expected a Benchmark"),
        (made("care"), "the benchmark 'care' is one of care's already"),
        (made(entries=(Tag(name="cedar", about="", members=()),)), "tag .cedar. is one of cedar.s"),
        (made(rubrics=RUBRICS), "the rubric 'care_entities_opinion' is one of care's already"),
    ],
)
def test_what_clashes_is_refused_with_where_it_comes_from(value, said):
    with pytest.raises(CultureTasksError, match=said) as error:
        offer(value)
    assert "'other' (other.benchmark:BENCHMARK)" in str(error.value)


def test_an_unknown_task_gets_the_nearest_name():
    with pytest.raises(CultureTasksError, match=r"no task .care_zj"):
        registry.task_named("care_zj")


# Built cultures

MANIFEST = {
    "name": "nowhere",
    "title": "Nowhere",
    "like": "care",
    "way": "",
    "language": "fa",
    "place": "IR",
    "marks": [],
    "facts": {},
    "files": {},
}


def culture(folder, **fields):
    folder.mkdir(parents=True)
    (folder / "culture.json").write_text(json.dumps(MANIFEST | fields), "utf-8")
    return folder


def test_cultures_are_found_in_their_folders_in_projects_and_below(tmp_path):
    one = culture(tmp_path / "many" / "one")
    two = culture(tmp_path / "many" / "project" / "built")
    three = culture(tmp_path / "three" / "built")
    with cultures_in(tmp_path / "many", tmp_path / "three", one):
        assert built_cultures() == [one, two, three]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "holds no built culture"),
        ("{", "can't be read"),
        ('{"facts":' * 100_000, "can't be read"),
        ("[]", "no field"),
        (json.dumps({"name": "x"}), "no field 'title'"),
        (json.dumps(MANIFEST | {"name": "../x"}), "field 'name'"),
        (json.dumps(MANIFEST | {"title": "x\nprocess_docs: y"}), "other types"),
        (json.dumps(MANIFEST | {"marks": [1]}), "other types"),
    ],
)
def test_a_folder_that_holds_none_is_refused(tmp_path, content, said):
    if content is not None:
        (tmp_path / "culture.json").write_text(content, "utf-8")
    with cultures_in(tmp_path), pytest.raises(DataError, match=said):
        registry.cultures()


@pytest.mark.parametrize("title", ["ශ්\u200dරී ලංකාව", "ایران\u200cزمین", "Corée\u00a0du Sud", "南\u3000韓"])
def test_a_title_may_join_letters_and_hold_any_space(tmp_path, title):
    assert BuiltCulture.read(culture(tmp_path / "one", title=title)).title == title


def test_the_registry_names_the_folder_of_a_culture_that_it_cannot_use(tmp_path):
    with (
        cultures_in(culture(tmp_path / "one", like="caer")),
        pytest.raises(CultureTasksError, match=r"one.*caer.*care"),
    ):
        registry.benchmarks()
    with (
        cultures_in(tmp_path / "two"),
        pytest.raises(DataError, match=r"CULTURE_TASKS_CULTURES: .*two: no such folder"),
    ):
        registry.benchmarks()


@pytest.mark.parametrize(
    ("like", "fact"), [("care", "ratings"), ("culturalvqa", "fewshot"), ("crosscult", "partitions")]
)
def test_a_culture_without_a_fact_that_its_benchmark_needs_is_refused(tmp_path, like, fact):
    with (
        cultures_in(culture(tmp_path / "one", like=like)),
        pytest.raises(DataError, match=rf"one/culture.json, field 'facts': no '{fact}'"),
    ):
        registry.entries()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    group = Group(
        tmp_path_factory.mktemp("iran"),
        "care",
        {"a": ["write"], "b": ["check"]},
        name="iran",
        title="Iran",
        language="fa",
        place="IR",
        options={"questions_per_writer": 2, "least_alpha": 0.0, "least_pearson": 0.0},
    )
    facts = {"category": "opinion", "scope": "nationwide", "culture": "native"}
    group.do("write", "a", lambda row: {"question": f"پرسش {row.name}؟", "answer": "پاسخ", **facts})
    group.do("check", "b", lambda _: {"related": True, "right": True, **facts})
    return group


def test_a_culture_is_what_was_built_or_each_difference_is_named(built, tmp_path):
    first = built.build()
    copy = tmp_path / "copy"
    shutil.copytree(first.folder, copy)
    assert built.build().files == first.files
    assert BuiltCulture.read(copy).problems() == []
    table = next((copy / "data").glob("*.json"))
    table.write_text(table.read_text("utf-8") + " ", "utf-8")
    (copy / "README.md").unlink()
    (copy / "more.txt").write_text("", "utf-8")
    said = BuiltCulture.read(copy).problems()
    assert [one.partition(". ")[0].partition(": ")[2] for one in said] == [
        "missing",
        "not the file that was built (SHA-256)",
        "not a file of the culture",
    ]


def test_no_task_file_of_a_stranger_is_run(built, tmp_path):
    """A task file may name any function, and a template may run code."""
    copy = tmp_path / "copy"
    shutil.copytree(built.build().folder, copy)
    for path in (copy / "tasks").rglob("*.yaml"):
        path.write_text("doc_to_text: !function os.getcwd\n", "utf-8")
    with cultures_in(copy):
        for _ in range(2):  # a second process finds them there
            own = Path(task_index()["care_iran"]["yaml_path"])
            assert not own.is_relative_to(copy)
            assert "os.getcwd" not in own.read_text("utf-8")
        assert own.parents[2] / "lm_eval" in registry.task_folders("lm_eval")
        assert stale_files(registry.benchmarks()["care_iran"], own.parents[2]) == []
