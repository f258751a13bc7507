"""A culture as a folder: data of a culture that no benchmark has, asked and graded as the benchmark that it is like.

``culture.toml`` says what it is, ``data`` has tables in the benchmark's own columns, ``images`` their images, and
``ratings.csv`` what people rated or labelled. Nothing in the folder is run, and no file outside of it is read.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, create_model

from culture_tasks import __version__
from culture_tasks.benchmarks.interface import Benchmark
from culture_tasks.benchmarks.reporting import Groups
from culture_tasks.data.checking import Count, DataReport
from culture_tasks.data.files import Rows
from culture_tasks.data.rows import Identifier, Label, TableRow, one_of, validated
from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError, nearest
from culture_tasks.settings import Settings, user_cache_folder

if TYPE_CHECKING:
    from culture_tasks.judges.rubric.rubrics import Rubric
    from culture_tasks.metrics.rater_agreement import Level, Statistic

FILE, DATA, IMAGES, RATINGS = "culture.toml", "data", "images", "ratings.csv"
"""The parts of a culture's folder; nothing else in it is read."""

_MOST_BYTES = {FILE: 20_000, IMAGES: 50_000_000, DATA: 200_000_000, RATINGS: 200_000_000}
_JOINERS = "\u200c\u200d"  # within words of Persian, Sinhala and other languages


def _one_line(text: str) -> str:
    """Refuses line breaks, control characters and marks that change the direction of writing."""
    if not all(mark.isprintable() or mark in _JOINERS or unicodedata.category(mark) == "Zs" for mark in text):
        raise ValueError("Expected one line of visible characters")
    return text


def _a_code(kind: str, example: str) -> AfterValidator:
    def check(code: str) -> str:
        from culture_tasks import vocabulary

        try:
            getattr(vocabulary, kind)(code)
        except LookupError:
            raise ValueError(f"Expected the code of a {kind}, such as {example}") from None
        return code

    return AfterValidator(check)


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_one_line)]


class CultureFile(BaseModel):
    """What ``culture.toml`` says of every culture; a benchmark adds further keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,40}$")]
    title: Line
    like: str
    language: Annotated[str, _a_code("language", "'ko' (ISO 639)")]
    place: Annotated[str, _a_code("place", "'KR' (ISO 3166)")]


class _RatingRow(TableRow):
    item: Identifier
    person: Identifier


class AgreementRow(NamedTuple):
    """Agreement of people: the measure, whose it is, on how many items, and its value; NaN with the reason."""

    measure: str
    people: str
    n: int
    value: float
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Ratings:
    """What people rate or label of a culture, and how their agreement is told."""

    level: Level  # of Krippendorff's alpha
    scale: tuple[int, int] | None = None  # lowest and highest `rating`; None where people give a `label`
    labels: Collection[str] = ()  # empty for any
    measures: Mapping[str, Statistic | Callable[[Sequence[Any], Sequence[Any]], float]] = field(default_factory=dict)
    """Measures of the agreement of two people, by their names: a statistic, or a function of both's values."""

    def read(self, folder: Path, settings: Settings) -> tuple[Mapping[tuple[str, str], Any], list[str]]:
        """Returns the ratings or labels in a culture's folder by person and item, and the problems of all rows."""
        path, column = folder / RATINGS, "rating" if self.scale else "label"
        if not path.is_file():
            raise DataError(f"{path}: no such file. Expected the columns item, person and {column}.")
        kind: Any = Annotated[Label, one_of(self.labels)] if self.labels else Label
        if self.scale:
            kind = Annotated[float, Field(ge=self.scale[0], le=self.scale[1])]
        columns: dict[str, Any] = {column: (kind, ...)}
        table = Table(
            model=create_model("RatingRow", __base__=_RatingRow, **columns),
            folder="",
            stems=(path.stem,),
            root=folder,
            id="item",
            id_of=lambda row: f"{row.item} of {row.person}",
        )
        rows, problems = table.check(settings, set())
        return {(row.person, row.item): getattr(row, column) for row in rows}, problems

    def agreement(self, values: Mapping[tuple[str, str], Any]) -> Iterator[AgreementRow]:
        """Yields Krippendorff's alpha of all people, and each measure of each pair of them and its mean over pairs."""
        from culture_tasks.metrics.rater_agreement import krippendorff_alpha, statistics

        people, items = (sorted(set(names)) for names in zip(*values, strict=True))
        codes = {value: value if self.scale else float(code) for code, value in enumerate(sorted(set(values.values())))}
        table = [[codes.get(values.get((person, item)), math.nan) for item in items] for person in people]
        alpha = krippendorff_alpha(table, self.level)
        yield AgreementRow(f"Krippendorff's alpha ({self.level})", "all", alpha.n, alpha.value, alpha.reason or "")
        for name, measure in self.measures.items():
            pairs = []
            for pair in combinations(people, 2):
                both = [item for item in items if all((person, item) in values for person in pair)]
                first, second = ([values[person, item] for item in both] for person in pair)
                value = math.nan
                if both:
                    value = measure(first, second) if callable(measure) else statistics(first, second)[measure].value
                reason = "" if math.isfinite(value) else "too few items, or too much alike"
                pairs.append(AgreementRow(name, " and ".join(pair), len(both), value, reason))
            defined = [row for row in pairs if math.isfinite(row.value)]
            if len(defined) > 1:
                mean = sum(row.value for row in defined) / len(defined)
                yield AgreementRow(name, f"mean of {len(defined)} pairs", sum(row.n for row in defined), mean)
            yield from [row for row in pairs if row.n] or [
                AgreementRow(name, "all", 0, math.nan, "no item of two people")
            ]


