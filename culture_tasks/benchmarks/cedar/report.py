"""How CEDAR is reported: accuracy by language, emotions, quadrants, and prompt by data language (Figure 7)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.cedar import metrics
from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    FILE_NAMES,
    LANGUAGES,
    MODALITIES,
    PREDICTION,
    QUADRANT_NAMES,
)
from culture_tasks.benchmarks.cedar.scoring import TOP2, UNPARSED, UNREAD
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    Answers,
    At,
    BenchmarkReport,
    Derived,
    Drawn,
    Field,
    FigureOf,
    Floats,
    FurtherScore,
    Line,
    Ran,
    Shown,
    TableOf,
    UnitOf,
    Where,
    whole_groups_then_tasks,
)
from culture_tasks.metrics.means import contributions, ratio_contributions

_PERCENT = Scale("percent", 0.0, 100.0)
_RATIO = Scale("ratio", 0.0, None, better=None, neutral=1.0)
_BIAS = Scale("percent", -100.0, 100.0, better=None, neutral=0.0)
_VARIANCE = Scale("squared percent", 0.0, None, better="lower", digits=1)
_F1 = Scale("share", 0.0, 1.0, digits=3)

_NAMES: Mapping[str, str] = {language: name.title() for language, name in FILE_NAMES.items()}
_TITLES = {"multimodal": "Multimodal", "text": "Text-only"}
_PROPENSITIES = {"multimodal": "cedar_table_7", "text": "cedar_table_8"}
_NEUTRAL = "1 is neutral; above, the emotion is named more often than the gold labels have it."
_NO_BIAS = (
    "In percent of all gold labels. 0 is neutral; above, emotions of the quadrant are named more often than the gold "
    "labels have them. The four add up to minus the share of replies from which no emotion could be read."
)

_PAIR = re.compile(r"_prompt_(?P<prompt>[a-z]{2})_data_(?P<data>[a-z]{2})$")
"""The languages that end the name of a task which asks in one language about data in another."""


def _is_no_pair(unit: str) -> bool:
    return _PAIR.search(unit) is None


def _units(ran: Ran) -> Iterator[UnitOf]:
    """Yields tasks alone; of the summary are the pooled tasks, or a language's where the pooled one wasn't run."""
    for unit in whole_groups_then_tasks(ran):
        pooled = "_".join(unit.key.split("_")[:2])
        in_summary = unit.key == pooled or pooled not in ran.anywhere
        yield replace(unit, headline=in_summary and _is_no_pair(unit.key))


def _unparsed(record: Mapping[str, Any]) -> float | None:
    """Share of a question's replies from which no emotion could be read; None for a question that doesn't count."""
    outcomes = record["outcomes"]
    return outcomes.get("unparsable", 0) / sum(outcomes.values()) if "score" in record else None


def _language_numbers(answers: Answers) -> NDArray[np.int64]:
    """Returns the language of each answer as a number."""
    numbers: NDArray[np.int64] = answers.of_field("language").indicators(LANGUAGES).argmax(axis=1)
    return numbers


def _average(answers: Answers) -> Mapping[str, Floats | float]:
    """Macro average of accuracy over languages (Table 1, Avg.), in percent."""
    return {"": contributions(answers.scores, _language_numbers(answers))}


def _variance(answers: Answers) -> Mapping[str, Floats | float]:
    """Sample variance of accuracy over languages (Table 1, Var.); nothing with fewer than two languages."""
    numbers = _language_numbers(answers)
    sums = np.bincount(numbers, weights=answers.scores, minlength=len(LANGUAGES))
    of_languages = metrics.accuracies(sums, np.bincount(numbers, minlength=len(LANGUAGES)))
    return {"": metrics.variance(of_languages)} if of_languages.size > 1 else {}


def _runs(answers: Answers) -> list[str]:
    """Returns the fields that have what was read, one per run."""
    return [field for field in answers.groups if field.startswith(PREDICTION)] or [PREDICTION]


def _predicted(answers: Answers) -> Floats:
    """Returns the share of each emotion in the runs of each answer."""
    predicted: Floats = np.mean([answers.of_field(run).indicators(EMOTIONS) for run in _runs(answers)], axis=0)
    return predicted


def _propensity(answers: Answers) -> Mapping[str, Floats | float]:
    """How often each emotion is predicted, over how often it is the gold label (equation 1)."""
    predicted, gold = _predicted(answers), answers.of_field("gold").indicators(EMOTIONS)
    return {emotion: ratio_contributions(predicted[:, at], gold[:, at]) for at, emotion in enumerate(EMOTIONS)}


def _quadrant_bias(answers: Answers) -> Mapping[str, Floats | float]:
    """How much more often a quadrant is predicted than gold, in percent of all gold labels (equation 2)."""
    apart = metrics.quadrant_difference(_predicted(answers), answers.of_field("gold").indicators(EMOTIONS))
    return {name: 100.0 * apart[:, at] for at, name in enumerate(QUADRANT_NAMES)}


def _global_propensity(answers: Answers) -> Mapping[str, Floats | float]:
    return _propensity(answers) if np.unique(_language_numbers(answers)).size > 1 else {}


def _global_quadrant_bias(answers: Answers) -> Mapping[str, Floats | float]:
    return _quadrant_bias(answers) if np.unique(_language_numbers(answers)).size > 1 else {}


def _top2(answers: Answers) -> Mapping[str, Floats | float]:
    """Macro F1 against the two most frequent annotations (Table 5); nothing where the data have no minority labels."""
    if "minority" not in answers.groups:
        return {}
    runs = _runs(answers)
    predictions = [emotion for run in runs for emotion in _emotions_of(answers, run)]
    golds, minorities = (_emotions_of(answers, field) * len(runs) for field in ("gold", "minority"))
    return {"": metrics.top2_macro_f1(predictions, golds, minorities)}


def _emotions_of(answers: Answers, field: str) -> list[Any]:
    """Returns the emotion of each answer; None where the field has none."""
    texts = answers.of_field(field)
    known = [each if each in EMOTIONS else None for each in texts.names]
    return [known[code] for code in texts.codes]


_STATISTICS = (
    Derived("gepp", _RATIO, _global_propensity, dimension="emotion", units=_is_no_pair),
    Derived("grqb", _BIAS, _global_quadrant_bias, dimension="quadrant", units=_is_no_pair),
    Derived("lsepp", _RATIO, _propensity, dimension="emotion", within=("language",), units=_is_no_pair),
    Derived("lsrqb", _BIAS, _quadrant_bias, dimension="quadrant", within=("language",), units=_is_no_pair),
    Derived("acc_avg", _PERCENT, _average, units=_is_no_pair),
    Derived("acc_var", _VARIANCE, _variance, units=_is_no_pair),
    Derived(TOP2, _F1, _top2, units=_is_no_pair),
    Derived(TOP2, _F1, _top2, within=("language",), units=_is_no_pair),
)


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    ran = {unit.key for unit in units}
    accuracy = [each for each in _TITLES if f"cedar_{each}" in ran]
    if accuracy:
        yield _accuracy(accuracy)
    for modality in reversed(MODALITIES):
        if f"cedar_{modality}" in ran:
            yield _emotions(modality)
            yield _emotions_by_language(modality)
            yield _quadrants(modality)
            yield _quadrants_by_language(modality)
            yield _two_labels(modality)
        if any(unit.startswith(f"cedar_{modality}_prompt_") for unit in ran):
            yield _matrix(modality)


def _accuracy(modalities: Iterable[str]) -> TableOf:
    columns: list[Shown] = []
    for modality in modalities:
        unit, over = f"cedar_{modality}", _TITLES[modality]
        numbers: dict[str, tuple[str, At]] = {
            each: (each.upper(), At(unit, where=(("language", each),))) for each in LANGUAGES
        }
        numbers |= {"average": ("Avg.", At(unit, "acc_avg")), "variance": ("Var.", At(unit, "acc_var"))}
        columns += [
            Shown(
                f"{modality}_{name}",
                label,
                at=at,
                over=over,
                printed={"modality": modality, "language": name},
                sums_up=name == "average",
            )
            for name, (label, at) in numbers.items()
        ]
        columns.append(Shown(f"{modality}_{UNPARSED}", "Unparsed", At(unit, UNPARSED), over))
    note = (
        "Avg. is the mean over languages, Var. their sample variance. Unparsed is the share of replies from which no "
        "emotion could be read, which count as wrong. Languages that a run was told the model doesn't "
        "officially support are left out of these and stay empty."
    )
    return TableOf(
        key="cedar_table_1",
        title="CEDAR: accuracy in percent by language",
        source="CEDAR, Table 1",
        columns=tuple(columns),
        headers=("Model",),
        notes=(note,),
        papers=("cedar_table_1",),
    )


def _emotions(modality: str) -> TableOf:
    unit, paper = f"cedar_{modality}", _PROPENSITIES[modality]
    return TableOf(
        key=paper,
        title=f"{unit}: global emotion prediction propensity (GEPP)",
        source=f"CEDAR, Table {paper.removeprefix('cedar_table_')}",
        columns=tuple(
            Shown(
                each,
                each,
                at=At(unit, "gepp", (("emotion", each),)),
                printed={"modality": modality, "emotion": each},
            )
            for each in EMOTIONS
        ),
        headers=("Model",),
        notes=(_NEUTRAL,),
        papers=(paper,),
        question="biases",
    )


def _emotions_by_language(modality: str) -> TableOf:
    return _by_language(
        modality,
        statistic="lsepp",
        about="emotion prediction propensity by language (LSEPP)",
        source="CEDAR, Figure 4",
        field="emotion",
        groups={each: each for each in EMOTIONS},
        note=_NEUTRAL,
    )


def _quadrants(modality: str) -> TableOf:
    unit = f"cedar_{modality}"
    return TableOf(
        key=f"{unit}_grqb",
        title=f"{unit}: bias towards Russell's quadrants (GRQB)",
        source="CEDAR, Figure 5",
        columns=tuple(
            Shown(each, f"Quadrant {each}", At(unit, "grqb", (("quadrant", each),))) for each in QUADRANT_NAMES
        ),
        headers=("Model",),
        notes=(_NO_BIAS,),
        question="biases",
    )


def _quadrants_by_language(modality: str) -> TableOf:
    return _by_language(
        modality,
        statistic="lsrqb",
        about="bias towards Russell's quadrants by language (LSRQB)",
        source="CEDAR, Figure 6",
        field="quadrant",
        groups={each: f"Quadrant {each}" for each in QUADRANT_NAMES},
        note=_NO_BIAS,
    )


def _by_language(
    modality: str, *, statistic: str, about: str, source: str, field: str, groups: Mapping[str, str], note: str
) -> TableOf:
    """Returns a table with a line a language and a column a group of a field."""
    unit = f"cedar_{modality}"
    return TableOf(
        key=f"{unit}_{statistic}",
        title=f"{unit}: {about}",
        source=source,
        columns=tuple(Shown(each, label) for each, label in groups.items()),
        headers=("Model",),
        line_header="Language",
        lines=tuple(
            Line(name, {each: At(unit, statistic, (("language", code), (field, each))) for each in groups})
            for code, name in _NAMES.items()
        ),
        notes=(note,),
        question="biases",
    )


def _two_labels(modality: str) -> TableOf:
    unit = f"cedar_{modality}"
    return TableOf(
        key=f"{unit}_top2",
        title=f"{unit}: macro F1, either of the two most frequent labels being right",
        source="CEDAR, Table 5",
        columns=(
            *(
                Shown(
                    code,
                    name,
                    at=At(unit, TOP2, (("language", code),)),
                    printed={"modality": modality, "language": code},
                )
                for code, name in _NAMES.items()
            ),
            Shown("all", "All", At(unit, TOP2), sums_up=True),
        ),
        headers=("Model",),
        notes=("Of data with minority labels. Over all languages together, All is no mean of the columns.",),
        papers=("cedar_table_5",) if modality == "text" else (),  # the paper's is of text alone
    )


def _matrix(modality: str) -> TableOf:
    return TableOf(
        key=f"cedar_{modality}_matrix",
        title=f"CEDAR, {modality}: accuracy of {{model}} in percent, by the languages of prompt and data",
        source="CEDAR, section 4.4",
        columns=tuple(Shown(data, name, over="Data") for data, name in _NAMES.items()),
        headers=(),
        question="changes",
        line_header="Prompt",
        lines=tuple(
            Line(name, {data: At(f"cedar_{modality}_prompt_{prompt}_data_{data}") for data in LANGUAGES})
            for prompt, name in _NAMES.items()
        ),
        each_model=True,
    )


def _languages_of_pair(unit: str) -> Where | None:
    found = _PAIR.search(unit)
    return None if found is None else (("prompt_language", found["prompt"]), ("language", found["data"]))


def _modality(at: Drawn) -> str:
    return _TITLES["multimodal" if "multimodal" in at.unit else "text"]


def _modality_and_group(at: Drawn) -> str:
    return f"{_modality(at)} · {at.group}"


def _model_and_modality(at: Drawn) -> str:
    return f"{at.model} · {_modality(at).lower()}"


def _language(at: Drawn) -> str:
    return at.held.get("language", at.title)


def _prompt_language(at: Drawn) -> str:
    return at.held["prompt_language"]


_FIGURES = (
    FigureOf(
        key="cedar_gepp",
        title="CEDAR: emotion prediction propensity (GEPP)",
        value="GEPP: named / gold (ratio)",
        source="CEDAR, Figure 3",
        kind="points",
        statistic="gepp",
        dimensions=("emotion",),
        groups="emotion",
        panel=_modality,
        question="biases",
    ),
    FigureOf(
        key="cedar_lsepp",
        title="CEDAR: emotion prediction propensity by language (LSEPP)",
        value="LSEPP: named / gold (ratio)",
        source="CEDAR, Figure 4",
        kind="radar",
        statistic="lsepp",
        dimensions=("emotion",),
        groups="emotion",
        free=("language",),
        series="language",
        panel=_model_and_modality,
        line=_language,
        question="biases",
    ),
    FigureOf(
        key="cedar_grqb",
        title="CEDAR: bias towards Russell's quadrants (GRQB)",
        value="GRQB (percent of gold labels)",
        source="CEDAR, Figure 5",
        kind="bars",
        statistic="grqb",
        dimensions=("quadrant",),
        groups="quadrant",
        panel=_modality,
        question="biases",
    ),
    FigureOf(
        key="cedar_lsrqb",
        title="CEDAR: bias towards Russell's quadrants by language (LSRQB)",
        value="LSRQB (percent of gold labels)",
        source="CEDAR, Figure 6",
        kind="points",
        statistic="lsrqb",
        dimensions=("quadrant",),
        groups="language",
        free=("language",),
        panel=_modality_and_group,
        group=_language,
        along=("language",),
        question="biases",
    ),
    FigureOf(
        key="cedar_matrix",
        title="CEDAR: accuracy by prompt and data language",
        value="Accuracy (percent)",
        source="CEDAR, Figure 7",
        kind="heat",
        dimensions=("language",),
        groups="data language",
        whole=_languages_of_pair,
        free=("prompt_language",),
        series="prompt language",
        panel=_model_and_modality,
        line=_prompt_language,
        question="changes",
    ),
)

_CULTURES = {"zh": "Chinese", "ar": "Arabic", "ja": "Japanese", "en": "American", "hi": "Indian"}

REPORT = BenchmarkReport(
    fields=(
        Field("language", LANGUAGES, names=_NAMES, cultures=_CULTURES),
        Field("prompt_language", LANGUAGES, _NAMES),
        Field("emotion", EMOTIONS, {each: each for each in EMOTIONS}),
        Field("quadrant", QUADRANT_NAMES, {name: f"Q{at}" for at, name in enumerate(QUADRANT_NAMES, start=1)}),
    ),
    splits=(("language",),),
    culture="language",
    further=(FurtherScore(UNPARSED, UNREAD, read=_unparsed),),
    derived=_STATISTICS,
    units=_units,
    tables=_tables,
    figures=_FIGURES,
    as_published=tuple(f"cedar_{modality}" for modality in MODALITIES),
    published={("gepp", "emotion"): ("cedar_table_7", "cedar_table_8")},
    printed={f"cedar_{modality}": {"modality": modality} for modality in MODALITIES},
)
