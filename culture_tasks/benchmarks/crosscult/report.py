"""How CrossCult-KIBench is reported.

Roles (Tables 2 and 3), with and without insertion (Figure 5), retention (Figures 6 and 11-13), and the costs of a
method (Table 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import get_args

from culture_tasks import vocabulary
from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition, Order
from culture_tasks.benchmarks.crosscult.vocabulary import SEQUENTIAL_ROLES, SINGLE_ROLES, TOPICS, Role
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    WITH_JUDGE,
    At,
    BenchmarkReport,
    ColumnSpec,
    ContrastSpec,
    Cost,
    FigureSpec,
    FurtherScore,
    Groups,
    Mark,
    Number,
    RunFacts,
    ScoreUnit,
    TableSpec,
    TasksRun,
    Where,
    bars_by,
    groups_and_tasks,
)

_Place = tuple[str, str, Where]  # key, label and groups of a column

_OVERLAP = FurtherScore("rouge_l", Scale("percent", 0.0, 100.0))
_SCORES = {"rouge_l": ("rouge_l", "ROUGE-L"), "score": ("judge_score", "LLM Judge")}
"""Each statistic's key in columns and published tables, and its header."""

_ROLES: Mapping[str, Mapping[str, str]] = {
    "single": dict(
        zip(SINGLE_ROLES, ("Reliability", "Generality", "Cross-Lang. Loc.", "Cross-Scen. Loc."), strict=True)
    ),
    "sequential": dict(zip(SEQUENTIAL_ROLES, ("Final Rel.", "Final Gen.", "Final Loc."), strict=True)),
}
"""The roles of each setting that has a table of them, with their headers."""

_NUMBERS = {"single": 2, "sequential": 3}  # their tables in the paper


def _base_model(facts: RunFacts) -> str:
    method = facts.arguments.get("method")
    return facts.label.replace(f" + {method}", "", 1) if method else facts.label


_BASE_MODEL = "Base Model"
_METHODS = {"Base model": _base_model, "Method": lambda facts: facts.method or _BASE_MODEL}
_METHODS_AND_JUDGE = {**_METHODS, "Judge": WITH_JUDGE["Judge"]}


def _setting(edition: Edition, unit: str) -> str:
    """Returns the setting of which a unit is the whole group; empty for another unit."""
    return next((setting for setting in _ROLES if unit == f"{edition.name}_{setting}"), "")


def _retention_of(edition: Edition) -> str:
    return f"{edition.name}_retention"


def _units(edition: Edition, tasks_run: TasksRun) -> Iterator[ScoreUnit]:
    """Yields groups and tasks, and the chains of insertions, whose steps have no numbers."""
    retention = _retention_of(edition)
    without_chains = replace(
        tasks_run,
        tasks=tuple(task for task in tasks_run.tasks if not task.startswith(retention)),
        groups={group: tasks for group, tasks in tasks_run.groups.items() if not group.startswith(retention)},
    )
    yield from groups_and_tasks(without_chains)
    for group, tasks in tasks_run.groups.items():
        if group.startswith(f"{retention}_") and tasks_run.anywhere.intersection(tasks):
            yield ScoreUnit(group, tasks, headline=False)


def _tables(edition: Edition, units: Iterable[ScoreUnit]) -> Iterator[TableSpec]:
    keys = [unit.key for unit in units]
    for unit in keys:
        if setting := _setting(edition, unit):
            yield _role_table(edition, unit, setting)
        elif unit == edition.diagnostic:
            yield _diagnostic_table(edition)
    if timed_unit := next((unit for unit in keys if _is_single(edition, unit)), None):
        yield _efficiency(edition, timed_unit)
    if orders := [order for order in edition.orders if f"{_retention_of(edition)}_{'_'.join(order)}" in keys]:
        yield _retention(edition, "score", "the judge's score from 0 to 10", orders)
        yield _retention(edition, "rouge_l", "ROUGE-L in percent", orders)


def _both_scores(unit: str, place: _Place, *, setting: str = "", sums_up: bool = False) -> Iterator[ColumnSpec]:
    """Yields the columns of ROUGE-L and of the judge's score in a place; published tables have them for a setting."""
    group, header, where = place
    for statistic, (key, label) in _SCORES.items():
        printed = {"setting": setting, "role": group, "score": key} if setting else {}
        yield ColumnSpec(f"{group}_{key}", label, At(unit, statistic, where), header, printed=printed, sums_up=sums_up)


