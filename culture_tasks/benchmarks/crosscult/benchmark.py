"""CrossCult-KIBench as a benchmark: its tasks, one for each role, and their groups.

A chain's steps are tasks, and not documents of one task: with a document for each chain in each task, in
the same order, everything about a chain stays on one rank, and ``--limit`` keeps whole chains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated

from culture_tasks.benchmarks.crosscult.documents import Release, load, training_cases
from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition, Order, Partition
from culture_tasks.benchmarks.crosscult.raw_cases import table_of
from culture_tasks.benchmarks.crosscult.rubrics import RUBRICS
from culture_tasks.benchmarks.crosscult.scoring import JUDGED, OVERLAP, Insertions, metrics, score
from culture_tasks.benchmarks.crosscult.vocabulary import SEQUENTIAL_ROLES, SINGLE_ROLES, Role, Setting
from culture_tasks.benchmarks.interface import (
    HARNESSES,
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Entry,
    Group,
    Harness,
    Picture,
    Prompt,
    Task,
)
from culture_tasks.benchmarks.own_culture import FILE, CultureBenchmark, CultureFile, LikeBenchmark, Line, Ratings
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.benchmarks.training_cases import OffersTraining, TrainingCases
from culture_tasks.data.rows import one_of
from culture_tasks.errors import DataError
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.settings import Settings

_SETTINGS: Mapping[Setting, tuple[str, str]] = {
    "diagnostic": ("nothing inserted", "each partition's question, nothing inserted (Figure 1b)"),
    "single": ("one insertion", "four roles after one insertion; their mean is Overall (Table 2)"),
    "sequential": (
        "a chain of insertions",
        "three roles of each step after a chain of insertions; their mean is Overall (Table 3)",
    ),
    "retention": (
        "retention",
        "reliability of what was inserted, after each step of a chain (Figures 6, 11-13); no mean in the paper",
    ),
}
"""Title of each setting, and its description."""

_INSERTING: tuple[Harness, ...] = ("lmms_eval",)  # it has a model that inserts


class InsertionBenchmark(Benchmark, OffersTraining):
    """An edition of CrossCult-KIBench."""

    edition: Edition
    judge = "Figure 10, gpt-5.4-mini"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the groups and then the tasks.

        The means of ``…_single`` and ``…_sequential`` over their tasks, each weighing the same, are Overall (equations
        8 and 12).
        """
        codes = self.edition.codes
        single = [
            self._task("single", f"_{role}", f": {_words(role)}", codes, partial(Release.single, role=role))
            for role in SINGLE_ROLES
        ]
        groups = [self._group("single", "", "", single)]
        tasks = [self._task("diagnostic", "", "", codes, Release.diagnostic), *single]
        chains: tuple[tuple[Setting, list[tuple[str, str, list[Task]]]], ...] = (
            ("sequential", [self._steps(role) for role in SEQUENTIAL_ROLES]),
            ("retention", [self._retention(order) for order in self.edition.orders]),
        )
        for setting, parts in chains:
            below = [self._group(setting, *part) for part in parts]
            groups += [self._group(setting, "", "", below), *below]
            tasks += [task for _, _, members in parts for task in members]
        return (*groups, *tasks)

    def _steps(self, role: Role) -> tuple[str, str, list[Task]]:
        """Returns the tasks of a role, one for each step of a chain, with the ends of their group's name and title."""
        ending, title = f"_{role}", f": {_words(role)}"
        tasks = []
        for code in self.edition.orders[0]:
            build = partial(Release.sequential, role=role, partition=code)
            words = f"{title}, {self.edition[code].language}"
            tasks.append(self._task("sequential", f"{ending}_{code}", words, (code,), build))
        return ending, title, tasks

    def _retention(self, order: Order) -> tuple[str, str, list[Task]]:
        """Returns the tasks of an order of insertions: after each step, one for each partition that is inserted."""
        ending, title = f"_{'_'.join(order)}", f" in the order {self.edition.in_order(order)}"
        tasks = []
        for after in range(1, len(order) + 1):
            for code in order[:after]:
                build = partial(Release.retention, order=order, partition=code, after=after)
                words = f"{title}: {self.edition[code].language} after step {after}"
                tasks.append(self._task("retention", f"{ending}_{code}_after_{after}", words, (code,), build))
        return ending, title, tasks

    def _group(self, setting: Setting, ending: str, title: str, members: Iterable[Task | Group]) -> Group:
        return Group(
            name=f"{self.edition.name}_{setting}{ending}",
            about=_SETTINGS[setting][1],
            title=f"{self.edition.title}, {_SETTINGS[setting][0]}{title}",
            members=tuple(member.name for member in members),
            means=(OVERLAP, JUDGED),
            weight_by_size=False,
            harnesses=_INSERTING,
        )

    def _task(
        self,
        setting: Setting,
        ending: str,
        title: str,
        languages: tuple[str, ...],
        build: Callable[[Release], Iterable[Doc]],
    ) -> Task:
        edition = self.edition
        return Task(
            name=edition.diagnostic if setting == "diagnostic" else f"{edition.name}_{setting}{ending}",
            about=_SETTINGS[setting][1],
            title=f"{edition.title}, {_SETTINGS[setting][0]}{title}",
            languages=languages,
            metric=JUDGED,
            metrics=partial(metrics, setting, edition),
            data=DataSet((table_of(edition),), partial(load, build, edition)),
            prompt=partial(_prompt, edition),
            score=partial(score, edition=edition),
            decoding=Decoding(max_tokens=64),  # Appendix E.2
            shows_images=True,
            target=lambda doc: doc["reference"],
            responses=Insertions,
            harnesses=HARNESSES if setting == "diagnostic" else _INSERTING,
        )

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubric of Figure 10."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.crosscult.report import report_of

        return report_of(self.edition)

    def training_cases(self, settings: Settings, limit: int | None = None) -> TrainingCases:
        """Loads the single-insert training cases."""
        return training_cases(settings, self.edition, limit)


