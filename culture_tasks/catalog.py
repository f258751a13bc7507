"""The tasks that this package adds, as data: the source of the task table, of lmms-eval's index and of the tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

from culture_tasks.benchmarks.care import documents as care
from culture_tasks.benchmarks.cedar import documents as cedar
from culture_tasks.benchmarks.cedar import labels
from culture_tasks.benchmarks.crosscult import tasks as crosscult
from culture_tasks.benchmarks.crosscult.raw_cases import SOURCE as CROSSCULT_SOURCE
from culture_tasks.benchmarks.crosscult.vocabulary import PARTITIONS
from culture_tasks.benchmarks.culturalvqa import documents as culturalvqa
from culture_tasks.data.sources import Source

Harness = Literal["lm_eval", "lmms_eval"]
HARNESSES: tuple[Harness, ...] = get_args(Harness)

Modality = Literal["text", "image+text"]
Kind = Literal["task", "group", "tag"]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: Its name; the folder of its task files.
        title: Name as in its paper.
        paper: Citation.
        judge: Who grades by default; None where no judge is needed.
        data: Where its data come from.
    """

    name: str
    title: str
    paper: str
    judge: str | None
    data: str


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One name that can be passed to ``--tasks``.

    Attributes:
        name: The name; the stem of its YAML file.
        kind: ``task``, ``group`` (with a mean of its own) or ``tag`` (a name for several tasks).
        benchmark: The benchmark that it belongs to.
        modality: What the model is shown.
        languages: Codes of the languages in which the model is asked.
        metric: Headline metric.
        about: What it measures, in a few words.
        datasets: Data sets that it loads (see :mod:`culture_tasks.harness.loading`).
        sources: Where these come from.
        members: Tasks of a group or tag.
    """

    name: str
    kind: Kind
    benchmark: str
    modality: Modality
    languages: tuple[str, ...]
    metric: str
    about: str
    datasets: tuple[str, ...]
    sources: tuple[Source, ...]
    members: tuple[str, ...] = ()


BENCHMARKS: Mapping[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("culturalvqa", "CulturalVQA", "Nayak et al., 2024", "LAVE, GPT-4o", "Hub mair-lab/CulturalVQA"),
        Benchmark("care", "CARE", "Guo et al., 2025", "three rubrics, GPT-4o", "Hub geyang627/CARE-eval"),
        Benchmark("cedar", "CEDAR", "Dai et al., 2026", None, "local folder; the full data by request"),
        Benchmark("crosscult", "CrossCult-KIBench", "2026", "Figure 10, gpt-5.4-mini", f"Hub {CROSSCULT_SOURCE.name}"),
    )
}

_CULTURALVQA_VARIANTS: tuple[tuple[str, Modality, str], ...] = (
    ("culturalvqa", "image+text", "image and question (App. H)"),
    ("culturalvqa_lave3", "image+text", "graded on LAVE's own scale of 1-3 (Mañas et al., 2024)"),
    ("culturalvqa_fewshot", "image+text", "with examples before the question (App. I)"),
    ("culturalvqa_blind", "text", "question alone (section 5)"),
    ("culturalvqa_country", "text", "question and country (section 5)"),
    ("culturalvqa_lens", "text", "question and coarse visual entities (section 5)"),
)
_CARE_VARIANTS: tuple[tuple[str, str], ...] = (
    ("care", "question alone, sampled (App. B)"),
    ("care_greedy", "question alone, greedy decoding"),
    ("care_roleplay", "role-play prompt (Figure 8)"),
    ("care_cot", "chain-of-thought prompt (Figure 9)"),
    ("care_en", "asked and graded in English (section 5.2)"),
)


def _culturalvqa() -> Iterator[TaskEntry]:
    for name, modality, about in _CULTURALVQA_VARIANTS:
        metric = "lave3" if name == "culturalvqa_lave3" else "lave"
        yield TaskEntry(name, "task", "culturalvqa", modality, ("en",), metric, about, (name,), (culturalvqa.SOURCE,))


def _care() -> Iterator[TaskEntry]:
    for variant, about in _CARE_VARIANTS:
        english = variant == "care_en"
        members = tuple(f"{variant}_{language}" for language in care.LANGUAGES)
        data = tuple(f"{'care_en' if english else 'care'}_{language}" for language in care.LANGUAGES)
        asked = ("en",) if english else care.LANGUAGES
        sources = tuple(care.SOURCES[language] for language in care.LANGUAGES)
        yield TaskEntry(variant, "group", "care", "text", asked, "care_rating", about, data, sources, members)
        for name, language, one, source in zip(members, care.LANGUAGES, data, sources, strict=True):
            languages = ("en" if english else language,)
            yield TaskEntry(name, "task", "care", "text", languages, "care_rating", about, (one,), (source,))


def _cedar() -> Iterator[TaskEntry]:
    names = tuple(f"cedar_{modality}" for modality in labels.MODALITIES)
    about = "emotion of a scene, both modalities"
    sources = tuple(cedar.SOURCES.values())
    yield TaskEntry("cedar", "group", "cedar", "image+text", labels.LANGUAGES, "acc", about, names, sources, names)
    for modality in labels.MODALITIES:
        yield from _cedar_modality(modality)


def _cedar_modality(modality: labels.Modality) -> Iterator[TaskEntry]:
    name = f"cedar_{modality}"
    shown: Modality = "text" if modality == "text" else "image+text"
    sources = {language: cedar.SOURCES[modality, language] for language in labels.LANGUAGES}

    def entry(name: str, kind: Kind, languages: tuple[str, ...], about: str, data: tuple[str, ...]) -> TaskEntry:
        needed = tuple(sources[language] for language in labels.LANGUAGES if kind == "tag" or _asks(data[0], language))
        return TaskEntry(
            name, kind, "cedar", shown, languages, "acc", about, data, needed, data if kind == "tag" else ()
        )

    figure = "Figure 10" if modality == "text" else "Figure 9"
    yield entry(name, "task", labels.LANGUAGES, f"emotion of a scene, all languages, GEPP and GRQB ({figure})", (name,))
    for language in labels.LANGUAGES:
        one = f"{name}_{language}"
        yield entry(one, "task", (language,), "emotion of a scene, one language, LSEPP and LSRQB", (one,))
    pairs = {f"{name}_prompt_{one}_data_{two}": one for one in labels.LANGUAGES for two in labels.LANGUAGES}
    about = "every prompt language on every data language (section 4.4)"
    yield entry(f"{name}_matrix", "tag", labels.LANGUAGES, about, tuple(pairs))
    for pair, prompt in pairs.items():
        yield entry(pair, "task", (prompt,), about, (pair,))


def _asks(dataset: str, language: labels.Language) -> bool:
    """Returns whether a data set of CEDAR has rows of a language: it ends in the language's code, or in none."""
    last = dataset.rsplit("_", 1)[-1]
    return last == language or last in labels.MODALITIES


