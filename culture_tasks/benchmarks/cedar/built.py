"""A language, or scenes, that a group has added to CEDAR: its tasks, its check and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path

from culture_tasks.benchmarks.cedar.benchmark import task_of
from culture_tasks.benchmarks.cedar.documents import (
    ALIASES,
    NO_MINORITY,
    AddedCulture,
    CedarRow,
    documents_of,
    gold_label,
    image_name,
    label_problems,
    minority_label,
)
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, Modality
from culture_tasks.benchmarks.cultures import DATA, BuiltCulture
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Documents, Entry, Group
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.images import broken_images, image_column
from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import RowTable, validated
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import PromptFile
from culture_tasks.settings import Settings

STEMS: Mapping[Modality, str] = {"text": "nq", "multimodal": "inq"}
"""How the names of the tables end, as those of the released files do."""

_SHOWN: Mapping[Modality, str] = {"text": "text alone", "multimodal": "images"}

RATIO_FROM = 30
"""Gold labels of an emotion from which its propensity says something: its 95 % interval is about 0.4 wide to each side
at 30, and 0.9 at 5, for a ratio near 1."""


class BuiltCedar(Benchmark):
    """A culture like CEDAR (Dai et al., 2026)."""

    data = "built by a group of native speakers"

    def __init__(self, built: BuiltCulture) -> None:
        """Takes over what its manifest says; raises DataError for facts that can't be used."""
        self._built = built
        self.name = built.benchmark
        self.title = f"CEDAR, {built.title}"
        self.paper = "made like Dai et al., 2026"
        self.task_files = built.task_files
        self.marks = tuple(built.marks)
        try:
            self._prompts: Mapping[Modality, PromptFile] = {
                modality: PromptFile(f"{modality}_{built.name}.by_group", built.facts["prompts"][modality])
                for modality in STEMS
                if modality in built.facts["prompts"]
            }
            if not self._prompts:
                raise ValueError("no prompt")
            for prompt in self._prompts.values():
                prompt.fill({"narrative": "", "question": ""})
            forms = {str(form): EMOTIONS[EMOTIONS.index(emotion)] for form, emotion in built.facts["forms"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{built.folder}: facts that can't be used ({error!r}). Build the culture again.") from None
        self._added = AddedCulture(built.name, built.language, forms, self._prompts)

    @cached_property
    def _entries(self) -> Sequence[Entry]:
        tasks = [
            task_of(
                f"{self.name}_{modality}",
                "emotion of a scene, LSEPP and LSRQB",
                f"{self.title}, {_SHOWN[modality]}" if len(self._prompts) > 1 else self.title,
                modality,
                (self._built.language,),
                DataSet((self._built.source(self._stem(modality)),), partial(self._load, modality)),
                added=self._added,
            )
            for modality in self._prompts
        ]
        if len(tasks) == 1:
            return tuple(tasks)
        about, members = "emotion of a scene, both modalities", tuple(task.name for task in tasks)
        return (Group(name=self.name, about=about, title=self.title, members=members), *tasks)

    def entries(self) -> Sequence[Entry]:
        """Returns a task for each modality, and a group of them where there are both."""
        return self._entries

    def report(self) -> BenchmarkReport:
        """Returns accuracy and both biases, without a published number beside them."""
        from culture_tasks.benchmarks.cedar.report import report_of_culture

        tasks = {modality: f"{self.name}_{modality}" for modality in self._prompts}
        return report_of_culture(self._built.name, self._built.title, self._built.place, tasks)

    def check(self, data_folder: Path | None) -> DataReport:  # noqa: ARG002 - its data lie with it
        """Checks its tables and images."""
        checks = [
            TableCheck(
                source=self._built.source(self._stem(modality)),
                model=CedarRow,
                aliases=ALIASES,
                id="id",
                problems=partial(self._problems, modality),
                counts=partial(_counts, modality),
            )
            for modality in self._prompts
        ]
        report = check_tables(self.name, self._built.folder, checks)
        report.title = f"{self.name}: {self._built.folder}"
        return report

    def _stem(self, modality: Modality) -> str:
        return f"{self._built.name}_{STEMS[modality]}"

    def _load(self, modality: Modality, settings: Settings) -> Documents:
        table = read_source(self._built.source(self._stem(modality)), settings.data_folder)
        rows = validated(table, CedarRow, ALIASES)
        golds = [gold_label(row, "en", table.where(index)) for index, row in enumerate(rows)]
        minorities: list[str] = [minority_label(row, "en", table.where(index)) or "" for index, row in enumerate(rows)]
        if any(minorities):
            minorities = [minority or NO_MINORITY for minority in minorities]
        language = self._built.language
        documents = documents_of(table, rows, golds, minorities, modality, language, language)
        if modality == "text":
            return Documents(documents)
        folder = self._built.folder / DATA
        return Documents(documents, image_column(table, [image_name(folder, row) for row in rows], folder))

    def _problems(self, modality: Modality, table: RowTable, rows: Mapping[int, CedarRow]) -> Iterator[str]:
        yield from label_problems("en", table, rows)
        if modality == "multimodal":
            folder = self._built.folder / DATA
            yield from broken_images(table.part(list(rows)), [image_name(folder, row) for row in rows.values()], folder)


def _counts(modality: Modality, rows: Sequence[CedarRow]) -> Iterator[Count]:
    golds = Counter(row.english_ver_answer or row.answer for row in rows).most_common()
    yield Count(f"{modality}: items", str(len(rows)))
    if golds:
        emotion, number = golds[0]
        yield Count(f"{modality}: accuracy of always answering {emotion!r}", f"{number / len(rows):.1%}")
    rare = len(EMOTIONS) - sum(number >= RATIO_FROM for _, number in golds)
    yield Count(f"{modality}: emotions with fewer than {RATIO_FROM} gold labels", str(rare))
