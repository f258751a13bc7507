"""A made-up report with every kind of figure, cell and text, for tests of the page and the figures."""

from __future__ import annotations

import hashlib
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, PAIRS, QUADRANT_NAMES
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import (
    Column,
    Contrast,
    Flag,
    ModelRow,
    Number,
    Numbers,
    Rank,
    Report,
    Row,
    Table,
    Unit,
)
from culture_tasks.results.file_samples import RunRows, Sample
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import RecordKind, Run, RunSamples, RunSettings, RunUsage

MODELS = ("Qwen3-VL-8B", "نموذج العربية ٣ (base)", "हिन्दी क्षत्रिय मॉडल", "中文模型 日本語モデル")
COUNTRIES = (
    *("brazil", "canada", "china", "ethiopia", "germany", "india"),
    *("iran", "nigeria", "rwanda", "turkey", "usa"),
)
FACETS = ("clothing", "drinks", "food", "rituals", "traditions")
CATEGORIES = ("entities", "opinion", "norms", "commonsense", "literacy")
TOPICS = ("social", "religious", "ethical")
PARTITIONS = ("en", "zh", "ar")

PERCENT = Scale("percent", 0, 100, digits=1)
RATING = Scale("rating", 1, 10)
RATIO = Scale("ratio", 0, None, None, neutral=1.0)
BIAS = Scale("percent", None, None, None, neutral=0.0, digits=1)

_QUESTIONS = {
    "ar": "ما هي الملابس التقليدية التي يرتديها الرجل في هذه الصورة؟",
    "zh": "图中的人正在庆祝哪个传统节日?",
    "ja": "この写真の着物はどんな場面で着ますか。",
    "hi": "इस चित्र में कौन सा त्योहार मनाया जा रहा है?",
    "en": "Which festival is shown in the picture?",
}
_ANSWERS = {
    "ar": "ثوب أبيض (dishdasha) مع عقال.",
    "zh": "端午节",
    "ja": "成人式です。",
    "hi": "यह दिवाली है।",
    "en": "Carnival",
}


class MemoryStore:
    """Samples held in memory."""

    def __init__(self, samples: Mapping[str, Sequence[Sample]]) -> None:
        self._samples = samples

    def rows(self, run: str, where: Sequence[tuple[str, str]] = ()) -> RunRows:
        samples = self._samples.get(run, ())
        selection = [s for s in samples if all(s.groups.get(key) == value for key, value in where)]
        return RunRows(
            np.array([s.place for s in selection], dtype=np.int64),
            np.array([zlib.crc32(s.item.encode("utf-8", "surrogatepass")) % 2**31 for s in selection], dtype=np.int32),
            np.array([np.nan if s.score is None else s.score for s in selection]),
        )

    def read(self, run: str, places: Iterable[int] | None = None) -> Iterator[Sample]:
        samples = self._samples.get(run, ())
        yield from samples if places is None else (samples[place] for place in places)


def numbers_of(units: Mapping[str, Unit], groups: Iterable[Number]) -> Numbers:
    """The numbers of some units, with those of groups."""
    numbers = Numbers(units.values(), Results())
    for number in groups:
        numbers.put(number)
    return numbers


