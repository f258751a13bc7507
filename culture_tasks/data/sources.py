"""Where a benchmark's rows come from: the user's folder first, then the Hub."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
        stems: Names of the local file without ending, best first, such as ``Arabic-test``.
        hub: Name of the Hub data set; None where the data come by request alone.
        config: Its configuration.
        split: Its split.
        image_column: Column that holds images.
    """

    folder: str
    stems: Sequence[str]
    hub: str | None
    config: str | None = None
    split: str = "test"
    image_column: str | None = None

    @property
    def name(self) -> str:
        """What the data are called in messages and in the task table."""
        hub = "" if self.hub is None else f"{self.hub}{f' ({self.config})' if self.config else ''}"
        return hub or f"local folder {self.folder}/"


def local_file(source: Source, data_folder: Path | None) -> Path | None:
    """Returns the user's file for a source, or None where the user keeps no data of this benchmark.

    Raises:
        DataError: If the data folder itself is missing, or it has a folder for this benchmark without the file.
    """
    if data_folder is None:
        return None
    if not data_folder.is_dir():
        raise DataError(f"CULTURE_TASKS_DATA={data_folder}: no such folder. Name an existing one, or unset it.")
    folder = data_folder / source.folder
    if not folder.is_dir():
        return None
    files = {path.relative_to(folder).as_posix().lower(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    for stem in source.stems:
        for suffix in SUFFIXES:
            if found := files.get(f"{stem}{suffix}".lower()):
                return found
    raise DataError(
        f"{folder}: holds no {source.stems[0]}{SUFFIXES[0]} (or {', '.join(SUFFIXES[1:])}). "
        f"Put the file there, or take the folder away to use the Hub's {source.name}."
    )


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

    try:
        return datasets.load_dataset(source.hub, source.config, split=source.split)
    except (OSError, ValueError, HfHubHTTPError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataUnavailableError(
            f"{source.name}: can't be had from the Hub ({reason[0]:.200}). "
            f"Check the connection and your access. {where}"
        ) from None
