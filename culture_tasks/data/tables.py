"""A table of a benchmark: where it is, what its rows are, and how large its release is; read, and checked.

:meth:`Table.rows` and :meth:`Table.check` see the same: a loading stops at the first problem that a check lists.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from culture_tasks.data.files import SUFFIXES, Rows, find, from_dataset, read_file
from culture_tasks.data.hub import is_downloaded, load_split
from culture_tasks.data.images import Images
from culture_tasks.data.reading import DataReading
from culture_tasks.data.rows import Row, checked, id_problems, or_raise
from culture_tasks.errors import CultureTasksError, DataError, DataUnavailableError

if TYPE_CHECKING:
    import datasets

    from culture_tasks.data.checking import Count
    from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

_SLACK = 0.01
"""Share of its rows by which a release may differ from its paper, as CulturalVQA's 2,378 do from the Hub's 2.37k."""


class Release(NamedTuple):
    """A table as its authors released it, to tell a user's own data from it; one on the Hub is the release."""

    rows: int
    questions: int = 0  # at least so many of its questions are among `released_questions`
    grows: bool = False  # whether a revision may have any number of further rows

    def difference(self, rows: Sequence[Any]) -> str:
        """Says how a user's rows differ from it; empty where they don't."""
        more = len(rows) > self.rows * (1 + _SLACK) and not self.grows
        if more or len(rows) < self.rows * (1 - _SLACK):
            return f"{len(rows):,} rows, and the release has {self.rows:,}{' or more' * self.grows}"
        digests = (hashlib.sha256(row.question.encode()).hexdigest()[:16] for row in rows if self.questions)
        is_known = sum(digest in released_questions() for digest in digests) >= self.questions
        return "" if is_known else "other questions than the release"


