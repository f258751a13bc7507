"""A made-up report with every kind of figure, cell and text, for tests of the page and the figures."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.tables import Figure, series_of
from culture_tasks.report.figures import finished
from culture_tasks.report.model import Column, ModelRow, Number, Numbers, Rank, Report, Table, Unit
from culture_tasks.results.file_samples import RunRows, Sample
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import RecordKind, Run, RunSamples, RunSettings, RunUsage

MODELS = ("Qwen3-VL-8B", "نموذج العربية ٣ (base)", "हिन्दी क्षत्रिय मॉडल", "中文模型 日本語モデル")
COUNTRIES = (
    *("brazil", "canada", "china", "ethiopia", "germany", "india"),
    *("iran", "nigeria", "rwanda", "turkey", "usa"),
)
LANGUAGES = ("ar", "en", "zh")
PERCENT, RATING = Scale("percent", 0, 100, digits=1), Scale("rating", 1, 10)
RATIO = Scale("ratio", 0, None, None, neutral=1.0)
TASKS: Mapping[str, tuple[str, str | None, Scale]] = {
    "culturalvqa": ("CulturalVQA", "culturalvqa", PERCENT),
    "care_zh": ("CARE Chinese", "care", RATING),
    "arab_culture": ("arab_culture", None, PERCENT),
}
_QUESTIONS = {
    "ar": "ما هي الملابس التقليدية التي يرتديها الرجل في هذه الصورة؟",
    "zh": "图中的人正在庆祝哪个传统节日?",
    "en": "Which festival is shown in the picture?",
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


def share(*parts: object) -> float:
    """A number from 0 to 1 that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()[:4], "big") / 2**32


def example_report(models: Sequence[str] = MODELS, *, per_group: int = 3) -> Report:
    """A report over two benchmarks and a foreign task, with so many samples of each model in each group."""
    entrants = {f"m{number}": ModelRow(f"m{number}", name) for number, name in enumerate(models)}
    runs = {f"{key}.{task}": _run(f"{key}.{task}", row, task) for key, row in entrants.items() for task in TASKS}
    units = {
        task: Unit(task, title, benchmark, "acc", scale, "made up", True, _column(entrants, task, "", scale).cells)
        for task, (title, benchmark, scale) in TASKS.items()
    }
    tables = tuple(_tables(entrants))
    return Report(
        created="2026-01-02T03:04:05+00:00",
        version="0.1.0",
        options={"--published": "yes"},
        entrants=entrants,
        runs=runs,
        numbers=Numbers(units.values(), Results()),
        tables=tables,
        fairness=(),
        comparisons=(),
        contrasts=(),
        problems=(UnusedFile("runs/broken.json", "damaged", "line 3 isn't JSON", 1),),
        samples=MemoryStore({key: list(_samples(run, per_group)) for key, run in runs.items()}),
        notes=("One model was run twice; the newer run counts.",),
        figures=finished(_figures(tables), tables[0], entrants, (), ()),
    )


def _run(key: str, entrant: ModelRow, task: str) -> Run:
    _, benchmark, scale = TASKS[task]
    return Run(
        harness="lmms_eval",
        path=Path("r.json"),
        task=task,
        model=entrant.model,
        date="2026-01-01T00:00:00",
        settings=RunSettings(task_version="1", decoding='{"temperature": 0}'),
        samples_file=Path("s.jsonl"),
        key=key,
        kind=RecordKind(benchmark, "acc", scale) if benchmark else None,
        samples=RunSamples(slice(0, 50), 48, spent=RunUsage(50), outcomes={"scored": 48, "refused": 2}),
    )


def _column(entrants: Mapping[str, ModelRow], task: str, group: str, scale: Scale, over: str = "") -> Column:
    low, high = scale.low or 0.0, scale.high or 2.0
    cells = {}
    for key in entrants:
        value, width = low + (high - low) * (0.15 + 0.7 * share(key, task, group)), (high - low) * 0.05
        is_low = task == "care_zh" and key == "m0"
        cells[key] = Number(
            value,
            scale,
            value - width,
            value + width,
            n=50,
            coverage=0.96,
            flags=("low_coverage",) if is_low else (),
            runs=(f"{key}.{task}",),
            where=(("country", group),) if group in COUNTRIES else (),
            rank=None if is_low else Rank(1, 1),
        )
    return Column(group or task, group or TASKS[task][0], scale, cells, over)


