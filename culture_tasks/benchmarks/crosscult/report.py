"""How CrossCult-KIBench is reported.

Roles (Tables 2 and 3), with and without insertion (Figure 5), retention (Figures 6 and 11-13), what a method costs
(Table 4), and which requests were routed wrongly, where a method routes them at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any, get_args

import numpy as np

from culture_tasks.benchmarks.crosscult.vocabulary import (
    LANGUAGE_NAMES,
    LOCALITY_ROLES,
    ORDERS,
    PARTITIONS,
    SEQUENTIAL_ROLES,
    SINGLE_ROLES,
    TARGETS,
    TOPICS,
    Partition,
    Role,
)
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    WITH_JUDGE,
    Answers,
    At,
    BenchmarkReport,
    ColumnOf,
    ContrastOf,
    Cost,
    Derived,
    Field,
    FigureOf,
    Floats,
    FurtherScore,
    Mark,
    Number,
    Ran,
    RunFacts,
    TableOf,
    UnitOf,
    Where,
    bars_by,
    whole_groups_then_tasks,
)

_Place = tuple[str, str, Where]  # key, label and groups of a column

# Routing: whether a request used what was inserted, by what its record says


def _fact(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda record: record.get("facts", {}).get(name)


def _routing_error(record: Mapping[str, Any]) -> float | None:
    """Returns 100 where a request was routed wrongly, else 0; None where nothing was compared.

    A request about another language or scenario than the insertion shouldn't use it; all others should.
    """
    if _fact("similarity")(record) is None:
        return None
    used = record["facts"].get("activated") is not None
    return 100.0 * (used == (record["groups"]["role"] in LOCALITY_ROLES))


def _wrong_entry(record: Mapping[str, Any]) -> float | None:
    """Returns 100 where a request rightly used something, but of another language; None where that can't be said."""
    if _routing_error(record) != 0.0 or record["facts"].get("activated") is None:
        return None
    return 100.0 * bool(record["facts"].get("entry") != record["groups"]["partition"])


_THRESHOLDS = tuple(f"{step / 20:.2f}" for step in range(21))


def _errors_by_threshold(answers: Answers) -> dict[str, Floats]:
    """Returns the routing errors that each threshold would make of the recorded similarities."""
    should_not = np.logical_or.reduce([answers.of_field("role").equals(role) for role in LOCALITY_ROLES])
    return {text: 100.0 * ((answers.scores >= float(text)) == should_not) for text in _THRESHOLDS}


_ERRORS = Scale("percent", 0.0, 100.0, better="lower")
_SIMILARITY = Scale("similarity", better=None, digits=3)
_ROUTING_SCORES = (
    FurtherScore("routing_error", _ERRORS, _routing_error, is_share=True),
    FurtherScore("wrong_entry", _ERRORS, _wrong_entry, is_share=True),
    FurtherScore("similarity", _SIMILARITY, _fact("similarity")),
    FurtherScore("threshold", _SIMILARITY, _fact("threshold")),
)
_CURVE = Derived(
    "routing_error_by_threshold",
    _ERRORS,
    _errors_by_threshold,
    dimension="threshold",
    within=("role",),
    units=lambda unit: unit in _ROLES,
    of="similarity",
)


_OVERLAP = FurtherScore("rouge_l", Scale("percent", 0.0, 100.0))
_SCORES = {"rouge_l": ("rouge_l", "ROUGE-L"), "score": ("judge_score", "LLM Judge")}
"""Each statistic's key in columns and published tables, and its header."""

_ROLES: Mapping[str, Mapping[str, str]] = {
    "crosscult_single": dict(
        zip(SINGLE_ROLES, ("Reliability", "Generality", "Cross-Lang. Loc.", "Cross-Scen. Loc."), strict=True)
    ),
    "crosscult_sequential": dict(zip(SEQUENTIAL_ROLES, ("Final Rel.", "Final Gen.", "Final Loc."), strict=True)),
}
_NUMBERS = {"crosscult_single": 2, "crosscult_sequential": 3}  # their tables in the paper

_DIAGNOSTIC = "crosscult_diagnostic"
_RETENTION = "crosscult_retention"
_BASE_MODEL = "Base Model"


