"""Which benchmarks there are, of other packages too, and what is none or clashes is refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.care.rubrics import RUBRICS
from culture_tasks.benchmarks.interface import Benchmark, Tag
from culture_tasks.errors import CultureTasksError


def made(name="proverbs", entries=(), rubrics=()):
    methods = {"entries": lambda _: entries, "rubrics": lambda _: rubrics}
    return type("Made", (Benchmark,), {"name": name, "title": "", "paper": "", "data": "", **methods})()


def offer(monkeypatch, value):
    """Has another package offer an object, and asks for all benchmarks."""
    point = SimpleNamespace(name="other", value="other.benchmark:BENCHMARK", load=lambda: value)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.ENTRY_POINTS else [])
    return registry.benchmarks.__wrapped__()


def test_another_package_s_benchmark_comes_after_ours(monkeypatch):
    assert list(offer(monkeypatch, made()))[-1] == "proverbs"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a text", "found str. Expected a Benchmark"),
        (made("care"), "the benchmark 'care' is one of care's already"),
        (made(entries=(Tag(name="cedar", about="", members=()),)), "tag .cedar. is one of cedar.s"),
        (made(rubrics=RUBRICS), "the rubric 'care_entities_opinion' is one of care's already"),
    ],
)
def test_what_clashes_is_refused_with_where_it_comes_from(monkeypatch, value, said):
    with pytest.raises(CultureTasksError, match=said) as error:
        offer(monkeypatch, value)
    assert "'other' (other.benchmark:BENCHMARK)" in str(error.value)


def test_an_unknown_task_gets_the_nearest_name():
    with pytest.raises(CultureTasksError, match=r"no task .care_zj"):
        registry.task_named("care_zj")