def _tables(entrants: Mapping[str, ModelRow]) -> Iterator[Table]:
    columns = [_column(entrants, task, "", scale) for task, (_, _, scale) in TASKS.items()]
    rows = {key: (entrant.label, "") for key, entrant in entrants.items()}
    paper = [replace(one, cells={**one.cells, "paper": Number(50.0, one.scale)}) for one in columns]
    yield Table(
        "summary",
        "All benchmarks",
        ("model", "source"),
        tuple(paper),
        rows | {"paper": ("GPT-4V", "CulturalVQA, Table 2, judge GPT-4, 2024")},
        published=frozenset(["paper"]),
        notes=("Scores on each own scale.",),
        question="best",
    )
    groups = {
        "country": (COUNTRIES, PERCENT),
        "category": (("norms", "literacy"), RATING),
        "emotion": (("awe",), RATIO),
    }
    for field, (names, scale) in groups.items():
        task = "care_zh" if field == "category" else "culturalvqa"
        columns = [_column(entrants, task, name, scale, "Chinese" if field == "category" else "") for name in names]
        labels = {key: (entrant.label,) for key, entrant in entrants.items()}
        yield Table(f"by_{field}", f"By {field}", ("model",), tuple(columns), labels, source="its paper's table")


def _figures(tables: Sequence[Table]) -> Iterator[Figure]:
    """A figure of each kind."""
    _, country, category, emotion = tables
    for table, field in ((country, "country"), (category, "category"), (emotion, "emotion")):
        yield Figure(f"by_{field}", f"By {field}", {"All": series_of(table.columns)}, "score", groups=field)
    cells = [cell for column in country.columns for cell in column.cells.values()]
    lines = {name: dict(zip(LANGUAGES, cells[at:], strict=False)) for at, name in enumerate(LANGUAGES)}
    steps = {name: {str(step): cells[step] for step in range(at, 4)} for at, name in enumerate(LANGUAGES, start=1)}
    yield Figure("matrix", "Matrix", {"m · text": lines}, "Accuracy", kind="heat", groups="data", series="prompt")
    yield Figure("retention", "Retention", {"m": steps}, "Score", kind="lines", groups="step", series="language")


def _samples(run: Run, per_group: int) -> Iterator[Sample]:
    for place, (name, number) in enumerate((name, number) for number in range(per_group) for name in COUNTRIES):
        language = LANGUAGES[number % len(LANGUAGES)]
        outcome = "refused" if share(run.key, name, number) < 0.1 else "scored"
        yield Sample(
            run=run.key,
            place=place,
            item=f"{name}-{number}",
            question=f"{_QUESTIONS[language]} ({number})",
            references=("端午节", "another answer"),
            response=f"An answer. {'It is a long story. ' * (1 + number % 5)}",
            outcome=outcome,
            score=round(100 * share(run.key, number)) if outcome == "scored" else None,
            rationale="The answer names the same festival as the reference.",
            groups={"country": name, "language": language},
            image=f"{name}_{number}",
            prompt=f"Answer in one word. {_QUESTIONS[language]} ({number})",
            doubt="the judge was reminded of the format" if share(run.key, name, number, "doubt") < 0.2 else "",
        )


def with_hostile_texts(report: Report, hostile: str) -> Report:
    """The report with this text in every field that comes from models, data or file names."""
    entrants = {key: replace(e, model=hostile + e.key, variation=hostile) for key, e in report.entrants.items()}
    units = {key: replace(u, title=hostile + key, about=hostile, metric=hostile) for key, u in report.units.items()}
    samples = {key: [_hostile(s, hostile) for s in report.samples.read(key, (0, 1))] for key in report.runs}
    return replace(
        report,
        entrants=entrants,
        numbers=Numbers(units.values(), Results()),
        runs={key: _hostile_run(run, hostile) for key, run in report.runs.items()},
        tables=tuple(_hostile_table(table, hostile) for table in report.tables),
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
    rows = {key: tuple(text for _ in texts) for key, texts in table.rows.items()}
    return replace(table, title=text, columns=columns, rows=rows, notes=(text,), source=text)


def _hostile(sample: Sample, text: str) -> Sample:
    changed = dict.fromkeys(("item", "question", "response", "outcome", "rationale", "image", "prompt", "doubt"), text)
    groups = dict.fromkeys(sample.groups, text) | {text: text}
    return replace(sample, references=(text, text), groups=groups, **changed)
