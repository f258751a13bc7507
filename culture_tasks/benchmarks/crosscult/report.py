"""How CrossCult-KIBench is reported.

Roles (Tables 2 and 3), with and without insertion (Figure 5), retention (Figures 6 and 11-13), and the costs of a
method (Table 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import get_args

from culture_tasks import vocabulary
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
_SCORE, _ROUGE_L = "Score (0 to 10)", "ROUGE-L (percent)"


def _base_model(facts: RunFacts) -> str:
    method = facts.arguments.get("method")
    return facts.label.replace(f" + {method}", "", 1) if method else facts.label


_BASE_MODEL = "Base Model"
_METHODS = {"Base model": _base_model, "Method": lambda facts: facts.method or _BASE_MODEL}
_METHODS_AND_JUDGE = {**_METHODS, "Judge": WITH_JUDGE["Judge"]}


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


def _tables(edition: Edition, numbers: BenchmarkNumbers) -> Iterator[Table]:
    for setting in _ROLES:
        if unit := numbers.units.get(f"{edition.name}_{setting}"):
            yield _role_table(edition, numbers, unit, setting)
    if unit := numbers.units.get(edition.diagnostic):
        yield _diagnostic_table(edition, numbers, unit)
    if single := _single_units(edition, numbers):
        yield _costs_table(edition, numbers, single[0])
        columns = [column for unit in single[:1] for column in _reliability(numbers, unit)]
        title = f"{edition.title}: single-insert reliability, {_SCORE.lower()}"
        yield numbers.table(f"{edition.name}_reliability", title, columns, source="CrossCult-KIBench, Figure 5")
    for statistic, quantity in (("score", "the judge's score from 0 to 10"), ("rouge_l", "ROUGE-L in percent")):
        if lines := _chains(edition, numbers, statistic):
            yield numbers.lines(
                _retention_of(edition) + _ending(statistic),
                f"{edition.title}: reliability after each insertion, {quantity}",
                lines,
                ("Insertions", "Language"),
                source="CrossCult-KIBench, Figures 6 and 11-13",
                question="changes",
                notes=(
                    "Reliability of a language's insertions, after each step of a chain. A method that keeps its "
                    "insertions has the same number at every step.",
                ),
            )


def _ending(statistic: str) -> str:
    return "" if statistic == "score" else f"_{statistic}"


def _both_scores(
    numbers: BenchmarkNumbers,
    unit: str,
    group: str,
    header: str,
    where: Where,
    *,
    setting: str = "",
    sums_up: bool = False,
) -> Iterator[Column]:
    """Yields the columns of ROUGE-L and of the judge's score in a group; published tables have them for a setting."""
    for statistic, (key, label) in _SCORES.items():
        printed = {"setting": setting, "role": group, "score": key} if setting else {}
        yield numbers.column(
            f"{group}_{key}", label, unit, statistic, where, over=header, printed=printed, sums_up=sums_up
        )


def _role_table(edition: Edition, numbers: BenchmarkNumbers, unit: ScoreUnit, setting: str) -> Table:
    columns = [
        column
        for role, header in _ROLES[setting].items()
        for column in _both_scores(numbers, unit.key, role, header, (("role", role),), setting=setting)
    ]
    columns += _both_scores(numbers, unit.key, "overall", "Overall", (), setting=setting, sums_up=True)
    return numbers.table(
        f"{edition.name}_table_{_NUMBERS[setting]}",
        f"{unit.title}: ROUGE-L in percent and the judge's score from 0 to 10",
        columns,
        source=f"CrossCult-KIBench, Table {_NUMBERS[setting]}",
        question="changes",
        notes=("Overall: the mean over the roles, each weighing the same.",),
        papers=(f"crosscult_table_{_NUMBERS[setting]}",) if edition is PAPER else (),
    )


