"""WorldCuisines as a benchmark: four types of questions, with options and without, in a small and a large set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Entry, Group, Picture, Prompt, Task
from culture_tasks.benchmarks.predictions import OffersPredictions, PublishedPredictions
from culture_tasks.benchmarks.worldcuisines.documents import (
    KNOWLEDGE_BASE,
    QUESTIONS,
    QuestionRow,
    load,
    misplaced,
    question_source,
    tables,
)
from culture_tasks.benchmarks.worldcuisines.scoring import FORMS
from culture_tasks.benchmarks.worldcuisines.vocabulary import CODES, LANGUAGES, SETS, TYPES, Format, SetName, group_name
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.images import broken_images
from culture_tasks.data.sources import folder_of
from culture_tasks.data.tables import RowTable

if TYPE_CHECKING:
    from culture_tasks.benchmarks.reporting import BenchmarkReport


class WorldCuisines(Benchmark, OffersPredictions):
    """WorldCuisines (Winata et al., 2025)."""

    name = "worldcuisines"
    title = "WorldCuisines"
    paper = "Winata et al., 2025"
    data = "Hub worldcuisines/vqa, images from worldcuisines/food-kb"
    made_from = ("Wikipedia", "Wikimedia Commons")

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group for each set and form of answer, with a task for each type of question."""
        return tuple(entry for set_name in SETS for form in FORMS for entry in _entries(set_name, form))

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions of both sets, and the user's own image files. The Hub's are checked by each run."""
        checks = [_check(set_name, config, data_folder) for set_name in SETS for config in ("task1", "task2")]
        return check_tables(self.name, data_folder, checks)

    def predictions(self, folder: Path) -> Sequence[PublishedPredictions]:
        """Returns the predictions on the small set in the authors' repository."""
        from culture_tasks.benchmarks.worldcuisines.predictions import predictions

        return predictions(folder)

    def write_questions(self, folder: Path, data_folder: Path) -> None:
        """Writes the questions of the small set, with blank images."""
        from culture_tasks.benchmarks.worldcuisines.predictions import write_questions

        write_questions(folder, data_folder)

    def report(self) -> BenchmarkReport:
        """Returns how it is reported."""
        from culture_tasks.benchmarks.worldcuisines.report import REPORT

        return REPORT


def _entries(set_name: SetName, form: Format) -> Iterator[Entry]:
    name = group_name(set_name, form)
    about = f"dishes and where they are from; {'options' if form == 'choices' else 'open answers'}, {set_name} set"
    title = f"{WorldCuisines.title}, {set_name} set, {'options' if form == 'choices' else 'open answers'}"
    metrics, score = FORMS[form]
    tasks = [
        Task(
            name=f"{name}_{each.name}",
            about=about,
            title=f"{title}: {each.title}",
            languages=CODES,
            metric=metrics[0].name,
            metrics=lambda: metrics,
            data=DataSet((question_source(set_name, each.config), KNOWLEDGE_BASE), partial(load, set_name, each, form)),
            prompt=lambda doc: Prompt((Picture(), doc["prompt"])),
            score=score,
            decoding=Decoding(max_tokens=50),
            shows_images=True,
            target=lambda doc: doc["answer"],
            note="Decoding: the authors' code.",
        )
        for each in TYPES
    ]
    yield Group(
        name=name,
        about=about,
        title=title,
        members=tuple(task.name for task in tasks),
        means=tuple(metric.name for metric in metrics),
        weight_by_size=False,  # as in the paper, each type weighs the same
    )
    yield from tasks


def _check(set_name: SetName, config: str, data_folder: Path | None) -> TableCheck[QuestionRow]:
    source = question_source(set_name, config)

    def problems(table: RowTable, rows: Mapping[int, QuestionRow]) -> Iterator[str]:
        yield from misplaced(table, rows, source)
        first = {row.image: index for index, row in reversed(list(rows.items())) if row.image}
        yield from broken_images(table.part(list(first.values())), list(first), folder_of(source, data_folder))

    def counts(rows: Sequence[QuestionRow]) -> Iterator[Count]:
        name = f"{set_name} set, {config}"
        yield Count(f"{name}: questions", str(len({row.qa_id for row in rows})), str(QUESTIONS[set_name, config]))
        yield Count(f"{name}: languages", str(len({row.lang for row in rows})), str(len(LANGUAGES)))
        yield Count(f"{name}: rows", str(len(rows)), str(QUESTIONS[set_name, config] * len(LANGUAGES)))

    return TableCheck(
        source=source, model=QuestionRow, tables=partial(tables, source), problems=problems, counts=counts
    )


BENCHMARK = WorldCuisines()