def _method(facts: RunFacts) -> str:
    return facts.method or _BASE_MODEL


def _base_model(facts: RunFacts) -> str:
    method = facts.arguments.get("method")
    return facts.label.replace(f" + {method}", "", 1) if method else facts.label


_METHODS = {"Base model": _base_model, "Method": _method}
_METHODS_AND_JUDGE = {**_METHODS, "Judge": WITH_JUDGE["Judge"]}


def _units(ran: Ran) -> Iterator[UnitOf]:
    """Yields groups and tasks, and the chains of insertions, whose steps have no number of their own."""
    others = replace(
        ran,
        tasks=tuple(task for task in ran.tasks if not task.startswith(_RETENTION)),
        groups={group: tasks for group, tasks in ran.groups.items() if not group.startswith(_RETENTION)},
    )
    yield from whole_groups_then_tasks(others)
    for group, tasks in ran.groups.items():
        if group.startswith(f"{_RETENTION}_") and ran.anywhere.intersection(tasks):
            yield UnitOf(group, tasks, headline=False)


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    ran = [unit.key for unit in units]
    for unit in ran:
        if unit in _ROLES:
            yield _by_role(unit)
            yield _routing(unit)
            yield _thresholds(unit)
        elif unit == _DIAGNOSTIC:
            yield _by_language_and_topic()
    timed = next((unit for unit in ran if _is_single(unit)), None)
    if timed is not None:
        yield _efficiency(timed)
    orders = [order for order in ORDERS if f"{_RETENTION}_{'_'.join(order)}" in ran]
    if orders:
        yield _retention(_RETENTION, "score", "the judge's score from 0 to 10", orders)
        yield _retention(f"{_RETENTION}_rouge_l", "rouge_l", "ROUGE-L in percent", orders)


def _both_scores(unit: str, place: _Place, *, setting: str = "", sums_up: bool = False) -> Iterator[ColumnOf]:
    """Yields the columns of ROUGE-L and of the judge's score in a place; published tables have those of a setting."""
    group, over, where = place
    for statistic, (key, label) in _SCORES.items():
        printed = {"setting": setting, "role": group, "score": key} if setting else {}
        yield ColumnOf(f"{group}_{key}", label, At(unit, statistic, where), over, printed=printed, sums_up=sums_up)


def _by_role(unit: str) -> TableOf:
    setting = unit.removeprefix("crosscult_")
    columns = [column for place in _roles(unit) for column in _both_scores(unit, place, setting=setting)]
    columns += _both_scores(unit, ("overall", "Overall", ()), setting=setting, sums_up=True)
    return TableOf(
        key=f"crosscult_table_{_NUMBERS[unit]}",
        title=f"{unit}: ROUGE-L in percent and the judge's score from 0 to 10",
        source=f"CrossCult-KIBench, Table {_NUMBERS[unit]}",
        columns=tuple(columns),
        headers=_METHODS_AND_JUDGE,
        question="changes",
        notes=("Overall: the mean over the roles, each weighing the same.",),
        papers=(f"crosscult_table_{_NUMBERS[unit]}",),
    )