def _diagnostic_table(edition: Edition, numbers: BenchmarkNumbers, unit: ScoreUnit) -> Table:
    groups: list[tuple[str, str, Where]] = [
        *((code, edition.languages[code], (("partition", code),)) for code in edition.codes),
        *((topic, topic.title(), (("topic", topic),)) for topic in TOPICS),
        ("all", "All", ()),
    ]
    cultures = "English of the U.S., Chinese of China, Arabic of the Arab region"
    if edition is not PAPER:
        cultures = ", ".join(
            f"{partition.language} of {vocabulary.place(partition.place).name}" for partition in edition.partitions
        )
    return numbers.table(
        f"{edition.diagnostic}_by_language",
        f"{unit.title}: ROUGE-L in percent and the judge's score from 0 to 10, by language and by topic",
        [column for group in groups for column in _both_scores(numbers, unit.key, *group)],
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
    columns = [
        numbers.column(cost.name, label, unit.key, cost.name, printed={"quantity": quantity} if quantity else {})
        for cost, (label, quantity) in _COSTS.items()
    ]
    return numbers.table(
        f"{edition.name}_table_4",
        f"{unit.title}: time, memory and size",
        columns,
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


def _single_units(edition: Edition, numbers: BenchmarkNumbers) -> list[ScoreUnit]:
    return [unit for key, unit in numbers.units.items() if _is_single(edition, key)]


def _is_single(edition: Edition, unit: str) -> bool:
    return unit.startswith(f"{edition.name}_single")


def _reliability(numbers: BenchmarkNumbers, unit: ScoreUnit) -> list[Column]:
    """Returns the columns of reliability by topic, then by language."""
    within: Where = (("role", "reliability"),)
    return [
        *numbers.by("topic", unit.key, within=within, over="By topic"),
        *numbers.by("partition", unit.key, within=within, over="By language"),
    ]


def _chains(edition: Edition, numbers: BenchmarkNumbers, statistic: str) -> dict[tuple[str, ...], Sequence[Column]]:
    """Returns the columns of the steps, by chain and language of the insertion."""
    lines: dict[tuple[str, ...], Sequence[Column]] = {}
    for order in edition.orders:
        unit = "_".join((_retention_of(edition), *order))
        for code in order if unit in numbers.units else ():
            lines[edition.in_order(list(order), " → "), edition.languages[code]] = [
                numbers.column(
                    f"after_{step}",
                    str(step),
                    unit,
                    statistic,
                    (("partition", code), ("after", str(step))),
                    over="Step",
                )
                for step in range(1, len(order) + 1)
            ]
    return lines


def _figures(edition: Edition, numbers: BenchmarkNumbers) -> Iterator[Figure]:
    columns = [column for unit in _single_units(edition, numbers)[:1] for column in _reliability(numbers, unit)]
    yield Figure(
        key=f"{edition.name}_reliability",
        title=f"{edition.title}: single-insert reliability",
        panels={
            over: series_of(column for column in columns if column.over == over) for over in ("By topic", "By language")
        },
        value=_SCORE,
        groups="topic and language",
        source="CrossCult-KIBench, Figure 5",
        question="changes",
    )
    if unit := numbers.units.get(edition.diagnostic):
        yield Figure(
            key=f"{edition.name}_diagnostic",
            title=f"{edition.title}: scores with nothing inserted",
            panels={unit.title: series_of(numbers.by("partition", unit.key))},
            value=_SCORE,
            groups="language",
            source="CrossCult-KIBench, Figure 1b",
        )
    for statistic, value, suffix in (("score", _SCORE, ""), ("rouge_l", _ROUGE_L, ", by ROUGE-L")):
        lines = _chains(edition, numbers, statistic)
        panels = {
            title: panel
            for chain in dict.fromkeys(chain for chain, _ in lines)
            for title, panel in numbers.panels(
                {language: columns for (name, language), columns in lines.items() if name == chain}, f" · {chain}"
            ).items()
        }
        yield Figure(
            key=_retention_of(edition) + _ending(statistic),
            title=f"{edition.title}: retention after each insertion{suffix}",
            panels=panels,
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
        values={"score": _SCORE, "rouge_l": _ROUGE_L},
        groups="topic and language",
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
        costs=tuple(_COSTS),
        units=partial(_units, edition),
        tables=partial(_tables, edition),
        figures=partial(_figures, edition),
        contrasts=(_without_and_with(edition),),
        headers=_METHODS_AND_JUDGE,
        source="CrossCult-KIBench",
    )
