"""What every benchmark says of its report fits together: addresses, fields, published tables and figures."""

from dataclasses import replace

import pycountry
import pytest

from culture_tasks import published
from culture_tasks.benchmarks.cedar.report import report_of_culture
from culture_tasks.benchmarks.interface import Group, Scale, Task
from culture_tasks.benchmarks.registry import benchmarks, tasks_below
from culture_tasks.benchmarks.reporting import RunFacts, ScoreUnit, TasksRun, groups_and_tasks
from culture_tasks.benchmarks.tables import BenchmarkNumbers
from culture_tasks.report.model import Number
from culture_tasks.vocabulary import language, place

NAMES = list(benchmarks())


def ran(name):
    """Everything that a benchmark has, run by one model."""
    tasks = tuple(task.name for task in benchmarks()[name].tasks())
    entries = benchmarks()[name].entries()
    groups = {entry.name: entry for entry in entries if isinstance(entry, Group) and entry.means}
    below = {group: tuple(task.name for task in tasks_below(group)) for group in groups}
    parts = {member for entry in groups.values() for member in entry.members}
    return TasksRun(tasks, below, parts, [set(tasks)])


def units(name):
    return list(benchmarks()[name].report().units(ran(name)))


CELL = Number(1.0, Scale("percent", 0, 100), runs=("run",))


def numbers_of(name, known=None):
    """The numbers of a benchmark of which one model ran everything; each address that is asked for must be known."""
    report = benchmarks()[name].report()

    def cells(unit, statistic, where):
        assert known is None or (statistic, tuple(field for field, _ in where)) in known, (unit, statistic, where)
        for field, group in where:
            assert group in report.field_named(field), (unit, statistic, field, group)
        return {"m": CELL}

    return BenchmarkNumbers(
        units={unit.key: replace(unit, title=unit.key) for unit in units(name)},
        fields=report.groups,
        rows=["m"],
        cells=cells,
        scale=lambda *_: CELL.scale,
        facts=lambda row, _: RunFacts(row, "model", "task", {}),
        headers=report.headers,
        source=report.source,
        benchmark=name,
    )


def statistics(report):
    """Every statistic of a benchmark with the fields that its numbers are split by."""
    splits = [(), *(report.splits or ())]
    yield from ((name, fields) for name in ("score", *(one.name for one in report.further)) for fields in splits)
    yield from ((one.name, (*one.within, *([one.dimension] if one.dimension else []))) for one in report.derived)
    yield from ((one.name, ()) for one in report.costs)


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_figures_show_numbers_that_there_are(name):
    report = benchmarks()[name].report()
    numbers = numbers_of(name, set(statistics(report)))
    tables, figures = list(report.tables(numbers)), list(report.figures(numbers))
    assert len({table.key for table in tables}) == len(tables)
    assert tables
    for table in tables:
        keys = [column.key for column in table.columns]
        assert len(keys) == len(set(keys)), table.key
        assert {len(texts) for texts in table.rows.values()} == {len(table.row_headers)}
        assert table.source
    assert all(figure.value and any(figure.panels.values()) for figure in figures)
    for contrast in report.contrasts:
        assert set(contrast.splits) <= set(report.splits or ())
        assert contrast.values.keys() <= {statistic for statistic, _ in statistics(report)}


def test_an_own_culture_like_cedar_has_accuracy_and_biases():
    report = report_of_culture("korea", "Korea", "KR")
    unit = {"cedar_text": ScoreUnit("cedar_text", ("cedar_text",))}
    numbers = replace(numbers_of("cedar"), units=unit, fields=report.groups, cells=lambda *_: {"m": CELL})
    assert [(table.key, len(table.columns)) for table in report.tables(numbers)] == [
        ("cedar_text_accuracy", 3),
        ("cedar_text_lsepp", 14),
        ("cedar_text_lsrqb", 4),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_published_tables_are_there_and_have_the_columns(name):
    named: set[str] = set()
    for table in benchmarks()[name].report().tables(numbers_of(name)):
        named |= set(table.papers)
        printed = {frozenset(column.printed.items()) for column in table.columns if column.printed}
        there = {frozenset(column.keys.items()) for paper in table.papers for column in published.load(paper).columns}
        assert not table.papers or printed & there, table.key
    assert all(published.load(paper).benchmark == name for paper in named)


@pytest.mark.parametrize("name", NAMES)
def test_cultures_are_groups_that_scores_are_split_by_and_headlines_do_not_overlap(name):
    report = benchmarks()[name].report()
    assert not report.culture or (report.culture,) in (report.splits or ())
    places = [name for name, groups in report.groups.items() if groups.places]
    assert all((field,) in (report.splits or ()) for field in places)
    found = units(name)
    assert {task for unit in found for task in unit.tasks} == set(ran(name).tasks)
    headlines = [task for unit in found if unit.headline for task in unit.tasks]
    assert len(headlines) == len(set(headlines))


def test_groups_count_where_a_model_has_all_of_one():
    own = TasksRun(("a", "b", "c"), {"both": ("a", "b"), "all": ("a", "b", "c")}, {"both"}, ({"a", "b"}, {"c"}))
    assert [unit.key for unit in groups_and_tasks(own)] == ["a", "b", "c"]
    whole = TasksRun(own.tasks, own.groups, own.parts, ({"a", "b", "c"}, {"a"}))
    assert [unit.key for unit in groups_and_tasks(whole)] == ["all"]


@pytest.mark.parametrize("name", NAMES)
def test_titles_are_words_and_tell_tasks_apart(name):
    entries = [entry for entry in benchmarks()[name].entries() if isinstance(entry, Task | Group)]
    titles = [entry.title for entry in entries]
    assert len(set(titles)) == len(titles)
    assert all(title.startswith(benchmarks()[name].title) for title in titles)
    for entry in entries:
        metrics = [metric.title for metric in entry.metrics()] if isinstance(entry, Task) else []
        assert len(set(metrics)) == len(metrics)
        assert all(title and "_" not in title for title in (entry.title, *metrics)), entry.name


@pytest.mark.parametrize("name", NAMES)
def test_languages_have_the_shortest_code_of_iso_639_and_places_codes_that_exist(name):
    for code in {code for task in benchmarks()[name].tasks() for code in task.languages}:
        known = pycountry.languages.get(alpha_3=language(code).iso_639_3)
        assert getattr(known, "alpha_2", known.alpha_3) == code
    for groups in benchmarks()[name].report().groups.values():
        assert not groups or groups.codes.keys() <= set(groups)
        assert all(place(code).code == code for code in groups.codes.values())


def test_benchmarks_share_places_whatever_they_call_them():
    groups = {name: benchmarks()[name].report().groups.values() for name in NAMES}
    codes = {name: {code for field in found for code in field.codes.values()} for name, found in groups.items()}
    counts = {"blend": 16, "care": 3, "crosscult": 3, "culturalbench": 45, "culturalvqa": 11, "cvqa": 30, "normad": 75}
    assert {name for name in NAMES if "CN" in codes[name]} == {*counts, "worldcuisines"}
    assert {name: len(codes[name]) for name in counts} == counts