def share(*parts: object) -> float:
    """A number from 0 to 1 that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()[:4], "big") / 2**32


def example_report(models: Sequence[str] = MODELS, *, per_group: int = 3, published: bool = True) -> Report:
    """A report over four benchmarks and a foreign task, with so many samples of each model in each group."""
    entrants = {f"m{number}": ModelRow(f"m{number}", name) for number, name in enumerate(models)}
    runs = {
        (key := f"{entrant.key}.{task}"): _run(key, entrant, task) for entrant in entrants.values() for task in TASKS
    }
    groups = tuple(_groups(entrants))
    units = {key: _unit(key, entrants) for key in TASKS}
    return Report(
        created="2026-01-02T03:04:05+00:00",
        version="0.1.0",
        options={"--published": "yes"},
        entrants=entrants,
        runs=runs,
        numbers=numbers_of(units, groups),
        tables=(_summary(entrants, units, published=published), *_tables(entrants, groups)),
        fairness=(),
        comparisons=(),
        contrasts=tuple(_contrasts(entrants)),
        problems=(UnusedFile("runs/broken.json", "damaged", "line 3 isn't JSON", 1),),
        samples=MemoryStore({key: _samples(run, per_group) for key, run in runs.items()}),
        notes=("One model was run twice; the newer run counts.",),
    )


TASKS: Mapping[str, tuple[str, str, Scale, str]] = {
    "culturalvqa": ("CulturalVQA", "culturalvqa", PERCENT, "lave"),
    "care_ar": ("CARE Arabic", "care", RATING, "care_rating"),
    "care_zh": ("CARE Chinese", "care", RATING, "care_rating"),
    "cedar_text": ("CEDAR text-only", "cedar", PERCENT, "acc"),
    "cedar_multimodal": ("CEDAR multimodal", "cedar", PERCENT, "acc"),
    "crosscult_single": ("CrossCult single-insert", "crosscult", PERCENT, "judge_score"),
    "crosscult_diagnostic": ("Diagnostic", "crosscult", PERCENT, "judge_score"),
    "crosscult_retention_en_zh_ar": ("Retention", "crosscult", PERCENT, "judge_score"),
    "arab_culture": ("arab_culture", "", PERCENT, "acc"),
} | {
    f"cedar_{modality}_matrix": (f"{modality}, all pairs", "cedar", PERCENT, "acc")
    for modality in ("text", "multimodal")
}


def _run(key: str, entrant: ModelRow, task: str) -> Run:
    settings = RunSettings(task_version="1", decoding='{"temperature": 0}')
    samples = RunSamples(slice(0, 50), 48, spent=RunUsage(50), outcomes={"scored": 48, "refused": 2})
    return Run(
        harness="lmms_eval",
        path=Path("r.json"),
        task=task,
        model=entrant.model,
        date="2026-01-01T00:00:00",
        settings=settings,
        samples_file=Path("s.jsonl"),
        key=key,
        kind=RecordKind(TASKS[task][1], TASKS[task][3], TASKS[task][2]) if TASKS[task][1] else None,
        samples=samples,
    )


def _cell(entrant: ModelRow, task: str, scale: Scale, where: tuple[tuple[str, str], ...], *parts: str) -> Number:
    low, high = scale.low or 0.0, scale.high or 2.0
    if scale is BIAS:
        low, high = -20.0, 20.0
    value = low + (high - low) * (0.15 + 0.7 * share(entrant.key, task, *parts))
    width = (high - low) * 0.05
    flags: tuple[Flag, ...] = ()
    if share(entrant.key, task) < 0.2:
        flags = ("low_coverage",)
    runs = (f"{entrant.key}.{task}",)
    return Number(
        value, scale, value - width, value + width, 50, 0.96, flags, runs, where, Rank(1, 1) if not flags else None
    )


def _unit(key: str, entrants: Mapping[str, ModelRow]) -> Unit:
    title, benchmark, scale, metric = TASKS[key]
    cells = {name: _cell(entrant, key, scale, (), "all") for name, entrant in entrants.items()}
    cells = {name: replace(cell, row=name, unit=key) for name, cell in cells.items()}
    return Unit(key, title, benchmark or None, metric, scale, "made up", not key.endswith("_matrix"), cells)


def _dimensions() -> Iterator[tuple[str, str, str, str, Scale, tuple[tuple[str, str], ...]]]:
    for dimension, groups in (("country", COUNTRIES), ("facet", FACETS)):
        yield from _scores(("culturalvqa",), dimension, groups, PERCENT)
    yield from _scores(("care_ar", "care_zh"), "category", CATEGORIES, RATING)
    for task in ("cedar_text", "cedar_multimodal"):
        for propensity, bias, where in (
            ("gepp", "grqb", ()),
            *(("lsepp", "lsrqb", (("language", language),)) for language in LANGUAGES),
        ):
            yield from ((task, propensity, "emotion", emotion, RATIO, where) for emotion in EMOTIONS)
            yield from ((task, bias, "quadrant", quadrant, BIAS, where) for quadrant in QUADRANT_NAMES)
    yield from _scores(("cedar_text_matrix", "cedar_multimodal_matrix"), "pair", tuple(PAIRS), PERCENT)
    for dimension, groups in (("topic", TOPICS), ("partition", PARTITIONS)):
        yield from _scores(("crosscult_single",), dimension, groups, PERCENT, ("role", "reliability"))
    yield from _scores(("crosscult_diagnostic",), "partition", PARTITIONS, PERCENT)
    for place, partition in enumerate(PARTITIONS, start=1):
        steps = tuple(str(after) for after in range(place, 4))
        yield from _scores(("crosscult_retention_en_zh_ar",), "after", steps, PERCENT, ("partition", partition))


def _scores(
    tasks: Sequence[str], dimension: str, groups: Sequence[str], scale: Scale, *fixed: tuple[str, str]
) -> Iterator[tuple[str, str, str, str, Scale, tuple[tuple[str, str], ...]]]:
    for task, group in itertools.product(tasks, groups):
        yield task, "score", dimension, group, scale, (*fixed, (dimension, group))


def _groups(entrants: Mapping[str, ModelRow]) -> Iterator[Number]:
    for entrant in entrants.values():
        for task, statistic, dimension, group, scale, where in _dimensions():
            cell = _cell(entrant, task, scale, where, statistic, dimension, group, str(where))
            address = where if (dimension, group) in where else (*where, (dimension, group))
            cell = replace(cell, row=entrant.key, unit=task, statistic=statistic, samples=where)
            yield replace(cell, where=address)


def _summary(entrants: Mapping[str, ModelRow], units: Mapping[str, Unit], *, published: bool) -> Table:
    headline = [unit for unit in units.values() if unit.headline]
    columns = tuple(Column(unit.key, unit.title, unit.scale) for unit in headline)
    rows = [Row((e.label, ""), tuple(unit.cells[key] for unit in headline), key) for key, e in entrants.items()]
    if published:
        cells = tuple(Number(50.0, unit.scale, flags=("published",)) for unit in headline)
        rows.append(Row(("GPT-4V", "CulturalVQA, Table 2, judge GPT-4, 2024"), cells, published=True))
    return Table(
        "summary", "All benchmarks", ("model", "source"), columns, tuple(rows), notes=("Scores on each own scale.",)
    )


def _tables(entrants: Mapping[str, ModelRow], groups: Sequence[Number]) -> Iterator[Table]:
    plans = (
        ("culturalvqa_country", "CulturalVQA by country", "culturalvqa", "country", ("culturalvqa",)),
        ("care", "CARE, culture by category", "care", "category", ("care_ar", "care_zh")),
        ("cedar_gepp", "GEPP", "cedar", "emotion", ("cedar_text", "cedar_multimodal")),
    )
    for key, title, benchmark, dimension, tasks in plans:
        values = [g for g in groups if (g.unit in tasks, g.dimension) == (True, dimension)]
        scores = [g for g in values if g.statistic in ("score", "gepp")]
        names = list(dict.fromkeys((g.unit, g.group, g.scale) for g in scores))
        columns = tuple(Column(f"{u}.{n}", n, scale, TASKS[u][0]) for u, n, scale in names)
        cells = {(g.row, g.unit, g.group): g for g in scores}
        rows = tuple(Row((e.label,), tuple(cells.get((k, u, n)) for u, n, _ in names), k) for k, e in entrants.items())
        yield Table(key, title, ("model",), columns, rows, "its paper's table", benchmark, ("Made-up numbers.",))


def _contrasts(entrants: Mapping[str, ModelRow]) -> Iterator[Contrast]:
    units = {"category": ("care_zh", "language", RATING, (("language", "zh"),))}
    units |= dict.fromkeys(
        ("topic", "partition"), ("crosscult_single", "insertion", PERCENT, (("role", "reliability"),))
    )
    groups = {"category": CATEGORIES, "topic": TOPICS, "partition": PARTITIONS[1:]}
    for entrant in entrants.values():
        for dimension, names in groups.items():
            unit, kind, scale, fixed = units[dimension]
            for group in names:
                where = (*fixed, (dimension, group))
                first, second = (
                    replace(_cell(entrant, unit, scale, where, side, group), row=entrant.key, unit=unit)
                    for side in ("first", "second")
                )
                gap = second.value - first.value
                difference_scale = Scale(scale.unit, None, None, None, 0.0, scale.digits)
                difference = Number(gap, difference_scale, gap - 1.0, gap + 1.0, 50, None, (), second.runs, where)
                yield Contrast(kind, unit, entrant.key, "score", dimension, group, first, second, difference)


def _samples(run: Run, per_group: int) -> list[Sample]:
    fields = {"culturalvqa": ("country", COUNTRIES), "care": ("category", CATEGORIES), "cedar": ("language", LANGUAGES)}
    field, names = fields.get(run.benchmark or "", ("partition", PARTITIONS))
    questions = [(name, number) for number in range(per_group) for name in names]
    return [_sample(run, field, name, number, place) for place, (name, number) in enumerate(questions)]


def _sample(run: Run, field: str, name: str, number: int, place: int) -> Sample:
    languages = list(_QUESTIONS)
    language = name if name in _QUESTIONS else languages[number % len(languages)]
    outcome = "refused" if share(run.key, name, number) < 0.1 else "scored"
    return Sample(
        run=run.key,
        place=place,
        item=f"{name}-{number}",
        question=f"{_QUESTIONS[language]} ({number})",
        references=(_ANSWERS[language], "another answer"),
        response=f"{_ANSWERS[language]} {'It is a long story. ' * (1 + number % 5)}",
        outcome=outcome,
        score=round(100 * share(run.key, number)) if outcome == "scored" else None,
        rationale="The answer names the same festival as the reference.",
        groups={field: name, "language": language},
        image=f"{name}_{number}",
        prompt=f"Answer in one word. {_QUESTIONS[language]} ({number})",
        doubt="the judge was reminded of the format" if share(run.key, name, number, "doubt") < 0.2 else "",
    )


def with_hostile_texts(report: Report, hostile: str) -> Report:
    """The report with this text in every field that comes from models, data or file names."""
    entrants = {key: replace(e, model=hostile + e.key, variation=hostile) for key, e in report.entrants.items()}
    units = {key: replace(u, title=hostile + key, about=hostile, metric=hostile) for key, u in report.units.items()}
    samples = {key: [_hostile(s, hostile) for s in report.samples.read(key, (0, 1))] for key in report.runs}
    tables = tuple(_hostile_table(table, hostile) for table in report.tables)
    groups = [
        replace(g, where=(("country", hostile + g.group),)) if g.dimension == "country" else g for g in report.groups
    ]
    return replace(
        report,
        entrants=entrants,
        runs={key: _hostile_run(run, hostile) for key, run in report.runs.items()},
        tables=tables,
        numbers=numbers_of(units, groups),
        problems=(UnusedFile(hostile, "damaged", hostile),),
        notes=(hostile,),
        samples=MemoryStore(samples),
    )


def _hostile_run(run: Run, text: str) -> Run:
    assert run.samples is not None
    problems = (UnusedFile("s.jsonl", "damaged", text),)
    return replace(run, model=text, task=text, samples=replace(run.samples, problems=problems))


def _hostile_table(table: Table, text: str) -> Table:
    columns = tuple(replace(column, label=text + column.label, over=text) for column in table.columns)
    rows = tuple(replace(row, labels=tuple(text for _ in row.labels)) for row in table.rows)
    return replace(table, title=text, columns=columns, rows=rows, notes=(text,), reproduces=text)


def _hostile(sample: Sample, text: str) -> Sample:
    changed = dict.fromkeys(("item", "question", "response", "outcome", "rationale", "image", "prompt", "doubt"), text)
    groups = dict.fromkeys(sample.groups, text) | {text: text}
    return replace(sample, references=(text, text), groups=groups, **changed)
