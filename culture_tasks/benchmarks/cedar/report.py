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
    At,
    BenchmarkReport,
    ColumnSpec,
    Derived,
    FigureSpec,
    Floats,
    FurtherScore,
    Groups,
    Mark,
    Number,
    Question,
    ScoreUnit,
    TableSpec,
    TasksRun,
    columns_by,
    columns_of,
    groups_and_tasks,
)

Numbers: TypeAlias = Mapping[str, "Floats | float"]

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


def _average(answers: Answers) -> Numbers:
    return {"": metrics.acc_avg(answers.scores, _languages(answers))}


def _variance(answers: Answers) -> Numbers:
    variance = metrics.acc_var(answers.scores, _languages(answers))
    return {} if math.isnan(variance) else {"": variance}


def _propensity(answers: Answers) -> Numbers:
    """Returns the propensity of each emotion that is predicted or a gold label."""
    replies = _replies(answers)
    totals: Floats = (replies.predicted + replies.gold).sum(axis=0)
    named = dict(zip(EMOTIONS, totals, strict=True))
    return {emotion: values for emotion, values in metrics.gepp(replies).items() if named[emotion]}


def _quadrant_bias(answers: Answers) -> Numbers:
    return {quadrant: 100.0 * values for quadrant, values in metrics.grqb(_replies(answers)).items()}


def _across_languages(compute: Callable[[Answers], Numbers]) -> Callable[[Answers], Numbers]:
    """Returns a statistic over all languages, which answers in one language don't have."""
    return lambda answers: compute(answers) if np.unique(_languages(answers)).size > 1 else {}


def _top2(answers: Answers) -> Numbers:
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


# Tables


def _table(
    key: str,
    title: str,
    source: str,
    columns: Iterable[ColumnSpec],
    *notes: str,
    papers: tuple[str, ...] = (),
    question: Question = "cultures",
) -> TableSpec:
    return TableSpec(
        key=key,
        title=title,
        source=f"CEDAR, {source}",
        columns=tuple(columns),
        headers=MODEL,
        notes=notes,
        papers=papers,
        question=question,
    )


def _tables(units: Iterable[ScoreUnit]) -> Iterator[TableSpec]:
    keys = {unit.key for unit in units}
    if accuracy := [modality for modality in _TITLES if f"cedar_{modality}" in keys]:
        yield _accuracy(accuracy)
    for modality in reversed(MODALITIES):
        unit = f"cedar_{modality}"
        if unit in keys:
            yield from _biases(modality, unit)
            title = f"{unit}: macro F1, either of the two most frequent labels being right"
            columns = columns_by("language", LANGUAGE_NAMES, unit, TOP2, printed={"modality": modality}, total="All")
            note = "Of data with minority labels. Over all languages together, All is no mean of the columns."
            papers = ("cedar_table_5",) if modality == "text" else ()  # the paper's is of text alone
            yield _table(f"{unit}_top2", title, "Table 5", columns, note, papers=papers)
        if f"{unit}_matrix" in keys:
            yield _matrix(modality)


def _accuracy(modalities: Iterable[str]) -> TableSpec:
    columns: list[ColumnSpec] = []
    for modality in modalities:
        unit, header, printed = f"cedar_{modality}", _TITLES[modality], {"modality": modality}
        languages = {language: language.upper() for language in LANGUAGES}
        columns += columns_by("language", languages, unit, over=header, prefix=f"{modality}_", printed=printed)
        for name, label, statistic in (("average", "Avg.", "acc_avg"), ("variance", "Var.", "acc_var")):
            keys, sums_up = {**printed, "language": name}, name == "average"
            columns.append(ColumnSpec(f"{modality}_{name}", label, At(unit, statistic), header, keys, sums_up))
        columns += columns_of(unit, {UNPARSED: "Unparsed"}, over=header, prefix=f"{modality}_")
    note = (
        "Avg. is the mean over languages, Var. their sample variance. Unparsed is the share of replies from which no "
        "emotion could be read, which count as wrong. Languages that a run was told the model doesn't "
        "officially support are left out of these and stay empty."
    )
    title = "CEDAR: accuracy in percent by language"
    return _table("cedar_table_1", title, "Table 1", columns, note, papers=("cedar_table_1",))


def _bias_table(unit: str, statistic: str, subject: str, source: str) -> TableSpec:
    title, _, field, groups, note = _BIASES[statistic]
    columns = columns_by(field, groups, unit, statistic)
    return _table(f"{unit}_{statistic}", f"{subject}: {title}", source, columns, note, question="biases")


