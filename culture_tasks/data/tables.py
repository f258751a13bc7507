"""A table of a benchmark: where it is, what its rows are, and what is known of its release; read, and checked.

:meth:`Table.rows` and :meth:`Table.problems` see the same: a loading stops at the first problem that a check lists.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from culture_tasks.data.files import (
    SUFFIXES,
    RowTable,
    files_below,
    find,
    from_dataset,
    read_file,
)
from culture_tasks.data.hub import is_downloaded, load_split
from culture_tasks.data.images import column_of, image_problems
from culture_tasks.data.reading import DataReading
from culture_tasks.data.rows import Row, checked, fingerprint, id_problems, or_raise, split
from culture_tasks.errors import CultureTasksError, DataError, DataUnavailableError

if TYPE_CHECKING:
    import datasets

    from culture_tasks.data.checking import Count
    from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

_SLACK = 0.01
"""Share of its rows by which a release may differ from its paper, as CulturalVQA's 2,378 do from the Hub's 2.37k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What is known of a table as its authors released it, to tell a user's own data from it.

    No whole release is at hand, so its fingerprint isn't known: the number of rows, some of the questions, and the
    culture, language or country that each row names decide. A table on the Hub is the release, whatever its revision.

    Attributes:
        rows: Number of its rows.
        grows: Whether a revision may have any number of further rows.
        questions: At least so many of its questions are among :func:`released_questions`.
        culture: The field that names the culture, language or country of a row; empty where none does.
        fits: Whether a row whose field has this value belongs to the task.
        expected: The values that belong to the task, in words.
        per_culture: Whether there are so many rows of each culture.
    """

    rows: int
    grows: bool = False
    questions: int = 0
    culture: str = ""
    fits: Callable[[str], bool] = lambda _: True
    expected: str = ""
    per_culture: bool = False


@cache
def released_questions() -> frozenset[str]:
    """Returns digests of questions that are known to be released: the first 16 digits of their SHA-256."""
    file = resources.files(__package__) / "released_questions.txt"
    return frozenset(file.read_text(encoding="utf-8").splitlines()[2:])


@dataclass(frozen=True)
class Rows(Generic[Row]):
    """The valid rows of a table.

    Attributes:
        table: The same rows as they were read, with their origin.
        rows: The rows.
        ids: Their ids; their numbers, from 0, where they have none.
        images: Their images, not decoded, as a column ``image``; None where they weren't asked for.
    """

    table: RowTable
    rows: Sequence[Row]
    ids: Sequence[str] = ()
    images: datasets.Dataset | None = None

    def __iter__(self) -> Iterator[tuple[str, Row]]:
        """Yields the rows with their ids."""
        return zip(self.ids, self.rows, strict=True)

    @property
    def reading(self) -> DataReading:
        """What they were read from."""
        return self.table.reading

    def where(self, index: int) -> str:
        """Returns the origin and the number of a row, for messages."""
        return self.table.where(index)

    def fingerprint(self, *, include: set[str] | None = None, exclude: set[str] | None = None) -> str:
        """Returns the fingerprint of the rows, of the fields to ``include``, or all but those to ``exclude``."""
        return fingerprint(row.model_dump(include=include, exclude=exclude) for row in self.rows)

    def require(self, advice: str, **columns: str) -> None:
        """Raises DataError for the first row without a value of one of some fields, by which the user knows them."""
        for index, row in enumerate(self.rows):
            for name, column in columns.items():
                if not getattr(row, name):
                    raise DataError(f"{self.where(index)}, field {column!r}: found nothing. {advice}")


def _nothing(*_: object) -> Iterable[Any]:
    return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Generic[Row]):
    """One table of a benchmark.

    Attributes:
        model: The pydantic model of a row.
        folder: Folder below the user's data folder, such as ``care``.
        stems: Names of the local file without suffix, preferred first, such as ``Arabic-test``; ``*`` is a wildcard.
        parts: Such names of a table in several files: all that match in the folder of the first are read.
        hub: Name of the Hub data set; None if the data are available on request only.
        config: Its configuration.
        split: Its split.
        additions: Names without suffix of files that complement the Hub's data: a folder that holds only these (and
            images) doesn't replace the Hub.
        root: Folder that is read in place of the user's data folder, with its images; None for the user's.
        pairs: Columns that the keys and the values of a local JSON object fill, where that isn't a list of rows; the
            second is empty where its values are rows.
        aliases: Other column names, each with its field.
        unpack: Makes the columns of a row as it is read.
        id: Name of the rows' id in messages, which must be different in each row; empty where rows have none.
        id_of: Gives a row's id.
        image_column: Column that holds images or the names of their files.
        image_of: Gives the name of a row's image file.
        images_beside: Whether image files lie beside the table's file, not in ``folder``.
        release: What is known of its release; None where any data will do.
        rules: Yields the problems between rows.
        beside: Yields the problems of files beside it, which a check lists and a loading finds by itself.
        counts: Counts the rows for a check.
    """

    model: type[Row]
    folder: str
    stems: Sequence[str]
    parts: Sequence[str] = ()
    hub: str | None = None
    config: str | None = None
    split: str = "test"
    additions: Sequence[str] = ()
    root: Path | None = None
    pairs: tuple[str, str] = ("", "")
    aliases: Mapping[str, str] = field(default_factory=dict)
    unpack: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    id: str = ""
    id_of: Callable[[Row], str | None] = attrgetter("id")
    image_column: str | None = None
    image_of: Callable[[Row, Path], str | None] = lambda row, _: getattr(row, "image", None)
    images_beside: bool = True
    release: Release | None = None
    rules: Callable[[Rows[Row]], Iterable[str]] = _nothing
    beside: Callable[[Rows[Row], Settings], Iterable[str]] = _nothing
    counts: Callable[[Sequence[Row]], Iterable[Count]] = _nothing

    @property
    def name(self) -> str:
        """The name of the data in messages and in the task table."""
        if self.hub is None:
            return f"local folder {self.folder}/"
        return f"{self.hub} ({self.config})" if self.config else self.hub

    def of_culture(self, root: Path, stem: str = "*", **changes: Any) -> Table[Row]:
        """Returns such a table of an own culture, by default the only one in the folder ``data`` of its folder."""
        own = {"folder": "data", "stems": (stem,), "hub": None, "config": None, "additions": (), "release": None}
        return replace(self, **{**own, "root": root, "images_beside": True, **changes})

    def rows(self, settings: Settings, *, images: set[Path] | None = None) -> Rows[Row]:
        """Reads the rows as a run needs them.

        Args:
            settings: The user's settings.
            images: Image files that were checked before, to which the table's are added; None where no model sees any.

        Raises:
            DataError: For the first problem.
            DataUnavailableError: If there is no local file and the Hub can't be reached.
        """
        table = _joined(self.stems[0], self.read(settings))
        rows = list(or_raise(self._walk(table, settings, images)))
        ids = [self.id_of(row) if self.id else None for row in rows]
        column = None
        if images is not None:
            column = column_of(table, [self.image_of(row, table.folder) for row in rows], table.folder)
        return Rows(
            table=replace(table, reading=table.reading | DataReading(differences=self._differences(table, rows))),
            rows=rows,
            ids=[str(index) if name is None else name for index, name in enumerate(ids)],
            images=column,
        )

    def read(self, settings: Settings) -> list[RowTable]:
        """Reads the table, unchecked: a table for each of its files.

        The user's files are read if they are there, else the Hub is.

        Raises:
            DataError: If a file can't be used.
            DataUnavailableError: If there is no file and the Hub can't be reached.
        """
        paths, reading = self.files(settings), DataReading()
        if paths:
            _log.info("reading %s", ", ".join(map(str, paths)))
            tables = [read_file(path, self.image_column, self.pairs) for path in paths]
        else:
            where = f"Put {self.folder}/{self.stems[0]}{SUFFIXES[0]} into a folder and name it with CULTURE_TASKS_DATA."
            data, reading = self.download(settings, where)
            if len(data) == 0:
                raise DataError(f"{self.name}, split {self.split}: holds no rows.")
            tables = [from_dataset(data, self.name, self.image_column, local=False)]
        beside = self.root or (paths[0].parent if paths else Path())
        folder = beside if self.images_beside else (settings.data_folder or Path()) / self.folder
        tables = [replace(table, folder=folder, reading=reading) for table in tables]
        if self.unpack:
            tables = [replace(table, rows=list(map(self.unpack, table.rows))) for table in tables]
        return tables

    def download(self, settings: Settings, otherwise: str) -> tuple[datasets.Dataset, DataReading]:
        """Returns the data of the Hub, and their commit.

        Raises:
            DataUnavailableError: If neither the Hub nor its cache has them; ``otherwise`` says what to do instead.
        """
        if self.hub is None:
            raise DataUnavailableError(f"{self.folder}: these data are not on the Hub. {otherwise}")
        revision = dict(settings.revisions).get(self.hub)
        data, commit = load_split(self.hub, self.config, self.split, revision, otherwise)
        return data, DataReading(commits={self.hub: commit})

    def files(self, settings: Settings) -> list[Path]:
        """Returns the user's files of the table; none where the user has no local data of this benchmark.

        Raises:
            DataError: If the data folder itself or the file in the benchmark's folder is missing, or two files match.
        """
        data_folder = self.root or settings.data_folder
        if data_folder is None:
            return []
        if not data_folder.is_dir():
            raise DataError(f"CULTURE_TASKS_DATA={data_folder}: no such folder. Name an existing one, or unset it.")
        folder = data_folder / self.folder
        if not folder.is_dir():
            if data_folder.name == self.folder:
                raise DataError(
                    f"CULTURE_TASKS_DATA={data_folder}: is the folder of one benchmark. Name the folder that holds "
                    f"it, {data_folder.parent}."
                )
            return []
        files = {path.relative_to(folder).as_posix().lower(): path for path in files_below(folder)}
        found = find(files, self.stems)
        if len(found) > 1:
            raise DataError(f"{found[0].parent}: {found[0].name} and {found[1].name} both match. Keep one of them.")
        parts = [] if found else find(files, self.parts)
        found += [path for path in parts if (path.parent, path.suffix) == (parts[0].parent, parts[0].suffix)]
        if found or find(files, self.additions):
            return found
        instead = f", or remove the folder to use {self.name} from the Hub" if self.hub else ""
        raise DataUnavailableError(
            f"{folder}: holds no {self.stems[0]}{SUFFIXES[0]} (or {', '.join(SUFFIXES[1:])}). "
            f"Put the file there{instead}."
        )

    def check(self, settings: Settings, images: set[Path]) -> tuple[list[Row], list[str]]:
        """Returns the valid rows, and all problems; raises DataError where the table can't be read."""
        table = _joined(self.stems[0], self.read(settings))
        return split(self._walk(table, settings, images, everything=True))

    def _walk(
        self, table: RowTable, settings: Settings, images: set[Path] | None, *, everything: bool = False
    ) -> Generator[Row | str, None, None]:
        """Yields each row that is valid, and each problem of a row, between rows, or of an image."""
        rows: list[Row] = []
        indices: list[int] = []
        for row in checked(table, self.model, self.aliases, settings):
            if isinstance(row, str):
                yield row
            else:
                indices.append(row[0])
                rows.append(row[1])
                yield row[1]
        found = Rows(table if len(rows) == len(table.rows) else table.part(indices), rows)
        if self.id:
            yield from id_problems(found.table, list(map(self.id_of, rows)), self.id)
        for index in self._foreign(found.table, rows) if settings.other_cultures != "allow" else ():
            assert self.release is not None
            yield (
                f"{found.where(index)}, field {self.release.culture!r}: found "
                f"{getattr(rows[index], self.release.culture)!r:.80}. Expected {self.release.expected}. Remove "
                "the row, or set CULTURE_TASKS_OTHER_CULTURES=allow to run it, marked as own data."
            )
        yield from self.rules(found)
        if everything:
            yield from self.beside(found, settings)
        if images is not None and self.image_column:
            folder = found.table.folder
            names = [self.image_of(row, folder) for row in rows]
            yield from image_problems(found.table, names, folder, settings.image_pixels, images)

    def _foreign(self, table: RowTable, rows: Sequence[Row]) -> list[int]:
        """Returns the places of a user's rows of another culture than their task's."""
        release = self.release
        if release is None or not release.culture or not table.local:
            return []
        values = [getattr(row, release.culture) for row in rows]
        return [index for index, value in enumerate(values) if value is not None and not release.fits(str(value))]

    def _differences(self, table: RowTable, rows: Sequence[Row]) -> Mapping[str, str]:
        """Says how a user's rows differ from the release, by the name of their file; nothing where they don't."""
        release, differences = self.release, []
        if release is None or not table.local:
            return {}
        if count := len(self._foreign(table, rows)):
            differences.append(f"{count:,} {'row' if count == 1 else 'rows'} of another culture")
        cultures = {getattr(row, release.culture) for row in rows} if release.per_culture else {""}
        expected = release.rows * len(cultures)
        more = len(rows) > expected * (1 + _SLACK) and not release.grows
        if more or len(rows) < expected * (1 - _SLACK):
            differences.append(f"{len(rows):,} rows, and the release has {expected:,}{' or more' * release.grows}")
        elif release.questions:
            texts = (str(vars(row)["question"]) for row in rows)
            digests = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
            if sum(digest in released_questions() for digest in digests) < release.questions:
                differences.append("other questions than the release")
        return {Path(table.origin).name: "; ".join(differences)} if differences else {}


