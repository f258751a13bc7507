"""How CEDAR is reported: accuracy by language, emotions, quadrants, and prompt by data language (Figure 7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar import metrics
from culture_tasks.benchmarks.cedar.benchmark import BIAS, F1, PERCENT, RATIO, TOP2, UNPARSED, UNREAD, VARIANCE
from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    LANGUAGE_NAMES,
    LANGUAGES,
    MODALITIES,
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
    ScoreUnit,
    TasksRun,
    groups_and_tasks,
)
from culture_tasks.benchmarks.tables import BenchmarkNumbers, Column, Figure, Panel, Table, series_of

Values: TypeAlias = Mapping[str, "Floats | float"]

_PERCENT, _BIAS, _VARIANCE = (replace(scale, times=1.0) for scale in (PERCENT, BIAS, VARIANCE))
_TITLES = {"multimodal": "Multimodal", "text": "Text-only"}
_NEUTRAL = (
    "1 is neutral; above, the emotion is named more often than the gold labels have it. "
    "A dash: it is named, and no gold label has it."
)
_NO_BIAS = (
    "In percent of all gold labels. 0 is neutral; above, emotions of the quadrant are named more often than the gold "
    "labels have them. The four add up to minus the share of replies from which no emotion could be read."
)
_EMOTIONS: Mapping[str, str] = {emotion: emotion for emotion in EMOTIONS}
_QUADRANTS: Mapping[str, str] = {quadrant: f"Quadrant {quadrant}" for quadrant in QUADRANT_NAMES}
_BIASES: Mapping[str, tuple[str, str, str, Mapping[str, str], str]] = {
    "gepp": ("emotion prediction propensity (GEPP)", "Figure 3", "emotion", _EMOTIONS, _NEUTRAL),
    "lsepp": ("emotion prediction propensity by language (LSEPP)", "Figure 4", "emotion", _EMOTIONS, _NEUTRAL),
    "grqb": ("bias towards Russell's quadrants (GRQB)", "Figure 5", "quadrant", _QUADRANTS, _NO_BIAS),
    "lsrqb": ("bias towards Russell's quadrants by language (LSRQB)", "Figure 6", "quadrant", _QUADRANTS, _NO_BIAS),
}
"""Bias statistics: title, figure in the paper, field and labels of the groups, and how the numbers are read."""


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


def _runs(answers: Answers) -> list[str]:
    """Returns the fields with the emotion that was read, one per run."""
    return [field for field in answers.groups if field.startswith(PREDICTION)] or [PREDICTION]


def _replies(answers: Answers) -> metrics.Replies:
    predicted: Floats = np.mean([answers.groups_of(run).indicators(EMOTIONS) for run in _runs(answers)], axis=0)
    return metrics.Replies(predicted, answers.groups_of("gold").indicators(EMOTIONS), _languages(answers))


def _average(answers: Answers) -> Values:
    return {"": metrics.acc_avg(answers.scores, _languages(answers))}


def _variance(answers: Answers) -> Values:
    variance = metrics.acc_var(answers.scores, _languages(answers))
    return {} if math.isnan(variance) else {"": variance}


def _propensity(answers: Answers) -> Values:
    """Returns the propensity of each emotion that is predicted or a gold label."""
    replies = _replies(answers)
    totals: Floats = (replies.predicted + replies.gold).sum(axis=0)
    named = dict(zip(EMOTIONS, totals, strict=True))
    return {emotion: values for emotion, values in metrics.gepp(replies).items() if named[emotion]}


def _quadrant_bias(answers: Answers) -> Values:
    return {quadrant: 100.0 * values for quadrant, values in metrics.grqb(_replies(answers)).items()}


def _across_languages(compute: Callable[[Answers], Values]) -> Callable[[Answers], Values]:
    """Returns a statistic over all languages, which answers in one language don't have."""
    return lambda answers: compute(answers) if np.unique(_languages(answers)).size > 1 else {}


def _top2(answers: Answers) -> Values:
    """Returns nothing where the data have no minority labels."""
    if "minority" not in answers.groups:
        return {}
    runs = _runs(answers)
    columns = {field: answers.groups_of(field) for field in (*runs, "gold", "minority")}
    emotions: dict[str, list[Any]] = {
        field: [texts.names[code] if texts.names[code] in EMOTIONS else None for code in texts.codes]
        for field, texts in columns.items()
    }
    predictions = [emotion for run in runs for emotion in emotions[run]]
    golds, minorities = (emotions[field] * len(runs) for field in ("gold", "minority"))
    return {"": metrics.top2_macro_f1(predictions, golds, minorities)}