def _biases(modality: Modality, unit: str) -> Iterator[TableSpec]:
    for statistic, (title, figure, field, groups, _) in _BIASES.items():
        table = _bias_table(unit, statistic, unit, figure)
        if statistic == "gepp":
            number = "7" if modality == "multimodal" else "8"
            columns = columns_by(field, groups, unit, statistic, printed={"modality": modality})
            key, source = f"cedar_table_{number}", f"CEDAR, Table {number}"
            title = f"{unit}: global {title}"
            table = replace(table, key=key, title=title, source=source, columns=columns, papers=(key,))
        elif statistic.startswith("ls"):
            lines = {
                name: {group: At(unit, statistic, (("language", code), (field, group))) for group in groups}
                for code, name in LANGUAGE_NAMES.items()
            }
            columns = tuple(ColumnSpec(group, label) for group, label in groups.items())
            table = replace(table, columns=columns, line_header="Language", lines=lines)
        yield table


def _matrix(modality: Modality) -> TableSpec:
    unit = f"cedar_{modality}_matrix"
    lines: Mapping[str, Mapping[str, At]] = {
        name: {data: At(unit, where=(("pair", pair_of(prompt, data)),)) for data in LANGUAGES}
        for prompt, name in LANGUAGE_NAMES.items()
    }
    title = f"CEDAR, {modality}: accuracy of {{model}} in percent, by the languages of prompt and data"
    columns = [ColumnSpec(data, name, over="Data") for data, name in LANGUAGE_NAMES.items()]
    table = _table(unit, title, "section 4.4", columns, question="changes")
    return replace(table, headers={}, line_header="Prompt", lines=lines)


# Figures


def _modality(number: Number) -> str:
    return _TITLES["multimodal" if "multimodal" in number.unit else "text"]


def _panel(number: Number) -> str:
    return f"{number.model} · {_modality(number).lower()}"


def _by_model(number: Number) -> Mark:
    return Mark(_modality(number), number.model, number.group)


def _prompt_and_data(number: Number) -> Mark | None:
    if number.dimension != "pair":
        return None
    prompt, _, data = number.group.partition(" on ")
    return Mark(_panel(number), prompt, data)


def _bias_figure(
    statistic: str,
    groups: str,
    mark: Callable[[Number], Mark],
    series: str = "model",
) -> FigureSpec:
    title, figure, field, _, _ = _BIASES[statistic]
    quantity = ": named / gold (ratio)" if field == "emotion" else " (percent of gold labels)"
    return FigureSpec(
        key=f"cedar_{statistic}",
        title=f"CEDAR: {title}",
        source=f"CEDAR, {figure}",
        kind="dots",
        groups=groups,
        value=f"{statistic.upper()}{quantity}",
        statistic=statistic,
        mark=mark,
        series=series,
        undefined="Without a mark where a model names them and no gold label does",
        question="biases",
    )


_FIGURES = (
    _bias_figure("gepp", "emotion", _by_model),
    _bias_figure(
        "lsepp", "emotion", lambda one: Mark(_panel(one), one.fixed["language"], one.group), series="language"
    ),
    _bias_figure("grqb", "quadrant", _by_model),
    _bias_figure(
        "lsrqb",
        "language",
        lambda one: Mark(f"{_modality(one)} · {one.group}", one.model, one.fixed["language"]),
    ),
    FigureSpec(
        key="cedar_matrix",
        title="CEDAR: accuracy by prompt and data language",
        source="CEDAR, Figure 7",
        kind="heat",
        groups="data language",
        value="Accuracy (percent)",
        mark=_prompt_and_data,
        series="prompt language",
        question="changes",
    ),
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
    figures=_FIGURES,
    as_published=tuple(f"cedar_{modality}" for modality in MODALITIES),
)


def report_of_culture(name: str, title: str, place: str, tasks: Mapping[Modality, str]) -> BenchmarkReport:
    """Returns how an own culture is reported: the numbers of one language, without published ones."""

    def tables(units: Iterable[ScoreUnit]) -> Iterator[TableSpec]:
        keys = {unit.key for unit in units}
        for modality, unit in tasks.items():
            if unit in keys:
                subject = f"CEDAR, {title}, {_TITLES[modality].lower()}"
                columns = columns_of(unit, {"score": "Accuracy", UNPARSED: "Unparsed", TOP2: "Macro F1, two labels"})
                yield _table(f"{unit}_accuracy", f"{subject}: accuracy in percent", "Table 1", columns)
                yield _bias_table(unit, "lsepp", subject, "section 3.3, equation 1")
                yield _bias_table(unit, "lsrqb", subject, "section 3.3, equation 2")

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
        as_published=(),
    )
