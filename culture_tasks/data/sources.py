"""Where a benchmark's rows come from: the user's folder first, then the Hub."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culture_tasks.data.files import SUFFIXES, RowTable, files_below, first_match, from_dataset, read_file
from culture_tasks.data.hub import is_downloaded, load_split
from culture_tasks.data.reading import current
from culture_tasks.data.releases import ReleaseFacts
from culture_tasks.errors import CultureTasksError, DataError, DataUnavailableError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source:
    """Where one table of a benchmark comes from.

    Attributes:
        folder: Folder below the user's data folder, such as ``care``.
        stems: Names of the local file without suffix, preferred first, such as ``Arabic-test``; ``*`` is a wildcard.
        hub: Name of the Hub data set; None if the data are available on request only.
        config: Its configuration.
        split: Its split.
        image_column: Column that holds images.
        key: Column that the keys of a local JSON object fill, where that isn't a list of rows; empty for none.
        additions: Names without suffix of files that complement the Hub's data: a folder that holds only these (and
            images) doesn't replace the Hub.
        release: Facts of the table as its authors released it; None where any data will do.
        root: Folder that is read in place of the user's data folder, with its images; None for the user's.
    """

    folder: str
    stems: Sequence[str]
    hub: str | None
    config: str | None = None
    split: str = "test"
    image_column: str | None = None
    key: str = ""
    additions: Sequence[str] = ()
    release: ReleaseFacts | None = None
    root: Path | None = None

    @property
    def name(self) -> str:
        """The name of the data in messages and in the task table."""
        if self.hub is None:
            return f"local folder {self.folder}/"
        return f"{self.hub} ({self.config})" if self.config else self.hub


def local_file(source: Source, data_folder: Path | None) -> Path | None:
    """Returns the user's file for a source, or None if the user has no local data of this benchmark.

    Raises:
        DataError: If the data folder itself or the file in the benchmark's folder is missing, or two files match.
    """
    data_folder = source.root or data_folder
    if data_folder is None:
        return None
    if not data_folder.is_dir():
        raise DataError(f"CULTURE_TASKS_DATA={data_folder}: no such folder. Name an existing one, or unset it.")
    folder = data_folder / source.folder
    if not folder.is_dir():
        if data_folder.name == source.folder:
            raise DataError(
                f"CULTURE_TASKS_DATA={data_folder}: is the folder of one benchmark. Name the folder that holds it, "
                f"{data_folder.parent}."
            )
        return None
    files = {path.relative_to(folder).as_posix().lower(): path for path in files_below(folder)}
    if file := first_match(files, source.stems):
        return file
    if first_match(files, source.additions):
        return None
    instead = f", or remove the folder to use {source.name} from the Hub" if source.hub else ""
    raise DataUnavailableError(
        f"{folder}: holds no {source.stems[0]}{SUFFIXES[0]} (or {', '.join(SUFFIXES[1:])}). "
        f"Put the file there{instead}."
    )


def folder_of(source: Source, data_folder: Path | None) -> Path:
    """Returns the folder of the images of the user's file for a source; the current one for the Hub's data."""
    path = local_file(source, data_folder)
    return source.root or (path.parent if path else Path())


def addition(source: Source, data_folder: Path | None) -> Path | None:
    """Returns the user's file that complements a source, or None."""
    if data_folder is None:
        return None
    folder = data_folder / source.folder
    return first_match(
        {path.name.lower(): path for path in sorted(folder.glob("*")) if path.is_file()}, source.additions
    )


def read_source(source: Source, data_folder: Path | None) -> RowTable:
    """Reads a source from the user's folder if it is there, otherwise from the Hub.

    Raises:
        DataError: If a local file can't be used.
        DataUnavailableError: If there is no local file and the Hub can't be reached.
    """
    path = local_file(source, data_folder)
    if path is not None:
        _log.info("reading %s", path)
        return read_file(path, source.image_column, (source.key, ""))
    where = f"Put {source.folder}/{source.stems[0]}{SUFFIXES[0]} into a folder and name it with CULTURE_TASKS_DATA."
    if source.hub is None:
        raise DataUnavailableError(f"{source.folder}: these data are not on the Hub. {where}")
    data = load_split(source.hub, source.config, source.split, where)
    if len(data) == 0:
        raise DataError(f"{source.name}, split {source.split}: holds no rows.")
    return from_dataset(data, source.name, source.image_column, local=False)


def availability(sources: tuple[Any, ...], data_folder: Path | None) -> str:
    """Looks where the data of a task are now, without loading them and without a connection.

    It is ``local``, ``downloaded``, ``not downloaded``, ``missing`` or several of these; or why local data can't be
    used. A text after a colon says what to do.
    """
    try:
        return " and ".join(dict.fromkeys(_availability_of(source, data_folder) for source in sources))
    except CultureTasksError as error:
        return f"error: {error}"


def _availability_of(source: Any, data_folder: Path | None) -> str:
    if isinstance(source, Source):
        path = local_file(source, data_folder)
    else:
        path = next(iter(source.files(current().settings.model_copy(update={"data": data_folder}))), None)
    if path is None and source.hub is None:
        return f"missing: put it into {source.folder}/ of CULTURE_TASKS_DATA"
    if path is None:
        return "downloaded" if is_downloaded(str(source.hub), source.config, source.split) else "not downloaded"
    try:
        with path.open("rb") as file:
            beginning = file.read(200).lstrip()
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}).") from None
    if not beginning:
        raise DataError(f"{path}: is empty.")
    if beginning.startswith(b"version https://git-lfs"):
        raise DataError(f"{path}: is a pointer of Git LFS. Fetch the file with `git lfs pull`.")
    return "local"
