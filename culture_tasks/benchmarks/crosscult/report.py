"""How CrossCult-KIBench is reported.

Roles (Tables 2 and 3), with and without insertion (Figure 5), retention (Figures 6 and 11-13), what a method costs
(Table 4), and which requests were routed wrongly, where a method routes them at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
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
    Role,
)
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    Answers,
    At,
    BenchmarkReport,
    ContrastFigure,
    ContrastOf,
    ContrastTable,
    Cost,
    Derived,
    Drawn,
    Field,
    FigureOf,
    Floats,
    FurtherScore,
    Header,
    Line,
    MethodArgument,
    OtherArgument,
    Ran,
    Shown,
    TableOf,
    UnitOf,
    Where,
    whole_groups_then_tasks,
)

# Routing: whether a request used what was inserted, by what its record says


def _similarity(record: Mapping[str, Any]) -> float | None:
    similarity: float | None = record.get("facts", {}).get("similarity")
    return similarity


def _threshold(record: Mapping[str, Any]) -> float | None:
    threshold: float | None = record.get("facts", {}).get("threshold")
    return threshold


def _routing_error(record: Mapping[str, Any]) -> float | None:
    """Returns 100 where a request was routed wrongly, and 0 where it was not; None where nothing was compared.

    What is about another language or scenario than what was inserted shouldn't use it; all else should.
    """
    if _similarity(record) is None:
        return None
    used = record["facts"].get("activated") is not None
    return 100.0 * (used == (record["groups"]["role"] in LOCALITY_ROLES))


def _wrong_entry(record: Mapping[str, Any]) -> float | None:
    """Returns 100 where a request rightly used something, but of another language; None where that can't be said."""
    if _routing_error(record) != 0.0 or record["facts"].get("activated") is None:
        return None
    is_of_another: bool = record["facts"].get("entry") != record["groups"]["partition"]
    return 100.0 * is_of_another


_THRESHOLDS = tuple(f"{step / 20:.2f}" for step in range(21))


def _errors_by_threshold(answers: Answers) -> dict[str, Floats]:
    """Returns the routing errors that each threshold would make of the recorded similarities."""
    should_not = np.zeros(answers.scores.size, dtype=np.bool_)
    for role in LOCALITY_ROLES:
        should_not |= answers.of_field("role").equals(role)
    return {each: 100.0 * ((answers.scores >= float(each)) == should_not) for each in _THRESHOLDS}