@cache
def released_questions() -> frozenset[str]:
    """Returns digests of questions that are known to be released: the first 16 digits of their SHA-256."""
    file = resources.files(__package__) / "released_questions.txt"
    return frozenset(file.read_text(encoding="utf-8").splitlines()[2:])


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Generic[Row]):
    """One table of a benchmark: the user's files of it, else the data set of the Hub."""

    model: type[Row]
    folder: str  # below the user's data folder, such as `care`, with its images
    stems: Sequence[str]
    """Names of the local file without suffix, preferred first. With a wildcard ``*``, all files that match are it."""
    hub: str | None = None  # name of the Hub data set; None if the data are available on request only
    config: str | None = None
    split: str = "test"
    additions: Sequence[str] = ()
    """Names of files that complement the Hub's data: a folder with one of them needn't hold the table."""
    root: Path | None = None  # folder that is read in place of the user's data folder, with its images
    aliases: Mapping[str, str] = field(default_factory=dict)  # other column names, each with its field
    unpack: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None  # makes a row's columns as it is read
    id: str = ""
    """Column of the rows' id, which must be different in each row; empty where rows have none. A JSON file may be an
    object of rows by their ids."""
    id_of: Callable[[Row], str | None] | None = None  # gives a row's id; by default the field of that name
    image_column: str | None = None  # holds images or the names of their files
    image_of: Callable[[Row, Path], str | None] = lambda row, _: getattr(row, "image", None)
    """Gives the name of a row's image file in a folder."""
    release: Release | None = None  # None where any data will do
    rules: Callable[[Rows[Row]], Iterable[str]] = lambda _: ()  # yields the problems between rows
    counts: Callable[[Sequence[Row]], Iterable[Count]] = lambda _: ()  # for a check

    @property
    def name(self) -> str:
        """The name of the data in messages and in the task table."""
        if self.hub is None:
            return f"local folder {self.folder}/"
        return f"{self.hub} ({self.config})" if self.config else self.hub

    def of_culture(self, root: Path, stem: str = "*", **changes: Any) -> Table[Row]:
        """Returns such a table of an own culture, by default the only one in the folder ``data`` of its folder."""
        own = {"folder": "data", "stems": (stem,), "hub": None, "config": None, "release": None}
        return replace(self, **{**own, "root": root, **changes})

    def rows(self, settings: Settings, *, images: set[Path] | None = None) -> Rows[Row]:
        """Reads the rows as a run needs them; ``images`` are files that were checked before, None where none is seen.

        Raises:
            DataError: For the first problem.
            DataUnavailableError: If there is no local file and the Hub can't be reached.
        """
        found: Rows[Any] = self.read(settings)
        rows = list(or_raise(self._rows_and_problems(found, settings, images)))
        ids = self._ids(rows)
        reading = found.reading
        if found.local and self.release and (difference := self.release.difference(rows)):
            reading |= DataReading(differences={Path(found.origin).name: difference})
        return replace(
            found,
            rows=rows,
            reading=reading,
            ids=[str(index) if name is None else name for index, name in enumerate(ids)],
            images=None if images is None else self._images(found, rows).column(),
        )

    def check(self, settings: Settings, images: set[Path]) -> tuple[list[Row], list[str]]:
        """Returns the valid rows, and all problems; raises DataError where the table can't be read."""
        found = list(self._rows_and_problems(self.read(settings), settings, images))
        return [row for row in found if not isinstance(row, str)], [row for row in found if isinstance(row, str)]

    def _rows_and_problems(
        self, found: Rows[Mapping[str, Any]], settings: Settings, images: set[Path] | None
    ) -> Generator[Row | str, None, None]:
        """Yields each row that is valid, and each problem of a row, between rows, or of an image."""
        rows: dict[int, Row] = {}
        for row in checked(found, self.model, self.aliases, settings):
            if isinstance(row, str):
                yield row
            else:
                rows[row[0]] = row[1]
                yield row[1]
        valid: Rows[Any] = found if len(rows) == len(found.rows) else found.part(list(rows))
        models = replace(valid, rows=list(rows.values()))
        if self.id:
            yield from id_problems(models, self._ids(models.rows), self.id)
        yield from self.rules(models)
        if images is not None and self.image_column:
            yield from self._images(models, models.rows).problems(settings.image_pixels, images)

    def _ids(self, rows: Sequence[Row]) -> list[str | None]:
        if not self.id:
            return [None] * len(rows)
        return list(map(self.id_of or attrgetter(self.id.lower()), rows))

    def _images(self, found: Rows[Any], rows: Sequence[Row]) -> Images:
        return Images(found, [self.image_of(row, found.folder) for row in rows])

    def read(self, settings: Settings) -> Rows[Mapping[str, Any]]:
        """Reads the rows, unchecked.

        Raises:
            DataError: If a file can't be used.
            DataUnavailableError: If there is no file and the Hub can't be reached.
        """
        if paths := self.files(settings):
            _log.info("reading %s", ", ".join(map(str, paths)))
            parts = [read_file(path, self.image_column, self.id) for path in paths]
            found = parts[0]
            if len(parts) > 1:
                rows = [row for part in parts for row in part.rows]
                places = [part.where(index) for part in parts for index in range(len(part.rows))]
                found = replace(found, origin=self.stems[0], rows=rows, places=places)
        else:
            self.refuse_lacking(settings)
            data, reading = self.download(settings)
            if len(data) == 0:
                raise DataError(f"{self.name}, split {self.split}: holds no rows.")
            found = replace(from_dataset(data, self.name, self.image_column, local=False), reading=reading)
        folder = self.root or (settings.data_folder or Path()) / self.folder
        return replace(found, folder=folder, rows=list(map(self.unpack, found.rows)) if self.unpack else found.rows)

    def download(self, settings: Settings, instead: str = "") -> tuple[datasets.Dataset, DataReading]:
        """Returns the data of the Hub, and their commit; DataUnavailableError says what to do ``instead``."""
        file = f"{self.folder}/{self.stems[0]}{SUFFIXES[0]} (or {', '.join(SUFFIXES[1:])})"
        if self.root:
            raise DataUnavailableError(f"{self.root}: holds no {file}. Put the file there.")
        instead = instead or f"Put {file} into the folder that CULTURE_TASKS_DATA names."
        if self.hub is None:
            raise DataUnavailableError(f"{self.folder}: these data are not on the Hub. {instead}")
        return load_split(self.hub, self.config, self.split, dict(settings.revisions).get(self.hub), instead)

    def files(self, settings: Settings) -> list[Path]:
        """Returns the user's files of the table; raises DataError if there are some that can't be used."""
        data_folder = self.root or settings.data_folder
        if data_folder is None:
            return []
        folder = data_folder / self.folder
        if not data_folder.is_dir() or (data_folder.name == self.folder and not folder.is_dir()):
            raise DataError(f"CULTURE_TASKS_DATA={data_folder}: no such folder with {self.folder}/ in it.")
        return find(folder, self.stems)

    def refuse_lacking(self, settings: Settings) -> None:
        """Raises DataUnavailableError where the benchmark's folder is there, but not the table, which the Hub has."""
        folder = (self.root or settings.data_folder or Path()) / self.folder
        if settings.data_folder and self.hub and folder.is_dir() and not find(folder, self.additions):
            raise DataUnavailableError(
                f"{folder}: holds no {self.stems[0]}{SUFFIXES[0]} (or {', '.join(SUFFIXES[1:])}). Put the file there, "
                f"or remove the folder to use {self.name} from the Hub."
            )


def availability(tables: Iterable[Table[Any]], settings: Settings) -> str:
    """Looks where the data of a task are now, without loading them and without a connection.

    It is ``local``, ``downloaded``, ``not downloaded``, ``missing`` or several of these; or why local data can't be
    used. A text after a colon says what to do.
    """

    def of(table: Table[Any]) -> str:
        if table.files(settings):
            return "local"
        table.refuse_lacking(settings)
        if table.hub is None:
            return f"missing: put it into {table.folder}/ of CULTURE_TASKS_DATA"
        revision = dict(settings.revisions).get(table.hub)
        return "downloaded" if is_downloaded(table.hub, table.config, table.split, revision) else "not downloaded"

    try:
        return " and ".join(dict.fromkeys(map(of, tables)))
    except (CultureTasksError, OSError) as error:
        return f"error: {error}"