def _joined(origin: str, tables: Sequence[RowTable]) -> RowTable:
    """Returns the rows of a table's files as one."""
    if len(tables) == 1:
        return tables[0]
    places = [table.where(index) for table in tables for index in range(len(table.rows))]
    rows = [row for table in tables for row in table.rows]
    return replace(tables[0], origin=origin, rows=rows, places=places)


def availability(tables: Iterable[Table[Any]], settings: Settings) -> str:
    """Looks where the data of a task are now, without loading them and without a connection.

    It is ``local``, ``downloaded``, ``not downloaded``, ``missing`` or several of these; or why local data can't be
    used. A text after a colon says what to do.
    """
    try:
        return " and ".join(dict.fromkeys(_availability(table, settings) for table in tables))
    except (CultureTasksError, OSError) as error:
        return f"error: {error}"


def _availability(table: Table[Any], settings: Settings) -> str:
    paths = table.files(settings)
    for path in paths:
        with path.open("rb") as file:
            beginning = file.read(200).lstrip()
        if not beginning:
            raise DataError(f"{path}: is empty.")
        if beginning.startswith(b"version https://git-lfs"):
            raise DataError(f"{path}: is a pointer of Git LFS. Fetch the file with `git lfs pull`.")
    if paths:
        return "local"
    if table.hub is None:
        return f"missing: put it into {table.folder}/ of CULTURE_TASKS_DATA"
    revision = dict(settings.revisions).get(table.hub)
    return "downloaded" if is_downloaded(table.hub, table.config, table.split, revision) else "not downloaded"
