"""Whether a task's data can be had now, without downloading them."""

from __future__ import annotations

import os
from pathlib import Path

from culture_tasks.data.sources import Source, local_file
from culture_tasks.errors import CultureTasksError


def availability(sources: tuple[Source, ...], data_folder: Path | None) -> str:
    """Says in a few words where the data of a task would come from.

    Args:
        sources: What the task needs.
        data_folder: The user's data folder, or None.

    Returns:
        ``local``, ``downloaded``, ``on the Hub``, ``not here`` or a mixture; or why local data can't be used.
    """
    try:
        found = [_one(source, data_folder) for source in sources]
    except CultureTasksError as error:
        return f"error: {error}"
    return " and ".join(dict.fromkeys(found))


def _one(source: Source, data_folder: Path | None) -> str:
    if local_file(source, data_folder) is not None:
        return "local"
    if source.hub is None:
        return f"not here: put it into {source.folder}/ of CULTURE_TASKS_DATA"
    return "downloaded" if _downloaded(source.hub, source.config) else "on the Hub"


def _downloaded(hub: str, config: str | None) -> bool:
    """Looks for prepared data where ``datasets`` puts them: ``<owner>___<name_in_snake_case>/<config>/…``."""
    import datasets
    from datasets.naming import camelcase_to_snakecase

    owner, _, name = hub.partition("/")
    folder = Path(os.fspath(datasets.config.HF_DATASETS_CACHE)) / f"{owner}___{camelcase_to_snakecase(name)}"
    return any(folder.glob(f"{config or 'default'}*/**/*.arrow")) if folder.is_dir() else False