_STATISTICS = (
    Derived("gepp", RATIO, _across_languages(_propensity), dimension="emotion", units=_is_no_matrix),
    Derived("grqb", _BIAS, _across_languages(_quadrant_bias), dimension="quadrant", units=_is_no_matrix),
    Derived("lsepp", RATIO, _propensity, dimension="emotion", within=("language",), units=_is_no_matrix),
    Derived("lsrqb", _BIAS, _quadrant_bias, dimension="quadrant", within=("language",), units=_is_no_matrix),
    Derived("acc_avg", _PERCENT, _average, units=_is_no_matrix),
    Derived("acc_var", _VARIANCE, _variance, units=_is_no_matrix),
    Derived(TOP2, F1, _top2, units=_is_no_matrix),
    Derived(TOP2, F1, _top2, within=("language",), units=_is_no_matrix),
)


# Tables and figures


def _tables(numbers: BenchmarkNumbers) -> Iterator[Table]:
    if accuracy := [modality for modality in _TITLES if f"cedar_{modality}" in numbers.units]:
        yield _accuracy(numbers, accuracy)
    for modality in reversed(MODALITIES):
        if unit := numbers.units.get(f"cedar_{modality}"):
            yield from _biases(numbers, modality, unit)
            yield numbers.table(
                f"{unit.key}_top2",
                f"{unit.title}: macro F1, either of the two most frequent labels being right",
                numbers.by("language", unit.key, TOP2, printed={"modality": modality}, total="All"),
                source="CEDAR, Table 5",
                notes=("Of data with minority labels. Over all languages together, All is no mean of the columns.",),
                papers=("cedar_table_5",) if modality == "text" else (),  # the paper's is of text alone
            )
    for modality in reversed(MODALITIES):
        if unit := numbers.units.get(f"cedar_{modality}_matrix"):
            yield numbers.lines(
                unit.key,
                f"CEDAR, {modality}: accuracy in percent, by the languages of prompt and data",
                {(prompt,): columns for prompt, columns in _matrix(numbers, unit).items()},
                ("Prompt",),
                source="CEDAR, section 4.4",
                question="changes",
            )


def _accuracy(numbers: BenchmarkNumbers, modalities: Iterable[str]) -> Table:
    columns: list[Column] = []
    for modality in modalities:
        unit, over, printed = f"cedar_{modality}", _TITLES[modality], {"modality": modality}
        languages: dict[str, str] = {language: language.upper() for language in LANGUAGES}
        columns += numbers.by("language", unit, groups=languages, over=over, prefix=f"{modality}_", printed=printed)
        for name, label, statistic in (("average", "Avg.", "acc_avg"), ("variance", "Var.", "acc_var")):
            keys = {**printed, "language": name}
            columns.append(
                numbers.column(
                    f"{modality}_{name}", label, unit, statistic, over=over, printed=keys, sums_up=name == "average"
                )
            )
        columns.append(numbers.column(f"{modality}_{UNPARSED}", "Unparsed", unit, UNPARSED, over=over))
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


def _biases(numbers: BenchmarkNumbers, modality: Modality, unit: ScoreUnit) -> Iterator[Table]:
    for statistic, (title, figure, field, groups, note) in _BIASES.items():
        more: Any = {"notes": (note,), "question": "biases"}
        if statistic.startswith("ls"):
            by_language = _by_language(numbers, unit.key, statistic)
            lines: dict[tuple[str, ...], list[Column]] = {(name,): columns for name, columns in by_language.items()}
            key, title = f"{unit.key}_{statistic}", f"{unit.title}: {title}"
            yield numbers.lines(key, title, lines, ("Language",), source=f"CEDAR, {figure}", **more)
        elif statistic == "gepp":
            key, place = ("cedar_table_7", "Table 7") if modality == "multimodal" else ("cedar_table_8", "Table 8")
            columns = numbers.by(field, unit.key, statistic, groups=groups, printed={"modality": modality})
            title = f"{unit.title}: global {title}"
            yield numbers.table(key, title, columns, source=f"CEDAR, {place}", papers=(key,), **more)
        else:
            columns = numbers.by(field, unit.key, statistic, groups=groups)
            title = f"{unit.title}: {title}"
            yield numbers.table(f"{unit.key}_{statistic}", title, columns, source=f"CEDAR, {figure}", **more)


