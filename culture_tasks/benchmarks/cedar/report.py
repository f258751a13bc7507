"""How CEDAR is reported: accuracy by language, emotions, quadrants, and prompt by data language (Figure 7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar import metrics
from culture_tasks.benchmarks.cedar.benchmark import BIAS, F1, PERCENT, RATIO, TOP2, UNPARSED, UNREAD, VARIANCE
from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    LANGUAGE_NAMES,
    LANGUAGES,
    PAIRS,
    PREDICTION,
    QUADRANT_NAMES,
    Modality,
    pair_of,
)
from culture_tasks.benchmarks.reporting import (
    MODEL,
    Answers,
    BenchmarkReport,
    Derived,
    Floats,
    FurtherScore,
    Groups,
    Question,
    ScoreUnit,
    TasksRun,
    groups_and_tasks,
)
from culture_tasks.benchmarks.tables import BenchmarkNumbers, Column, Figure, Panel, Table, series_of

Values: TypeAlias = Mapping[str, "Floats | float"]

_PERCENT, _BIAS, _VARIANCE = (replace(scale, times=1.0) for scale in (PERCENT, BIAS, VARIANCE))
_TITLES: Mapping[Modality, str] = {"multimodal": "Multimodal", "text": "Text-only"}
_PROPENSITIES = {"multimodal": 7, "text": 8}  # the paper's tables of GEPP
_NEUTRAL = (
    "1 is neutral; above, the emotion is named more often than the gold labels have it. "
    "A dash: it is named, and no gold label has it."
)
_NO_BIAS = (
    "In percent of all gold labels. 0 is neutral; above, emotions of the quadrant are named more often than the gold "
    "labels have them. The four add up to minus the share of replies from which no emotion could be read."
)
_RATIO, _SHARE = "named / gold (ratio)", "percent of gold labels"


class _View(NamedTuple):
    """A statistic as a figure of the paper shows it: a series for each model, or for each language of a model."""

    name: str
    title: str
    figure: int
    series: str
    groups: str
    value: str
    note: str = ""
    question: Question = "biases"

    @property
    def source(self) -> str:
        return f"CEDAR, Figure {self.figure}"


_BIASES = (
    _View("gepp", "global emotion prediction propensity (GEPP)", 3, "model", "emotion", _RATIO, _NEUTRAL),
    _View("lsepp", "emotion prediction propensity by language (LSEPP)", 4, "language", "emotion", _RATIO, _NEUTRAL),
    _View("grqb", "bias towards Russell's quadrants (GRQB)", 5, "model", "quadrant", _SHARE, _NO_BIAS),
    _View("lsrqb", "bias towards Russell's quadrants by language (LSRQB)", 6, "language", "quadrant", _SHARE, _NO_BIAS),
)
_MATRIX = _View(
    "matrix",
    "accuracy by prompt and data language",
    7,
    "prompt language",
    "data language",
    "accuracy (percent)",
    question="changes",
)


# Numbers, by metrics.py


def _is_no_matrix(unit: str) -> bool:
    return not unit.endswith("_matrix")


def _units(tasks_run: TasksRun) -> Iterator[ScoreUnit]:
    """Yields tasks alone; of the summary are the pooled tasks, or a language's where the pooled one wasn't run."""
    for unit in groups_and_tasks(tasks_run):
        pooled = "_".join(unit.key.split("_")[:2])
        in_summary = unit.key == pooled or pooled not in tasks_run.anywhere
        yield replace(unit, headline=in_summary and _is_no_matrix(unit.key))


def _unparsed(record: Mapping[str, Any]) -> float | None:
    """Share of a question's replies from which no emotion could be read; None for a question that doesn't count."""
    outcomes = record["outcomes"]
    return outcomes.get("unparsable", 0) / sum(outcomes.values()) if "score" in record else None


def _languages(answers: Answers) -> NDArray[np.intp]:
    languages: NDArray[np.intp] = answers.groups_of("language").indicators(LANGUAGES).argmax(axis=1)
    return languages


def _replies(answers: Answers) -> metrics.Replies:
    runs = [field for field in answers.groups if field.startswith(PREDICTION)] or [PREDICTION]
    predicted: Floats = np.mean([answers.groups_of(run).indicators(EMOTIONS) for run in runs], axis=0)
    return metrics.Replies(predicted, answers.groups_of("gold").indicators(EMOTIONS), _languages(answers))


def _variance(answers: Answers) -> Values:
    variance = metrics.acc_var(answers.scores, _languages(answers))
    return {} if math.isnan(variance) else {"": variance}


def _propensity(answers: Answers) -> Values:
    """Returns the propensity of each emotion that is predicted or a gold label."""
    replies = _replies(answers)
    totals: Floats = (replies.predicted + replies.gold).sum(axis=0)
    return {
        emotion: values for total, (emotion, values) in zip(totals, metrics.gepp(replies).items(), strict=True) if total
    }


def _quadrant_bias(answers: Answers) -> Values:
    return {quadrant: 100.0 * values for quadrant, values in metrics.grqb(_replies(answers)).items()}


def _across_languages(compute: Callable[[Answers], Values]) -> Callable[[Answers], Values]:
    """Returns a statistic over all languages, which answers in one language don't have."""
    return lambda answers: compute(answers) if np.unique(_languages(answers)).size > 1 else {}