class CrossCultFile(CultureFile):
    """What ``culture.toml`` says of a culture like CrossCult-KIBench."""

    system: Line  # the system prompt in its language (Figure 9)
    # the paper's partitions that the cases have beside it; one in its own language doesn't count
    contrasts: Sequence[Annotated[str, one_of(PAPER.codes)]] = PAPER.codes


class CrossCultCulture(CultureBenchmark, InsertionBenchmark):
    """Cases with a further partition, the user's, which is what is inserted, and the last of a chain."""

    file_model = CrossCultFile
    ratings = Ratings(level="nominal")  # verdicts on answers, of which the paper has none

    def __init__(self, folder: Path, file: CultureFile, like: Benchmark) -> None:
        from culture_tasks.vocabulary import language

        super().__init__(folder, file, like)
        assert isinstance(file, CrossCultFile)
        contrasts = [code for code in dict.fromkeys(file.contrasts) if code != file.language]
        if not contrasts:
            found = f"found {list(file.contrasts)!r}. Expected a partition in another language than {file.language!r}"
            raise DataError(f"{folder / FILE}, key 'contrasts': {found}. Correct it.")
        own = Partition(file.language, language(file.language).name, file.place, file.name, file.system)
        self.edition = Edition(
            name=self.name,
            title=self.title,
            partitions=(*(PAPER[code] for code in contrasts), own),
            targets=(file.language,),
            orders=((*contrasts, file.language),),
            diagnostic=self.name,
            root=self.folder,
        )


class CrossCult(InsertionBenchmark, LikeBenchmark):
    """CrossCult-KIBench (2026)."""

    edition = PAPER
    name, title = PAPER.name, PAPER.title
    paper = "2026"
    data = f"Hub {table_of(PAPER).name}"
    made_from = ("HaGRID", "Fashionpedia", "ChineseFoodNet", "VireoFood172", "SVHN", "CCPD", "Open Images V7")
    culture = CrossCultCulture


def _words(role: Role) -> str:
    return role.replace("cross_", "cross-").replace("_", " ")


def _prompt(edition: Edition, doc: Doc) -> Prompt:
    """Returns the prompt for a request: image and question, with the system prompt of its language (Figure 9)."""
    return Prompt((Picture(), doc["question"]), system=edition[doc["language"]].system_prompt)


BENCHMARK = CrossCult()