def _role_table(edition: Edition, unit: str, setting: str) -> TableSpec:
    columns = [column for place in _roles(setting) for column in _both_scores(unit, place, setting=setting)]
    columns += _both_scores(unit, ("overall", "Overall", ()), setting=setting, sums_up=True)
    return TableSpec(
        key=f"{edition.name}_table_{_NUMBERS[setting]}",
        title=f"{unit}: ROUGE-L in percent and the judge's score from 0 to 10",
        source=f"CrossCult-KIBench, Table {_NUMBERS[setting]}",
        columns=tuple(columns),
        headers=_METHODS_AND_JUDGE,
        question="changes",
        notes=("Overall: the mean over the roles, each weighing the same.",),
        papers=(f"crosscult_table_{_NUMBERS[setting]}",) if edition is PAPER else (),
    )


def _diagnostic_table(edition: Edition) -> TableSpec:
    places = (*_partitions_and_topics(edition, edition.codes), ("all", "All", ()))
    cultures = "English of the U.S., Chinese of China, Arabic of the Arab region"
    if edition is not PAPER:
        cultures = ", ".join(
            f"{partition.language} of {vocabulary.place(partition.place).name}" for partition in edition.partitions
        )
    return TableSpec(
        key=f"{edition.diagnostic}_by_language",
        title=f"{edition.diagnostic}: ROUGE-L in percent and the judge's score from 0 to 10, by language and by topic",
        source="CrossCult-KIBench, Figure 1b",
        columns=tuple(column for place in places for column in _both_scores(edition.diagnostic, place)),
        notes=(f"Each language asks of its own culture: {cultures}.",),
    )


_MS = Scale("ms", 0.0, better="lower", digits=1)
_GIB = Scale("GiB", 0.0, better="lower", digits=1)
_COUNT = Scale("count", 0.0, better=None, digits=0)
_COSTS: Mapping[Cost, tuple[str, str]] = {
    Cost("train_ms", _MS): ("Train / case, ms", "train_time"),
    Cost("insert_ms", _MS, of_single_requests=True): ("Insert / case, ms", "insert_time"),
    Cost("request_ms", _MS, of_single_requests=True): ("Request / sample, ms", "request_time"),
    Cost("train_gib", _GIB): ("Train Mem., GiB", "train_memory"),
    Cost("peak_gib", _GIB, of_single_requests=True): ("Eval Mem., GiB", "eval_memory"),
    Cost("parameters", Scale("billions", 0.0, better="lower")): ("Params, B", "parameters"),
    Cost("answered", _COUNT): ("Answered", ""),
    Cost("found", _COUNT): ("Found", ""),
}
"""The costs of a run, with their headers and their quantities in Table 4."""


def _efficiency(edition: Edition, unit: str) -> TableSpec:
    return TableSpec(
        key=f"{edition.name}_table_4",
        title=f"{unit}: time, memory and size",
        source="CrossCult-KIBench, Table 4",
        columns=tuple(
            ColumnSpec(cost.name, label, At(unit, cost.name), printed={"quantity": quantity} if quantity else {})
            for cost, (label, quantity) in _COSTS.items()
        ),
        headers={**_METHODS, "Measured": attrgetter("timing")},
        question="runs",
        notes=(
            "Of whole runs, with all of their tasks. Times are comparable with the paper's where requests were "
            "answered one at a time (paper_latency=true) on the same device. Memory is that of the GPUs, or of the "
            "process on a CPU. Answered: prompts, the plain model's among them. Found: prompts whose answer was there "
            "already.",
        ),
        papers=("crosscult_table_4",) if edition is PAPER else (),
    )


def _roles(setting: str) -> Iterator[_Place]:
    return ((role, label, (("role", role),)) for role, label in _ROLES[setting].items())


def _partitions_and_topics(edition: Edition, partitions: Iterable[str]) -> Iterator[_Place]:
    yield from ((code, edition.languages[code], (("partition", code),)) for code in partitions)
    yield from ((topic, topic.title(), (("topic", topic),)) for topic in TOPICS)


def _retention(edition: Edition, statistic: str, scores: str, orders: Iterable[Order]) -> TableSpec:
    retention = _retention_of(edition)
    return TableSpec(
        key=retention if statistic == "score" else f"{retention}_{statistic}",
        title=f"{edition.title}: reliability after each insertion, {scores}",
        source="CrossCult-KIBench, Figures 6 and 11-13",
        columns=tuple(
            ColumnSpec(
                f"{'_'.join(order)}_{partition}_after_{step}",
                partition.upper(),
                At(f"{retention}_{'_'.join(order)}", statistic, (("partition", partition), ("after", str(step)))),
                f"{', '.join(order).upper()}: step {step}",
            )
            for order in orders
            for step in range(1, len(order) + 1)
            for partition in order[:step]
        ),
        headers=_METHODS_AND_JUDGE,
        question="changes",
        notes=(
            "Reliability of a partition's insertions, after each step of a chain in the order above. A method that "
            "keeps its insertions has the same number at every step.",
        ),
    )