def _top2(answers: Answers) -> Values:
    """Returns nothing where the data have no minority labels."""
    minority = answers.groups_of("minority").indicators(EMOTIONS)
    return {"": metrics.top2_macro_f1(_replies(answers), minority)} if "minority" in answers.groups else {}


_derived = partial(Derived, units=_is_no_matrix)
_STATISTICS = (
    _derived("gepp", RATIO, _across_languages(_propensity), dimension="emotion"),
    _derived("grqb", _BIAS, _across_languages(_quadrant_bias), dimension="quadrant"),
    _derived("lsepp", RATIO, _propensity, dimension="emotion", within=("language",)),
    _derived("lsrqb", _BIAS, _quadrant_bias, dimension="quadrant", within=("language",)),
    _derived("acc_avg", _PERCENT, lambda answers: {"": metrics.acc_avg(answers.scores, _languages(answers))}),
    _derived("acc_var", _VARIANCE, _variance),
    _derived(TOP2, F1, _top2),
    _derived(TOP2, F1, _top2, within=("language",)),
)


# Tables and figures


def _units_of(numbers: BenchmarkNumbers, view: _View | None = None) -> dict[Modality, ScoreUnit]:
    keys = {modality: f"cedar_{modality}{'_matrix' if view is _MATRIX else ''}" for modality in _TITLES}
    return {modality: numbers.units[key] for modality, key in keys.items() if key in numbers.units}


def _tables(numbers: BenchmarkNumbers) -> Iterator[Table]:
    units = _units_of(numbers)
    if units:
        yield _accuracy(numbers, units)
    for modality, unit in units.items():
        for view in _BIASES:
            yield _table(numbers, unit, view, modality)
        yield numbers.table(
            f"{unit.key}_top2",
            f"{unit.title}: macro F1, either of the two most frequent labels being right",
            numbers.by("language", unit.key, TOP2, printed={"modality": modality}, total="All"),
            source="CEDAR, Table 5",
            notes=("Of data with minority labels. Over all languages together, All is no mean of the columns.",),
            papers=("cedar_table_5",) if modality == "text" else (),  # the paper's is of text alone
        )
    for unit in _units_of(numbers, _MATRIX).values():
        yield _table(numbers, unit, _MATRIX)


def _accuracy(numbers: BenchmarkNumbers, units: Mapping[Modality, ScoreUnit]) -> Table:
    columns: list[Column] = []
    capitals: dict[str, str] = {language: language.upper() for language in LANGUAGES}
    for modality, unit in units.items():
        over, prefix, printed = _TITLES[modality], f"{modality}_", {"modality": modality}
        columns += numbers.by("language", unit.key, groups=capitals, over=over, prefix=prefix, printed=printed)
        for name, label, statistic in (("average", "Avg.", "acc_avg"), ("variance", "Var.", "acc_var")):
            more: Any = {"printed": {**printed, "language": name}, "sums_up": name == "average"}
            columns.append(numbers.column(f"{prefix}{name}", label, unit.key, statistic, over=over, **more))
        columns.append(numbers.column(f"{prefix}{UNPARSED}", "Unparsed", unit.key, UNPARSED, over=over))
    note = (
        "Avg. is the mean over languages, Var. their sample variance. Unparsed is the share of replies from which no "
        "emotion could be read, which count as wrong. Languages that a run was told the model doesn't "
        "officially support are left out of these and stay empty."
    )
    return numbers.table(
        "cedar_table_1",
        "CEDAR: accuracy in percent by language",
        columns,
        source="CEDAR, Table 1",
        notes=(note,),
        papers=("cedar_table_1",),
    )