class CultureBenchmark(Benchmark):
    """The benchmark of a culture in a folder, graded as the one that it is like, without published numbers."""

    data = "own culture"
    file_model: type[CultureFile] = CultureFile
    ratings: Ratings
    task_files: Path  # in the user's cache: they follow from culture.toml and this package alone

    def __init__(self, folder: Path, file: CultureFile, like: Benchmark) -> None:
        self.folder, self.file, self.like = folder, file, like
        self.name, self.title = f"{like.name}_{file.name}", f"{like.title}, {file.title}"
        self.paper, self.judge = f"made like {like.paper}", like.judge
        digest = hashlib.sha256(f"{__version__} {file.model_dump_json()}".encode()).hexdigest()
        self.task_files = user_cache_folder() / "tasks" / f"{self.name}-{digest[:16]}"
        if self.culture_field:
            group = file.language if self.culture_field == "language" else file.name
            own = Groups({group: file.title}, places={group: file.place})
            self.groups = {**self.groups, self.culture_field: own}

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of the benchmark that it is like."""
        return self.like.rubrics()

    def check(self, settings: Settings) -> DataReport:
        """Checks its tables, images and ratings."""
        report = super().check(settings)
        if (self.folder / RATINGS).exists():
            try:
                values, problems = self.ratings.read(self.folder, settings)
            except DataError as error:
                values, problems = {}, str(error).split("\n")
            report.counts.append(Count(RATINGS, str(len(values))))
            report.problems += problems
        return report


class LikeBenchmark(Benchmark):
    """A benchmark that grades further cultures, too; ``culture`` is the class of their benchmarks."""

    culture: type[CultureBenchmark]


def read_culture(folder: Path, likes: Mapping[str, LikeBenchmark]) -> CultureBenchmark:
    """Returns the benchmark of the culture in a folder, made like one of some benchmarks.

    Raises DataError for the first problem of ``culture.toml``, or with every file that isn't read.
    """
    folder = folder.resolve()
    path = folder / FILE
    if not path.is_file():
        raise DataError(f"{folder}: holds no {FILE}. Expected the folder of a culture: docs/own_culture.md shows one.")
    if problems := list(_unsafe_files(folder)):
        raise DataError("\n".join(problems))
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not TOML in UTF-8 ({error!s:.200}). Correct it there.") from None
    if (like := str(content.get("like"))) not in likes:
        expected = f"Expected one of {', '.join(sorted(likes))}. Correct it."
        raise DataError(f"{path}, field 'like': found {like!r:.80}.{nearest(like, likes)} {expected}")
    culture = likes[like].culture
    (file,) = validated(Rows(str(path), [content], places=[str(path)]), culture.file_model)
    return culture(folder, file, likes[like])


def _unsafe_files(folder: Path) -> Iterator[str]:
    """Yields the files of a culture that lead out of its folder, are no files, or are larger than any should be."""
    for part in (FILE, DATA, IMAGES, RATINGS):
        most = _MOST_BYTES[part]
        below = () if (folder / part).is_symlink() else sorted((folder / part).rglob("*"))
        for path in (folder / part, *below):
            if path.is_symlink():
                yield f"{path}: a symbolic link. Expected a file of the culture. Put the file itself there."
            elif path.exists() and not path.is_file() and not path.is_dir():
                yield f"{path}: neither a file nor a folder. Remove it."
            elif path.is_file() and path.stat().st_size > most:
                yield f"{path}: {path.stat().st_size:,} bytes. Expected {most:,} at most. Make it smaller."
            elif part == DATA and path.suffix.lower() == ".parquet":
                yield f"{path}: a Parquet file. Expected .csv, .jsonl, .json. Save the table as one of these."