_SCORE, _ROUGE_L = "Score (0 to 10)", "ROUGE-L (percent)"


def _is_single(edition: Edition, unit: str) -> bool:
    return unit.startswith(f"{edition.name}_single")


def _reliability(edition: Edition, number: Number) -> Mark | None:
    is_reliability = number.fixed == {"role": "Reliability"} and number.dimension in ("topic", "partition")
    panel = "By language" if number.dimension == "partition" else f"By {number.dimension}"
    return Mark(panel, number.model, number.group) if is_reliability and _is_single(edition, number.unit) else None


def _after_insertions(edition: Edition, number: Number) -> Mark | None:
    """Draws retention: a panel per model and chain, and a series per language of the insertion."""
    retention = _retention_of(edition)
    if number.dimension != "after" or not number.unit.startswith(retention):
        return None
    chain = number.unit.removeprefix(retention).strip("_").split("_")
    names = edition.in_order(list(filter(None, chain)), " → ")
    panel = " · ".join(filter(None, (number.model, names)))
    return Mark(panel, number.fixed.get("partition", number.title), number.group)


def _figures(edition: Edition) -> Iterator[FigureSpec]:
    yield FigureSpec(
        key=f"{edition.name}_reliability",
        title=f"{edition.title}: single-insert reliability",
        source="CrossCult-KIBench, Figure 5",
        kind="dots",
        groups="topic and language",
        value=_SCORE,
        mark=partial(_reliability, edition),
        question="changes",
    )
    yield bars_by(
        "partition",
        key=f"{edition.name}_diagnostic",
        title=f"{edition.title}: scores with nothing inserted",
        source="CrossCult-KIBench, Figure 1b",
        value=_SCORE,
        groups="language",
        units=lambda unit: unit == edition.diagnostic,
    )
    for statistic, value, ending, suffix in (
        ("score", _SCORE, "", ""),
        ("rouge_l", _ROUGE_L, "_rouge_l", ", by ROUGE-L"),
    ):
        yield FigureSpec(
            key=f"{edition.name}_retention{ending}",
            title=f"{edition.title}: retention after each insertion{suffix}",
            source="CrossCult-KIBench, Figures 6, 11-13",
            kind="lines",
            groups="insertions so far",
            value=value,
            mark=partial(_after_insertions, edition),
            statistic=statistic,
            series="language of the insertion",
            question="changes",
        )


def _without_and_with(edition: Edition) -> ContrastSpec:
    def beside(first: RunFacts, second: RunFacts) -> bool:
        is_single = first.task == second.task and _is_single(edition, second.task)
        return is_single and (first.method or _BASE_MODEL) == _BASE_MODEL != (second.method or _BASE_MODEL)

    return ContrastSpec(
        kind="insertion",
        key=f"{edition.name}_insertion",
        title=f"{edition.title}, single-insert reliability without and with the insertion",
        source="CrossCult-KIBench, Figure 5",
        beside=beside,
        splits=(("role",), ("role", "topic"), ("role", "partition")),
        fixed=(("role", "reliability"),),
        words=("without the insertion", "with it"),
        parts=("Base", "Edited"),
        values={"score": _SCORE, "rouge_l": _ROUGE_L},
        groups="topic and language",
        series="model",
        headers=_METHODS_AND_JUDGE,
    )


@cache
def report_of(edition: Edition) -> BenchmarkReport:
    """Returns how an edition is reported."""
    places = {partition.code: partition.place for partition in edition.partitions}
    longest = max(map(len, edition.orders), default=1)
    return BenchmarkReport(
        groups={
            "role": Groups(get_args(Role)),
            "topic": Groups(TOPICS),
            "partition": Groups(edition.languages, places=places),
            "language": Groups(edition.languages),
            "after": Groups(tuple(map(str, range(longest + 1)))),
        },
        splits=(
            *(("role",), ("topic",), ("partition",)),
            *(("role", "topic"), ("role", "partition"), ("role", "topic", "partition"), ("partition", "after")),
        ),
        culture="partition",
        further=(_OVERLAP,),
        as_published=None if edition is PAPER else (),
        costs=tuple(_COSTS),
        units=partial(_units, edition),
        tables=partial(_tables, edition),
        figures=tuple(_figures(edition)),
        contrasts=(_without_and_with(edition),),
    )