def _by_language(numbers: BenchmarkNumbers, unit: str, statistic: str) -> dict[str, list[Column]]:
    _, _, field, groups, _ = _BIASES[statistic]
    return {
        name: numbers.by(field, unit, statistic, groups=groups, within=(("language", code),))
        for code, name in LANGUAGE_NAMES.items()
    }


def _matrix(numbers: BenchmarkNumbers, unit: ScoreUnit) -> dict[str, list[Column]]:
    """Returns a column for each language of the data, by the language of the prompt."""
    return {
        prompt: [
            numbers.column(data, name, unit.key, where=(("pair", pair_of(code, data)),), over="Data")
            for data, name in LANGUAGE_NAMES.items()
        ]
        for code, prompt in LANGUAGE_NAMES.items()
    }


def _figures(numbers: BenchmarkNumbers) -> Iterator[Figure]:
    units = {modality: f"cedar_{modality}" for modality in _TITLES if f"cedar_{modality}" in numbers.units}
    for statistic, (title, source, field, _, _) in _BIASES.items():
        by_language = statistic.startswith("ls")
        panels: dict[str, Panel] = {}
        for modality, unit in units.items():
            if by_language:
                panels |= numbers.panels(_by_language(numbers, unit, statistic), f" · {_TITLES[modality].lower()}")
            else:
                panels[_TITLES[modality]] = series_of(numbers.by(field, unit, statistic))
        quantity = ": named / gold (ratio)" if field == "emotion" else " (percent of gold labels)"
        yield Figure(
            key=f"cedar_{statistic}",
            title=f"CEDAR: {title}",
            panels=panels,
            value=f"{statistic.upper()}{quantity}",
            groups=field,
            series="language" if by_language else "model",
            source=f"CEDAR, {source}",
            question="biases",
        )
    matrices = {
        title: numbers.units[key]
        for modality, title in _TITLES.items()
        if (key := f"cedar_{modality}_matrix") in numbers.units
    }
    yield Figure(
        key="cedar_matrix",
        title="CEDAR: accuracy by prompt and data language",
        panels={
            title: panel
            for modality, unit in matrices.items()
            for title, panel in numbers.panels(_matrix(numbers, unit), f" · {modality.lower()}").items()
        },
        value="Accuracy (percent)",
        kind="heat",
        groups="data language",
        series="prompt language",
        source="CEDAR, Figure 7",
        question="changes",
    )


_EMOTION_GROUPS = {
    "emotion": Groups(_EMOTIONS),
    "quadrant": Groups({name: f"Q{number}" for number, name in enumerate(QUADRANT_NAMES, start=1)}),
}
_UNPARSED = FurtherScore(UNPARSED, UNREAD, read=_unparsed)
_PAIR_NAMES = {pair: f"{LANGUAGE_NAMES[prompt]} on {LANGUAGE_NAMES[data]}" for pair, (prompt, data) in PAIRS.items()}

REPORT = BenchmarkReport(
    groups={
        "language": Groups(LANGUAGE_NAMES),
        "prompt_language": Groups(LANGUAGE_NAMES),
        "pair": Groups(_PAIR_NAMES),
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


def report_of_culture(name: str, title: str, place: str, tasks: Mapping[Modality, str]) -> BenchmarkReport:
    """Returns how an own culture is reported: the numbers of one language, without published ones."""

    def tables(numbers: BenchmarkNumbers) -> Iterator[Table]:
        for modality, unit in tasks.items():
            if unit not in numbers.units:
                continue
            subject = f"CEDAR, {title}, {_TITLES[modality].lower()}"
            labels = {"score": "Accuracy", UNPARSED: "Unparsed", TOP2: "Macro F1, two labels"}
            columns = [numbers.column(statistic, label, unit, statistic) for statistic, label in labels.items()]
            yield numbers.table(f"{unit}_accuracy", f"{subject}: accuracy in percent", columns)
            for statistic in ("lsepp", "lsrqb"):
                bias, _, field, groups, note = _BIASES[statistic]
                columns = numbers.by(field, unit, statistic, groups=groups)
                more: Any = {"notes": (note,), "question": "biases"}
                yield numbers.table(f"{unit}_{statistic}", f"{subject}: {bias}", columns, **more)

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
