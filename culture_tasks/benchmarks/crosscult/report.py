"""How CrossCult-KIBench is reported.

Roles (Tables 2 and 3), with and without insertion (Figure 5), retention (Figures 6 and 11-13), and the costs of a
method (Table 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from operator import attrgetter
from typing import get_args

from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition
from culture_tasks.benchmarks.crosscult.vocabulary import SEQUENTIAL_ROLES, SINGLE_ROLES, TOPICS, Role
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    WITH_JUDGE,
    BenchmarkReport,
    ContrastSpec,
    Cost,
    FurtherScore,
    Groups,
    RunFacts,
    ScoreUnit,
    TasksRun,
    Where,
    groups_and_tasks,
)
from culture_tasks.benchmarks.tables import BenchmarkNumbers, Column, Figure, Table, series_of

_SCORES = {"rouge_l": ("rouge_l", "ROUGE-L"), "score": ("judge_score", "LLM Judge")}
"""Each statistic's key in columns and published tables, and its header."""

_VALUES = {"score": "Score (0 to 10)", "rouge_l": "ROUGE-L (percent)"}
_RETENTIONS = {"score": "retention", "rouge_l": "retention_rouge_l"}  # tables and figures
_BOTH = "ROUGE-L in percent and the judge's score from 0 to 10"
_ROLES: Mapping[str, Mapping[str, str]] = {
    "single": dict(
        zip(SINGLE_ROLES, ("Reliability", "Generality", "Cross-Lang. Loc.", "Cross-Scen. Loc."), strict=True)
    ),
    "sequential": dict(zip(SEQUENTIAL_ROLES, ("Final Rel.", "Final Gen.", "Final Loc."), strict=True)),
}
"""The roles of each setting that has a table of them, with their headers."""

_BASE_MODEL = "Base Model"


def _base_model(facts: RunFacts) -> str:
    method = facts.arguments.get("method")
    return facts.label.replace(f" + {method}", "", 1) if method else facts.label


_METHODS = {"Base model": _base_model, "Method": lambda facts: facts.method or _BASE_MODEL}


def _units(edition: Edition, tasks_run: TasksRun) -> Iterator[ScoreUnit]:
    """Yields groups and tasks, and the chains of insertions, whose steps have no numbers."""
    retention = f"{edition.name}_retention"
    for unit in groups_and_tasks(tasks_run):
        if not unit.key.startswith(retention):
            yield unit
    for group, tasks in tasks_run.groups.items():
        if group.startswith(f"{retention}_") and tasks_run.anywhere.intersection(tasks):
            yield ScoreUnit(group, tasks, headline=False)


def _tables(edition: Edition, numbers: BenchmarkNumbers) -> Iterator[Table]:
    for number, (setting, roles) in enumerate(_ROLES.items(), start=2):
        if unit := numbers.units.get(f"{edition.name}_{setting}"):
            groups = [(role, header, (("role", role),)) for role, header in roles.items()]
            yield numbers.table(
                f"{edition.name}_table_{number}",
                f"{unit.title}: {_BOTH}",
                _score_columns(numbers, unit, setting, [*groups, ("overall", "Overall", ())]),
                source=f"CrossCult-KIBench, Table {number}",
                question="changes",
                notes=("Overall: the mean over the roles, each weighing the same.",),
                papers=(f"crosscult_table_{number}",) if edition is PAPER else (),
            )
    if unit := numbers.units.get(edition.diagnostic):
        yield _diagnostic_table(edition, numbers, unit)
    if unit := next((unit for key, unit in numbers.units.items() if _is_single(edition, key)), None):
        yield _costs_table(edition, numbers, unit)
        reliability: Where = (("role", "reliability"),)
        yield numbers.table(
            f"{edition.name}_reliability",
            f"{edition.title}: single-insert reliability, {_VALUES['score'].lower()}",
            [
                *numbers.by("topic", unit.key, within=reliability, over="By topic"),
                *numbers.by("partition", unit.key, within=reliability, over="By language"),
            ],
            source="CrossCult-KIBench, Figure 5",
        )
    for statistic, quantity in _VALUES.items():
        if chains := _chains(edition, numbers, statistic):
            yield numbers.lines(
                f"{edition.name}_{_RETENTIONS[statistic]}",
                f"{edition.title}: reliability after each insertion, {quantity}",
                {(chain, name): columns for chain, lines in chains.items() for name, columns in lines.items()},
                ("Insertions", "Language"),
                source="CrossCult-KIBench, Figures 6 and 11-13",
                question="changes",
                notes=(
                    "Reliability of a language's insertions, after each step of a chain. A method that keeps its "
                    "insertions has the same number at every step.",
                ),
            )


def _score_columns(
    numbers: BenchmarkNumbers, unit: ScoreUnit, setting: str, groups: Iterable[tuple[str, str, Where]]
) -> list[Column]:
    """Returns the columns of ROUGE-L and of the judge's score in each group, which has a name and a header."""
    return [
        numbers.column(
            f"{group}_{key}",
            label,
            unit.key,
            statistic,
            where,
            over=header,
            printed={"setting": setting, "role": group, "score": key},
            sums_up=not where,
        )
        for group, header, where in groups
        for statistic, (key, label) in _SCORES.items()
    ]


