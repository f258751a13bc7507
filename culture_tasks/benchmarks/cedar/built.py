"""A language, or scenes, that a group has added to CEDAR: its tasks, its check and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from culture_tasks.benchmarks.cedar.benchmark import task_of
from culture_tasks.benchmarks.cedar.documents import (
    ALIASES,
    AddedCulture,
    CedarRow,
    documents_of,
    problems_of,
    with_minorities,
)
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, Modality
from culture_tasks.benchmarks.cultures import DATA, BuiltCulture
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Documents, Entry, Group
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import validated
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import PromptFile
from culture_tasks.settings import Settings

STEMS: Mapping[Modality, str] = {"text": "nq", "multimodal": "inq"}
"""The ends of the tables' names, as of the released files."""

RATIO_FROM = 30
"""Gold labels of an emotion from which its propensity says something: its 95 % interval is about 0.4 wide to each side
at 30, and 0.9 at 5, for a ratio near 1."""


class BuiltCedar(Benchmark):
    """A culture like CEDAR (Dai et al., 2026)."""

    data = "built by a group of native speakers"
    paper = "made like Dai et al., 2026"

    def __init__(self, built: BuiltCulture) -> None:
        """Takes over what its manifest says; raises DataError for facts that can't be used."""
        self._built = built
        self.name, self.title = built.benchmark, f"CEDAR, {built.title}"
        self.task_files, self.marks = built.task_files, tuple(built.marks)
        try:
            texts = built.facts["prompts"]
            prompts = {
                kind: PromptFile(f"{kind}_{built.name}.by_group", texts[kind]) for kind in STEMS if kind in texts
            }
            for prompt in prompts.values():
                prompt.fill({"narrative": "", "question": ""})
            forms = {str(form): EMOTIONS[EMOTIONS.index(emotion)] for form, emotion in built.facts["forms"].items()}
            if not prompts:
                raise ValueError("no prompt")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{built.folder}: facts that can't be used ({error!r}). Build the culture again.") from None
        self._added = AddedCulture(built.name, built.language, forms, prompts)
        self._images = built.folder / DATA
        self._tasks = {modality: f"{self.name}_{modality}" for modality in prompts}

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each modality, and a group of them where there are both."""
        endings = {"text": ", text alone", "multimodal": ", images"} if len(self._tasks) > 1 else {}
        tasks = [
            task_of(
                name,
                "emotion of a scene, LSEPP and LSRQB",
                f"{self.title}{endings.get(modality, '')}",
                modality,
                (self._built.language,),
                DataSet((self._source(modality),), partial(self._load, modality)),
                added=self._added,
            )
            for modality, name in self._tasks.items()
        ]
        about, members = "emotion of a scene, both modalities", tuple(self._tasks.values())
        group = Group(name=self.name, about=about, title=self.title, members=members)
        return (*((group,) if len(tasks) > 1 else ()), *tasks)

    def report(self) -> BenchmarkReport:
        """Returns accuracy and both biases, without a published number beside them."""
        from culture_tasks.benchmarks.cedar.report import report_of_culture

        return report_of_culture(self._built.name, self._built.title, self._built.place, self._tasks)

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks its tables and images."""
        checks = [
            TableCheck(
                source=self._source(modality),
                model=CedarRow,
                aliases=ALIASES,
                id="id",
                problems=partial(problems_of, "en", self._images, set() if modality == "multimodal" else None),
                counts=partial(_counts, modality),
            )
            for modality in self._tasks
        ]
        return check_tables(self.name, data_folder, checks)

    def _source(self, modality: Modality) -> Source:
        return self._built.source(f"{self._built.name}_{STEMS[modality]}")

    def _load(self, modality: Modality, settings: Settings) -> Documents:
        table, language = read_source(self._source(modality), settings.data_folder), self._built.language
        rows = validated(table, CedarRow, ALIASES)
        documents = documents_of(table, rows, modality, "en", language, language, self._images)
        return replace(documents, rows=with_minorities(documents.rows))


def _counts(modality: Modality, rows: Sequence[CedarRow]) -> Iterator[Count]:
    golds = Counter(row.english_ver_answer or row.answer for row in rows).most_common()
    yield Count(f"{modality}: items", str(len(rows)))
    for emotion, number in golds[:1]:
        yield Count(f"{modality}: accuracy of always answering {emotion!r}", f"{number / len(rows):.1%}")
    rare = len(EMOTIONS) - sum(number >= RATIO_FROM for _, number in golds)
    yield Count(f"{modality}: emotions with fewer than {RATIO_FROM} gold labels", str(rare))