def _crosscult() -> Iterator[TaskEntry]:
    for name, group in crosscult.GROUPS.items():
        yield _crosscult_entry(name, group.about, PARTITIONS, group.members)
    for name, task in crosscult.TASKS.items():
        yield _crosscult_entry(name, task.about, task.languages)


def _crosscult_entry(name: str, about: str, languages: tuple[str, ...], members: tuple[str, ...] = ()) -> TaskEntry:
    kind: Kind = "group" if members else "task"
    data = crosscult.tasks_of(name)
    metric = "judge_score"
    sources = (CROSSCULT_SOURCE,)
    return TaskEntry(name, kind, "crosscult", "image+text", languages, metric, about, data, sources, members)


@cache
def entries() -> Mapping[str, TaskEntry]:
    """Returns every task and group, by name, in the order of the task table."""
    return {entry.name: entry for entry in (*_culturalvqa(), *_care(), *_cedar(), *_crosscult())}


def task_folder(harness: Harness) -> Path:
    """Returns the folder of a harness's task files: what its ``--include_path`` takes."""
    return Path(str(resources.files("culture_tasks.task_yamls"))) / harness


def task_file(entry: TaskEntry, harness: Harness) -> Path:
    """Returns the YAML file of a task or group; a tag has none."""
    return task_folder(harness) / entry.benchmark / f"{entry.name}.yaml"


def is_available(entry: TaskEntry, harness: Harness) -> bool:
    """Returns whether a harness has this task, group or tag."""
    if entry.kind == "tag":
        return any(is_available(entries()[member], harness) for member in entry.members)
    return task_file(entry, harness).is_file()