_ERRORS = Scale("percent", 0.0, 100.0, better="lower")
_SIMILARITY = Scale("similarity", better=None, digits=3)
_ROUTING_SCORES = (
    FurtherScore("routing_error", _ERRORS, _routing_error, is_share=True),
    FurtherScore("wrong_entry", _ERRORS, _wrong_entry, is_share=True),
    FurtherScore("similarity", _SIMILARITY, _similarity),
    FurtherScore("threshold", _SIMILARITY, _threshold),
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
_NUMBERS = {"crosscult_single": 2, "crosscult_sequential": 3}
_DIAGNOSTIC = "crosscult_diagnostic"
_RETENTION = "crosscult_retention"
_METHOD = MethodArgument("method", {"": "Base Model", "base": "Base Model"})
_PLAIN = tuple(method for method, label in _METHOD.labels.items() if label == "Base Model")
_WITH_METHOD: tuple[Header, ...] = ("Base model", "Method", "Judge")


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
        yield _retention(_RETENTION, "score", scores="the judge's score from 0 to 10", orders=orders)
        yield _retention(f"{_RETENTION}_rouge_l", "rouge_l", scores="ROUGE-L in percent", orders=orders)


def _by_role(unit: str) -> TableOf:
    places = [(role, label, (("role", role),)) for role, label in _ROLES[unit].items()]
    setting = unit.removeprefix("crosscult_")
    columns = [
        Shown(
            f"{role}_{key}",
            label,
            at=At(unit, name, where),
            over=over,
            printed={"setting": setting, "role": role, "score": key},
            sums_up=role == "overall",
        )
        for role, over, where in [*places, ("overall", "Overall", ())]
        for name, (key, label) in _SCORES.items()
    ]
    return TableOf(
        key=f"crosscult_table_{_NUMBERS[unit]}",
        title=f"{unit}: ROUGE-L in percent and the judge's score from 0 to 10",
        source=f"CrossCult-KIBench, Table {_NUMBERS[unit]}",
        columns=tuple(columns),
        headers=_WITH_METHOD,
        question="changes",
        notes=("Overall: the mean over the roles, each weighing the same.",),
        papers=(f"crosscult_table_{_NUMBERS[unit]}",),
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
"""What a run cost, with its header and its quantity in Table 4."""


def _efficiency(unit: str) -> TableOf:
    return TableOf(
        key="crosscult_table_4",
        title=f"{unit}: time, memory and size",
        source="CrossCult-KIBench, Table 4",
        columns=tuple(
            Shown(cost.name, label, at=At(unit, cost.name), printed={"quantity": quantity} if quantity else {})
            for cost, (label, quantity) in _COSTS.items()
        ),
        headers=("Base model", "Method", "Measured"),
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
    parts = TARGETS if unit == "crosscult_single" else PARTITIONS
    groups: dict[Where, tuple[str, str]] = {
        (): ("all", "All"),
        **{(("partition", each),): (each, LANGUAGE_NAMES[each]) for each in parts},
        **{(("topic", topic),): (topic, topic.title()) for topic in TOPICS},
    }
    shown = {"similarity": "Mean similarity", "threshold": "Threshold"}
    if unit != "crosscult_single":  # where more than one language is inserted
        shown = {"wrong_entry": "Wrong entry", **shown}
    return TableOf(
        key=f"{unit}_routing",
        title=f"{unit}: requests that were routed wrongly, in percent",
        source="",
        columns=(
            *(Shown(key, label) for key, label in groups.values()),
            *(Shown(key, label) for key, label in shown.items()),
        ),
        headers=("Base model", "Method"),
        question="changes",
        lines=tuple(
            Line(
                _rate(role, label),
                {
                    **{key: At(unit, "routing_error", (("role", role), *where)) for where, (key, _) in groups.items()},
                    **{key: At(unit, key, (("role", role),)) for key in shown},
                },
            )
            for role, label in _ROLES[unit].items()
        ),
        line_header="Rate",
        notes=(
            "Of methods that compare a request with what was inserted, and use it from a threshold on. False "
            "activation: requests about another language or scenario that used it all the same. Abstention: requests "
            "about what was inserted, or about its scenario, that didn't. Wrong entry: of the requests that rightly "
            "used something, those that used what was inserted for another language.",
        ),
    )


def _thresholds(unit: str) -> TableOf:
    return TableOf(
        key=f"{unit}_thresholds",
        title=f"{unit}: requests that other thresholds would route wrongly, in percent",
        source="",
        columns=tuple(Shown(role, _rate(role, label)) for role, label in _ROLES[unit].items()),
        headers=("Base model", "Method"),
        question="changes",
        lines=tuple(
            Line(each, {role: At(unit, _CURVE.name, (("role", role), ("threshold", each))) for role in _ROLES[unit]})
            for each in _THRESHOLDS[::2]
        ),
        line_header="Threshold",
        notes=("From the similarities that were recorded; the threshold that was used stands in the table before.",),
    )


def _by_language_and_topic() -> TableOf:
    places: list[tuple[str, str, Where]] = [
        *((each, LANGUAGE_NAMES[each], (("partition", each),)) for each in PARTITIONS),
        *((topic, topic.title(), (("topic", topic),)) for topic in TOPICS),
        ("all", "All", ()),
    ]
    return TableOf(
        key=f"{_DIAGNOSTIC}_by_language",
        title=f"{_DIAGNOSTIC}: ROUGE-L in percent and the judge's score from 0 to 10, by language and by topic",
        source="CrossCult-KIBench, Figure 1b",
        columns=tuple(
            Shown(f"{group}_{key}", label, at=At(_DIAGNOSTIC, name, where), over=over)
            for group, over, where in places
            for name, (key, label) in _SCORES.items()
        ),
        notes=(
            "Each language asks of its own culture: English of the U.S., Chinese of China, Arabic of the Arab region.",
        ),
    )


def _retention(key: str, statistic: str, scores: str, orders: Iterable[tuple[str, ...]]) -> TableOf:
    """Returns a table with a column for each partition that has been inserted, step by step."""
    note = (
        "Reliability of what was inserted for a partition, after each step of a chain of insertions in the order that "
        "stands above. A method that keeps what it was given has the same number at every step."
    )
    columns: list[Shown] = []
    for order in orders:
        chain = "_".join(order)
        for step in range(1, len(order) + 1):
            columns += [
                Shown(
                    f"{chain}_{each}_after_{step}",
                    each.upper(),
                    at=At(f"{_RETENTION}_{chain}", statistic, (("partition", each), ("after", str(step)))),
                    over=f"{', '.join(order).upper()}: step {step}",
                )
                for each in order[:step]
            ]
    return TableOf(
        key=key,
        title=f"CrossCult-KIBench: reliability after each insertion, {scores}",
        source="CrossCult-KIBench, Figures 6 and 11-13",
        columns=tuple(columns),
        headers=_WITH_METHOD,
        question="changes",
        notes=(note,),
    )


_LANGUAGES: Mapping[str, str] = {each: LANGUAGE_NAMES[each] for each in PARTITIONS}
_SCORE, _ROUGE_L = "Score (0 to 10)", "ROUGE-L (percent)"


def _is_single(unit: str) -> bool:
    return unit.startswith("crosscult_single")


def _is_retention(unit: str) -> bool:
    return unit.startswith(_RETENTION)


def _by_dimension(at: Drawn) -> str:
    return "By language" if at.dimension == "partition" else f"By {at.dimension}"


def _model_and_chain(at: Drawn) -> str:
    chain = at.unit.removeprefix(_RETENTION).strip("_")
    names = [_LANGUAGES.get(each, each) for each in chain.split("_") if each]
    return " · ".join(filter(None, (at.model, " → ".join(names))))


def _partition(at: Drawn) -> str:
    return at.held.get("partition", at.title)


def _model_and_unit(at: Drawn) -> str:
    return f"{at.model} · {at.title.removeprefix('crosscult_')}"


def _role_and_error(at: Drawn) -> str:
    role = at.held["role"].lower().replace(" ", "_")
    label = next(labels[role] for labels in _ROLES.values() if role in labels)
    return f"{label} ({'activated' if role in LOCALITY_ROLES else 'abstained'})"


def _retention_figure(key: str, title: str, statistic: str, value: str) -> FigureOf:
    return FigureOf(
        key=key,
        title=f"CrossCult-KIBench: {title}",
        source="CrossCult-KIBench, Figures 6, 11-13",
        kind="lines",
        statistic=statistic,
        value=value,
        dimensions=("after",),
        groups="insertions so far",
        units=_is_retention,
        free=("partition",),
        series="language of the insertion",
        panel=_model_and_chain,
        line=_partition,
        question="changes",
    )


_FIGURES = (
    FigureOf(
        key="crosscult_reliability",
        title="CrossCult-KIBench: single-insert reliability",
        value=_SCORE,
        source="CrossCult-KIBench, Figure 5",
        kind="bars",
        dimensions=("topic", "partition"),
        groups="topic and language",
        units=_is_single,
        fixed=(("role", "reliability"),),
        panel=_by_dimension,
        question="changes",
    ),
    FigureOf(
        key="crosscult_diagnostic",
        title="CrossCult-KIBench: scores with nothing inserted",
        value=_SCORE,
        source="CrossCult-KIBench, Figure 1b",
        kind="bars",
        dimensions=("partition",),
        groups="language",
        units=lambda unit: unit == _DIAGNOSTIC,
    ),
    _retention_figure("crosscult_retention", "retention after each insertion", "score", _SCORE),
    _retention_figure("crosscult_retention_rouge_l", "retention after each insertion, by ROUGE-L", "rouge_l", _ROUGE_L),
    FigureOf(
        key="crosscult_thresholds",
        title="CrossCult-KIBench: requests that a threshold routes wrongly",
        source="",
        kind="lines",
        statistic=_CURVE.name,
        dimensions=("threshold",),
        groups="threshold",
        free=("role",),
        series="role",
        question="changes",
        panel=_model_and_unit,
        line=_role_and_error,
        value="Routed wrongly (percent)",
    ),
)


def _insertion_table(key: str, statistic: str, scores: str) -> ContrastTable:
    return ContrastTable(
        key=key,
        title=f"CrossCult-KIBench: single-insert reliability without and with the insertion, {scores}",
        statistic=statistic,
        groups={(): "All"}
        | {(("topic", topic),): topic.title() for topic in TOPICS}
        | {(("partition", each),): LANGUAGE_NAMES[each] for each in TARGETS},
        parts=("Base", "Edited"),
        headers=_WITH_METHOD,
        note="Base: the same model with nothing inserted. Difference: edited less base, on the items that both have a "
        "score for, with a paired interval.",
    )


def _insertion_figure(key: str, title: str, statistic: str, value: str) -> ContrastFigure:
    return ContrastFigure(
        key=key,
        title=f"CrossCult-KIBench: {title}",
        statistic=statistic,
        value=value,
        dimensions=("topic", "partition"),
        groups="topic and language",
        series="model",
        parts=("base", "edited"),
    )


_WITHOUT_AND_WITH = ContrastOf(
    kind="insertion",
    source="CrossCult-KIBench, Figure 5",
    first=OtherArgument(_METHOD.name, _PLAIN),
    units=_is_single,
    fixed=(("role", "reliability"),),
    splits=(("role",), ("role", "topic"), ("role", "partition")),
    words=("without the insertion", "with it"),
    tables=(
        _insertion_table("crosscult_insertion", "score", "the judge's score from 0 to 10"),
        _insertion_table("crosscult_insertion_rouge_l", "rouge_l", "ROUGE-L in percent"),
    ),
    figures=(
        _insertion_figure("crosscult_insertion", "reliability without and with the insertion", "score", _SCORE),
        _insertion_figure(
            "crosscult_insertion_rouge_l", "reliability without and with the insertion, by ROUGE-L", "rouge_l", _ROUGE_L
        ),
    ),
)

REPORT = BenchmarkReport(
    fields=(
        Field("role", get_args(Role)),
        Field("topic", TOPICS),
        Field("partition", PARTITIONS, names=_LANGUAGES, cultures={"zh": "Chinese", "ar": "Arabic", "en": "American"}),
        Field("language", PARTITIONS, _LANGUAGES),
        Field("after", ("0", "1", "2", "3")),
        Field("threshold", _THRESHOLDS),
    ),
    splits=(
        *(("role",), ("topic",), ("partition",)),
        *(("role", "topic"), ("role", "partition"), ("role", "topic", "partition"), ("partition", "after")),
    ),
    culture="partition",
    further=(_OVERLAP, *_ROUTING_SCORES),
    derived=(_CURVE,),
    costs=tuple(_COSTS),
    method=_METHOD,
    units=_units,
    tables=_tables,
    figures=_FIGURES,
    contrasts=(_WITHOUT_AND_WITH,),
)
