"""Where a benchmark's rows come from: the user's folder first, then the Hub."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culture_tasks.data.tables import SUFFIXES, Table, from_dataset, read_file
from culture_tasks.errors import DataError, DataUnavailableError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source:
    """Where one table of a benchmark is to be had.

    Attributes:
        folder: Folder below the user's data folder, such as ``care``.
        stems: Names of the local file without ending, best first, such as ``Arabic-test``; ``*`` stands for anything.
        hub: Name of the Hub data set; None where the data come by request alone.
        config: Its configuration.
        split: Its split.
        image_column: Column that holds images.
        additions: Names without ending of files that add to the Hub's data: a folder that holds nothing but these (and
            images) doesn't stand in for the Hub.
    """

    folder: str
    stems: Sequence[str]
    hub: str | None
    config: str | None = None
    split: str = "test"
    image_column: str | None = None
    additions: Sequence[str] = ()

    @property
    def name(self) -> str:
        """What the data are called in messages and in the task table."""
        hub = "" if self.hub is None else f"{self.hub}{f' ({self.config})' if self.config else ''}"
        return hub or f"local folder {self.folder}/"


def local_file(source: Source, data_folder: Path | None) -> Path | None:
    """Returns the user's file for a source, or None where the user keeps no data of this benchmark.

    Raises:
        DataError: If the data folder itself is missing, or two files fit.
        DataUnavailableError: If the data folder has a folder for this benchmark without the file.
    """
    if data_folder is None:
        return None
    if not data_folder.is_dir():
        raise DataError(f"CULTURE_TASKS_DATA={data_folder}: no such folder. Name an existing one, or unset it.")
    folder = data_folder / source.folder
    if not folder.is_dir():
        if data_folder.name == source.folder:
            raise DataError(
                f"CULTURE_TASKS_DATA={data_folder}: names the folder of one benchmark. Name the folder that holds it, "
                f"{data_folder.parent}."
            )
        return None
    files = {path.relative_to(folder).as_posix().lower(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    if found := _first(files, source.stems):
        return found
    if _first(files, source.additions):
        return None
    instead = f", or take the folder away to use the Hub's {source.name}" if source.hub else ""
    raise DataUnavailableError(
        f"{folder}: holds no {source.stems[0]}{SUFFIXES[0]} (or {', '.join(SUFFIXES[1:])}). "
        f"Put the file there{instead}."
    )


def addition(source: Source, data_folder: Path | None) -> Path | None:
    """Returns the user's file that adds to a source, or None."""
    if data_folder is None:
        return None
    folder = data_folder / source.folder
    return _first({path.name.lower(): path for path in sorted(folder.glob("*")) if path.is_file()}, source.additions)


def _first(files: Mapping[str, Path], stems: Sequence[str]) -> Path | None:
    found = (
        [name for suffix in SUFFIXES for name in sorted(fnmatch.filter(files, f"{stem}{suffix}".lower()))]
        for stem in stems
    )
    names = next((names for names in found if names), [])
    if len(names) > 1:
        raise DataError(
            f"{files[names[0]].parent}: {files[names[0]].name} and {files[names[1]].name} both fit. Keep one of them."
        )
    return files[names[0]] if names else None


def read_source(source: Source, data_folder: Path | None) -> Table:
    """Reads a source from the user's folder where it is there, else from the Hub.

    Raises:
        DataError: If a local file can't be used.
        DataUnavailableError: If there is no local file and the Hub can't be reached.
    """
    path = local_file(source, data_folder)
    if path is not None:
        _log.info("reading %s", path)
        return read_file(path, source.image_column)
    return _read_hub(source)


def _read_hub(source: Source) -> Table:
    where = f"Put {source.folder}/{source.stems[0]}{SUFFIXES[0]} into a folder and name it with CULTURE_TASKS_DATA."
    if source.hub is None:
        raise DataUnavailableError(f"{source.folder}: these data are not on the Hub. {where}")
    data = _load_dataset(source, where)
    if len(data) == 0:
        raise DataError(f"{source.name}, split {source.split}: holds no rows.")
    return from_dataset(data, source.name, source.image_column, local=False)


def _load_dataset(source: Source, where: str) -> Any:
    import datasets
    from huggingface_hub.errors import HfHubHTTPError

    of_its_client = HfHubHTTPError.__bases__  # the errors of whichever HTTP client this version uses
    try:
        return datasets.load_dataset(source.hub, source.config, split=source.split)
    except (OSError, ValueError, *of_its_client, datasets.exceptions.DatasetsError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataUnavailableError(
            f"{source.name}: can't be had from the Hub ({reason[0]:.200}). "
            f"Check the connection and your access. {where}"
        ) from None