def _lines(numbers: BenchmarkNumbers, unit: ScoreUnit, view: _View) -> dict[str, list[Column]]:
    """Returns the columns of each language of a view."""
    if view is not _MATRIX:
        return {
            name: numbers.by(view.groups, unit.key, view.name, within=(("language", code),))
            for code, name in LANGUAGE_NAMES.items()
        }
    return {
        prompt: [
            numbers.column(data, name, unit.key, where=(("pair", pair_of(code, data)),), over="Data")
            for data, name in LANGUAGE_NAMES.items()
        ]
        for code, prompt in LANGUAGE_NAMES.items()
    }


def _table(numbers: BenchmarkNumbers, unit: ScoreUnit, view: _View, modality: str = "") -> Table:
    """Returns the table of a view, which is the published one of a modality where there is one."""
    key = unit.key if view is _MATRIX else f"{unit.key}_{view.name}"
    more: Any = {"source": view.source, "notes": (view.note,) if view.note else (), "question": view.question}
    if view.name == "gepp":
        key = f"cedar_table_{_PROPENSITIES[modality]}"
        more |= {"source": f"CEDAR, Table {_PROPENSITIES[modality]}", "papers": (key,)}
    title = f"{unit.title}: {view.title}"
    if view.series == "model":
        columns = numbers.by(view.groups, unit.key, view.name, printed={"modality": modality})
        return numbers.table(key, title, columns, **more)
    lines: dict[tuple[str, ...], list[Column]] = {
        (name,): columns for name, columns in _lines(numbers, unit, view).items()
    }
    return numbers.lines(key, title, lines, (view.series.capitalize(),), **more)


def _figures(numbers: BenchmarkNumbers) -> Iterator[Figure]:
    for view in (*_BIASES, _MATRIX):
        panels: dict[str, Panel] = {}
        for modality, unit in _units_of(numbers, view).items():
            if view.series == "model":
                panels[_TITLES[modality]] = series_of(numbers.by(view.groups, unit.key, view.name))
            else:
                panels |= numbers.panels(_lines(numbers, unit, view), f" · {_TITLES[modality].lower()}")
        yield Figure(
            key=f"cedar_{view.name}",
            title=f"CEDAR: {view.title}",
            panels=panels,
            value=view.value.capitalize(),
            kind="heat" if view is _MATRIX else "dots",
            groups=view.groups,
            series=view.series,
            source=view.source,
            question=view.question,
        )


_EMOTION_GROUPS = {
    "emotion": Groups({emotion: emotion for emotion in EMOTIONS}),
    "quadrant": Groups({quadrant: f"Quadrant {quadrant}" for quadrant in QUADRANT_NAMES}),
}
_UNPARSED = FurtherScore(UNPARSED, UNREAD, read=_unparsed)

REPORT = BenchmarkReport(
    groups={
        "language": Groups(LANGUAGE_NAMES),
        "prompt_language": Groups(LANGUAGE_NAMES),
        "pair": Groups({pair: f"{LANGUAGE_NAMES[of]} on {LANGUAGE_NAMES[data]}" for pair, (of, data) in PAIRS.items()}),
        **_EMOTION_GROUPS,
    },
    splits=(("language",), ("pair",)),
    culture="language",
    further=(_UNPARSED,),
    derived=_STATISTICS,
    units=_units,
    tables=_tables,
    figures=_figures,
    headers=MODEL,
    source="CEDAR",
)


def report_of_culture(name: str, title: str, place: str) -> BenchmarkReport:
    """Returns how an own culture is reported: the numbers of one language, without published ones."""
    labels = {"score": "Accuracy", UNPARSED: "Unparsed", TOP2: "Macro F1, two labels"}

    def tables(numbers: BenchmarkNumbers) -> Iterator[Table]:
        for unit in numbers.units.values():
            columns = [numbers.column(statistic, label, unit.key, statistic) for statistic, label in labels.items()]
            yield numbers.table(f"{unit.key}_accuracy", f"{unit.title}: accuracy in percent", columns)
            for view in _BIASES[1::2]:
                yield _table(numbers, unit, view._replace(series="model"))

    return BenchmarkReport(
        groups={"culture": Groups({name: title}, places={name: place}), **_EMOTION_GROUPS},
        splits=(("culture",),),
        culture="culture",
        further=(_UNPARSED,),
        derived=(
            Derived("lsepp", RATIO, _propensity, dimension="emotion"),
            Derived("lsrqb", _BIAS, _quadrant_bias, dimension="quadrant"),
            Derived(TOP2, F1, _top2),
        ),
        tables=tables,
        headers=MODEL,
        source="CEDAR",
    )