def _by_language_and_topic() -> TableOf:
    places = (*_partitions_and_topics(PARTITIONS), ("all", "All", ()))
    return TableOf(
        key=f"{_DIAGNOSTIC}_by_language",
        title=f"{_DIAGNOSTIC}: ROUGE-L in percent and the judge's score from 0 to 10, by language and by topic",
        source="CrossCult-KIBench, Figure 1b",
        columns=tuple(column for place in places for column in _both_scores(_DIAGNOSTIC, place)),
        notes=(
            "Each language asks of its own culture: English of the U.S., Chinese of China, Arabic of the Arab region.",
        ),
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


def _efficiency(unit: str) -> TableOf:
    return TableOf(
        key="crosscult_table_4",
        title=f"{unit}: time, memory and size",
        source="CrossCult-KIBench, Table 4",
        columns=tuple(
            ColumnOf(cost.name, label, At(unit, cost.name), printed={"quantity": quantity} if quantity else {})
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
        papers=("crosscult_table_4",),
    )


def _rate(role: str, label: str) -> str:
    return f"{'False activation' if role in LOCALITY_ROLES else 'Abstention'}: {label}"


def _routing(unit: str) -> TableOf:
    single = unit == "crosscult_single"
    places: list[_Place] = [("all", "All", ()), *_partitions_and_topics(TARGETS if single else PARTITIONS)]
    others = {"similarity": "Mean similarity", "threshold": "Threshold"}
    if not single:  # where more than one language is inserted
        others = {"wrong_entry": "Wrong entry", **others}
    return TableOf(
        key=f"{unit}_routing",
        title=f"{unit}: requests that were routed wrongly, in percent",
        source="",
        columns=tuple(ColumnOf(key, label) for key, label in [*(place[:2] for place in places), *others.items()]),
        headers=_METHODS,
        question="changes",
        lines={
            _rate(role, label): {
                **{key: At(unit, "routing_error", (*of_role, *where)) for key, _, where in places},
                **{key: At(unit, key, of_role) for key in others},
            }
            for role, label, of_role in _roles(unit)
        },
        line_header="Rate",
        notes=(
            "Of methods that compare a request with the insertions, and use one from a threshold on. False "
            "activation: requests about another language or scenario that used it all the same. Abstention: requests "
            "about an insertion, or about its scenario, that didn't. Wrong entry: of the requests that rightly "
            "used something, those that used an insertion for another language.",
        ),
    )


def _thresholds(unit: str) -> TableOf:
    return TableOf(
        key=f"{unit}_thresholds",
        title=f"{unit}: requests that other thresholds would route wrongly, in percent",
        source="",
        columns=tuple(ColumnOf(role, _rate(role, label)) for role, label, _ in _roles(unit)),
        headers=_METHODS,
        question="changes",
        lines={
            text: {role: At(unit, _CURVE.name, (*of_role, ("threshold", text))) for role, _, of_role in _roles(unit)}
            for text in _THRESHOLDS[::2]
        },
        line_header="Threshold",
        notes=("From the similarities that were recorded; the threshold that was used stands in the table before.",),
    )


def _roles(unit: str) -> Iterator[_Place]:
    return ((role, label, (("role", role),)) for role, label in _ROLES[unit].items())


def _partitions_and_topics(partitions: Iterable[Partition]) -> Iterator[_Place]:
    yield from ((partition, LANGUAGE_NAMES[partition], (("partition", partition),)) for partition in partitions)
    yield from ((topic, topic.title(), (("topic", topic),)) for topic in TOPICS)


def _retention(key: str, statistic: str, scores: str, orders: Iterable[tuple[str, ...]]) -> TableOf:
    return TableOf(
        key=key,
        title=f"CrossCult-KIBench: reliability after each insertion, {scores}",
        source="CrossCult-KIBench, Figures 6 and 11-13",
        columns=tuple(
            ColumnOf(
                f"{'_'.join(order)}_{partition}_after_{step}",
                partition.upper(),
                At(f"{_RETENTION}_{'_'.join(order)}", statistic, (("partition", partition), ("after", str(step)))),
                f"{', '.join(order).upper()}: step {step}",
            )
            for order in orders
            for step in range(1, len(order) + 1)
            for partition in order[:step]
        ),
        headers=_METHODS_AND_JUDGE,
        question="changes",
        notes=(
            "Reliability of what was inserted for a partition, after each step of a chain of insertions in the order "
            "that stands above. A method that keeps what it was given has the same number at every step.",
        ),
    )


_SCORE, _ROUGE_L = "Score (0 to 10)", "ROUGE-L (percent)"


def _is_single(unit: str) -> bool:
    return unit.startswith("crosscult_single")


def _reliability(number: Number) -> Mark | None:
    is_reliability = number.held == {"role": "Reliability"} and number.dimension in ("topic", "partition")
    panel = "By language" if number.dimension == "partition" else f"By {number.dimension}"
    return Mark(panel, number.model, number.group) if is_reliability and _is_single(number.unit) else None


def _after_insertions(number: Number) -> Mark | None:
    """Draws retention: a panel per model and chain, and a series per language of the insertion."""
    if number.dimension != "after" or not number.unit.startswith(_RETENTION):
        return None
    chain = number.unit.removeprefix(_RETENTION).strip("_").split("_")
    names = " → ".join(LANGUAGE_NAMES.get(part, part) for part in chain if part)
    panel = " · ".join(filter(None, (number.model, names)))
    return Mark(panel, number.held.get("partition", number.title), number.group)


def _by_threshold(number: Number) -> Mark:
    role = number.held["role"].lower().replace(" ", "_")
    label = next(labels[role] for labels in _ROLES.values() if role in labels)
    series = f"{label} ({'activated' if role in LOCALITY_ROLES else 'abstained'})"
    return Mark(f"{number.model} · {number.title}", series, number.group)


_FIGURES = (
    FigureOf(
        key="crosscult_reliability",
        title="CrossCult-KIBench: single-insert reliability",
        source="CrossCult-KIBench, Figure 5",
        kind="bars",
        groups="topic and language",
        value=_SCORE,
        mark=_reliability,
        question="changes",
    ),
    bars_by(
        "partition",
        key="crosscult_diagnostic",
        title="CrossCult-KIBench: scores with nothing inserted",
        source="CrossCult-KIBench, Figure 1b",
        value=_SCORE,
        groups="language",
        units=lambda unit: unit == _DIAGNOSTIC,
    ),
    *(
        FigureOf(
            key=f"crosscult_retention{ending}",
            title=f"CrossCult-KIBench: retention after each insertion{by}",
            source="CrossCult-KIBench, Figures 6, 11-13",
            kind="lines",
            groups="insertions so far",
            value=value,
            mark=_after_insertions,
            statistic=statistic,
            series="language of the insertion",
            question="changes",
        )
        for statistic, value, ending, by in (
            ("score", _SCORE, "", ""),
            ("rouge_l", _ROUGE_L, "_rouge_l", ", by ROUGE-L"),
        )
    ),
    FigureOf(
        key="crosscult_thresholds",
        title="CrossCult-KIBench: requests that a threshold routes wrongly",
        source="",
        kind="lines",
        groups="threshold",
        value="Routed wrongly (percent)",
        mark=_by_threshold,
        statistic=_CURVE.name,
        series="role",
        question="changes",
    ),
)


def _is_beside(first: RunFacts, second: RunFacts) -> bool:
    return first.task == second.task and _is_single(second.task) and _method(first) == _BASE_MODEL != _method(second)


_WITHOUT_AND_WITH = ContrastOf(
    kind="insertion",
    key="crosscult_insertion",
    title="CrossCult-KIBench, single-insert reliability without and with the insertion",
    source="CrossCult-KIBench, Figure 5",
    beside=_is_beside,
    splits=(("role",), ("role", "topic"), ("role", "partition")),
    fixed=(("role", "reliability"),),
    words=("without the insertion", "with it"),
    parts=("Base", "Edited"),
    values={"score": _SCORE, "rouge_l": _ROUGE_L},
    groups="topic and language",
    series="model",
    headers=_METHODS_AND_JUDGE,
)

REPORT = BenchmarkReport(
    fields=(
        Field("role", get_args(Role)),
        Field("topic", TOPICS),
        Field(
            "partition",
            PARTITIONS,
            names=LANGUAGE_NAMES,
            places={"zh": "CN", "ar": "arab", "en": "US"},  # section 3.1
        ),
        Field("language", PARTITIONS, LANGUAGE_NAMES),
        Field("after", ("0", "1", "2", "3")),
        Field("threshold", _THRESHOLDS),
    ),
    splits=(
        *(("role",), ("topic",), ("partition",)),
        *(("role", "topic"), ("role", "partition"), ("role", "topic", "partition"), ("partition", "after")),
    ),
    culture="partition",
    ability="reasoning",
    further=(_OVERLAP, *_ROUTING_SCORES),
    derived=(_CURVE,),
    costs=tuple(_COSTS),
    units=_units,
    tables=_tables,
    figures=_FIGURES,
    contrasts=(_WITHOUT_AND_WITH,),
)