def _diagnostic_table(edition: Edition, numbers: BenchmarkNumbers, unit: ScoreUnit) -> Table:
    from culture_tasks.vocabulary import place

    groups: list[tuple[str, str, Where]] = [
        *((one.code, one.language, (("partition", one.code),)) for one in edition.partitions),
        *((topic, topic.title(), (("topic", topic),)) for topic in TOPICS),
        ("all", "All", ()),
    ]
    cultures = ", ".join(f"{one.language} ({place(one.place).name})" for one in edition.partitions)
    return numbers.table(
        f"{edition.diagnostic}_by_language",
        f"{unit.title}: {_BOTH}, by language and by topic",
        _score_columns(numbers, unit, "diagnostic", groups),
        headers=WITH_JUDGE,
        source="CrossCult-KIBench, Figure 1b",
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


def _costs_table(edition: Edition, numbers: BenchmarkNumbers, unit: ScoreUnit) -> Table:
    return numbers.table(
        f"{edition.name}_table_4",
        f"{unit.title}: time, memory and size",
        [
            numbers.column(cost.name, label, unit.key, cost.name, printed={"quantity": quantity} if quantity else {})
            for cost, (label, quantity) in _COSTS.items()
        ],
        headers={**_METHODS, "Measured": attrgetter("timing")},
        source="CrossCult-KIBench, Table 4",
        question="runs",
        notes=(
            "Of whole runs, with all of their tasks. Times are comparable with the paper's where requests were "
            "answered one at a time (paper_latency=true) on the same device. Memory is that of the GPUs, or of the "
            "process on a CPU. Answered: prompts, the plain model's among them. Found: prompts whose answer was there "
            "already.",
        ),
        papers=("crosscult_table_4",) if edition is PAPER else (),
    )


def _is_single(edition: Edition, unit: str) -> bool:
    return unit.startswith(f"{edition.name}_single")


def _chains(edition: Edition, numbers: BenchmarkNumbers, statistic: str) -> dict[str, dict[str, list[Column]]]:
    """Returns the columns of the steps, by chain and language of the insertion."""
    chains = {}
    for order in edition.orders:
        unit = "_".join((edition.name, "retention", *order))
        if unit in numbers.units:
            steps = [str(step) for step in range(1, len(order) + 1)]
            chains[edition.in_order(order, " → ")] = {
                edition[code].language: [
                    numbers.column(
                        f"after_{step}", step, unit, statistic, (("partition", code), ("after", step)), over="Step"
                    )
                    for step in steps
                ]
                for code in order
            }
    return chains


def _figures(edition: Edition, numbers: BenchmarkNumbers) -> Iterator[Figure]:
    if unit := numbers.units.get(edition.diagnostic):
        yield Figure(
            key=f"{edition.name}_diagnostic",
            title=f"{edition.title}: scores with nothing inserted",
            panels={unit.title: series_of(numbers.by("partition", unit.key))},
            value=_VALUES["score"],
            groups="language",
            source="CrossCult-KIBench, Figure 1b",
        )
    for statistic, value in _VALUES.items():
        yield Figure(
            key=f"{edition.name}_{_RETENTIONS[statistic]}",
            title=f"{edition.title}: retention after each insertion, {value}",
            panels={
                title: panel
                for chain, lines in _chains(edition, numbers, statistic).items()
                for title, panel in numbers.panels(lines, f" · {chain}").items()
            },
            value=value,
            kind="lines",
            groups="insertions so far",
            series="language of the insertion",
            source="CrossCult-KIBench, Figures 6, 11-13",
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
        values=_VALUES,
        groups="topic and language",
    )


@cache
def report_of(edition: Edition) -> BenchmarkReport:
    """Returns how an edition is reported."""
    languages = {partition.code: partition.language for partition in edition.partitions}
    places = {partition.code: partition.place for partition in edition.partitions}
    return BenchmarkReport(
        groups={
            "role": Groups(get_args(Role)),
            "topic": Groups(TOPICS),
            "partition": Groups(languages, places=places),
            "language": Groups(languages),
            "after": Groups([str(step) for step in range(len(edition.orders[0]) + 1)]),
        },
        splits=(
            *(("role",), ("topic",), ("partition",)),
            *(("role", "topic"), ("role", "partition"), ("role", "topic", "partition"), ("partition", "after")),
        ),
        culture="partition",
        further=(FurtherScore("rouge_l", Scale("percent", 0.0, 100.0)),),
        costs=tuple(_COSTS),
        units=partial(_units, edition),
        tables=partial(_tables, edition),
        figures=partial(_figures, edition),
        contrasts=(_without_and_with(edition),),
        headers={**_METHODS, "Judge": WITH_JUDGE["Judge"]},
        source="CrossCult-KIBench",
    )
