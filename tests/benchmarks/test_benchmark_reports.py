"""What every benchmark says of its report fits together: addresses, fields, published tables and figures."""

import itertools

import pytest

from culture_tasks import published
from culture_tasks.benchmarks.interface import Group, Task
from culture_tasks.benchmarks.registry import benchmarks, tasks_below
from culture_tasks.benchmarks.reporting import BenchmarkReport, Ran, UnitOf, whole_groups_then_tasks

NAMES = list(benchmarks())


def ran(name, *models):
    """Everything that a benchmark has, run by one model, or what is given by each."""
    entries = benchmarks()[name].entries()
    tasks = tuple(entry.name for entry in entries if isinstance(entry, Task))
    groups = {entry.name: entry for entry in entries if isinstance(entry, Group) and entry.means}
    below = {group: tuple(task.name for task in tasks_below(group)) for group in groups}
    parts = {member for entry in groups.values() for member in entry.members}
    return Ran(tasks, below, parts, models or (set(tasks),))


def units(name, *models):
    return list(benchmarks()[name].report().units(ran(name, *models)))


def addresses(name):
    """Every address of a benchmark's tables: with whole groups run, and with single tasks alone."""
    report = benchmarks()[name].report()
    whole = units(name)
    alone = [UnitOf(task, (task,)) for task in ran(name).tasks]
    for spec in itertools.chain(report.tables(whole), report.tables(alone)):
        yield from ((spec, shown.at) for shown in spec.columns if shown.at is not None)
        yield from ((spec, address) for line in spec.lines for address in line.at.values())


@pytest.mark.parametrize("name", NAMES)
def test_tables_name_numbers_that_there_are(name):
    report = benchmarks()[name].report()
    splits = {(), *(report.splits or ())}
    derived = {
        (each.name, (*each.within, *([each.dimension] if each.dimension else []))) for each in report.derived
    } | {(each.name, ()) for each in report.costs}
    scores = {"score", *(each.name for each in report.further)}
    for spec, address in addresses(name):
        fields = tuple(field for field, _ in address.where)
        fits = fields in splits if address.statistic in scores else (address.statistic, fields) in derived
        assert fits, (spec.key, address)


@pytest.mark.parametrize("name", NAMES)
def test_groups_in_tables_are_groups_of_their_field(name):
    report = benchmarks()[name].report()
    for spec, address in addresses(name):
        for field, group in address.where:
            assert group in report.field_named(field).order, (spec.key, field, group)


@pytest.mark.parametrize("name", NAMES)
def test_columns_and_lines_are_told_apart(name):
    for spec in benchmarks()[name].report().tables(units(name)):
        keys = [shown.key for shown in spec.columns]
        assert len(keys) == len(set(keys)), spec.key
        assert all(shown.at is not None for shown in spec.columns) or spec.lines
        assert all(set(line.at) <= set(keys) for line in spec.lines)
        assert bool(spec.lines) == bool(spec.line_header)
        assert spec.each_model == ("{model}" in spec.title)


@pytest.mark.parametrize("name", NAMES)
def test_published_tables_are_there_and_have_the_columns(name):
    report = benchmarks()[name].report()
    named = {paper for papers in report.published.values() for paper in papers}
    for spec in report.tables(units(name)):
        named |= set(spec.papers)
        printed = {frozenset(shown.printed.items()) for shown in spec.columns if shown.printed}
        there = {
            frozenset((str(key), text) for key, text in column.keys.items())
            for paper in spec.papers
            for column in published.load(paper).columns
        }
        assert not spec.papers or printed & there, spec.key
    assert named <= set(published.names())
    assert all(published.load(paper).benchmark == name for paper in named)


@pytest.mark.parametrize("name", NAMES)
def test_figures_and_contrasts_show_numbers_that_there_are(name):
    report = benchmarks()[name].report()
    dimensions = {"score": {fields[-1] for fields in report.splits or ()}}
    dimensions |= {each.name: dimensions["score"] for each in report.further}
    dimensions |= {each.name: {each.dimension} for each in report.derived}
    for figure in report.figures:
        assert set(figure.dimensions) <= dimensions[figure.statistic], figure.key
    for contrast in report.contrasts:
        assert set(contrast.splits) <= set(report.splits or ())
        for figure in contrast.figures:
            assert set(figure.dimensions) <= dimensions[figure.statistic], figure.key
        for table in contrast.tables:
            assert table.statistic in dimensions


@pytest.mark.parametrize("name", NAMES)
def test_the_field_of_cultures_is_a_field_that_scores_are_split_by(name):
    report = benchmarks()[name].report()
    assert not report.culture or (report.culture,) in (report.splits or ())
    for field in report.fields:
        assert set(field.cultures) <= set(field.order)
        assert not field.cultures or field.name == report.culture


@pytest.mark.parametrize("name", NAMES)
def test_every_task_is_in_some_unit_and_headlines_do_not_overlap(name):
    found = units(name)
    assert {task for unit in found for task in unit.tasks} == set(ran(name).tasks)
    headlines = [task for unit in found if unit.headline for task in unit.tasks]
    assert len(headlines) == len(set(headlines))


def test_groups_count_where_a_model_has_all_of_one():
    own = Ran(("a", "b", "c"), {"both": ("a", "b"), "all": ("a", "b", "c")}, {"both"}, ({"a", "b"}, {"c"}))
    assert [unit.key for unit in whole_groups_then_tasks(own)] == ["a", "b", "c"]
    whole = Ran(own.tasks, own.groups, own.parts, ({"a", "b", "c"}, {"a"}))
    assert [unit.key for unit in whole_groups_then_tasks(whole)] == ["all"]


def test_without_anything_of_its_own_a_benchmark_can_be_reported():
    report = BenchmarkReport()
    assert report.splits is None
    assert report.is_as_published(("any",))
    assert list(report.tables([UnitOf("any", ("any",))])) == []
    assert report.field_named("region").order == ()
