"""Data sets of the Hugging Face Hub: the commit that is read, and advice where none can be read.

Where the Hub fails, ``datasets`` takes what it prepared last, of whichever revision. So a revision is made a commit
first, and what was read is compared with it. Mirrors (``HF_ENDPOINT``), caches (``HF_HOME``) and ``HF_HUB_OFFLINE`` are
the libraries' own.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataUnavailableError
from culture_tasks.secret_texts import shown_text

if TYPE_CHECKING:
    import datasets

_log = logging.getLogger(__name__)

_COMMIT = re.compile("[0-9a-f]{40}")


def load_split(
    name: str, config: str | None, split: str, revision: str | None, otherwise: str
) -> tuple[datasets.Dataset, DataReading]:
    """Returns a split at a revision, and the commit that it was read from.

    Raises DataUnavailableError if neither the Hub nor its cache has the data; ``otherwise`` says what to do instead.
    """
    import datasets
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    # The HTTP client of huggingface_hub, and with it the base of its errors, differs between versions.
    expected = (OSError, ValueError, *HfHubHTTPError.__bases__, datasets.exceptions.DatasetsError)
    try:
        commit = revision
        if revision and not _COMMIT.fullmatch(revision):
            commit = str(HfApi().dataset_info(name, revision=revision).sha)
        if commit and split != "all" and (files := _prepared_files(name, config, split, commit)):
            data = datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in files])
        else:
            data = datasets.load_dataset(name, config, split=split, revision=commit)
        found = {Path(file["filename"]).parent.name for file in data.cache_files}
        if commit and found - {commit}:  # `datasets` took what it had
            raise ConnectionError(f"commit {commit[:8]} can't be downloaded")
    except expected as error:
        raise DataUnavailableError(f"{_explanation(name, config, revision, error)} {otherwise}") from None
    commit = " and ".join(sorted(found))
    _log.info("%s: commit %s", name, commit)
    return data, DataReading(commits={name: commit})


def is_downloaded(name: str, config: str | None, split: str, revision: str | None) -> bool:
    """Whether ``datasets`` has prepared a split, found out without a connection; at a revision if that is a commit."""
    commit = revision if revision and _COMMIT.fullmatch(revision) else "[0-9a-f]" * 40
    return bool(_prepared_files(name, config, split, commit))


def _prepared_files(name: str, config: str | None, split: str, commit: str) -> list[Path]:
    """Returns the files of a split that ``datasets`` has prepared, in order.

    They are in ``<owner>___<name_in_snake_case>/<config>/<version>/<commit>/``. While data are being prepared, and
    after that has failed, the folder's name has another ending.
    """
    import datasets
    from datasets.naming import camelcase_to_snakecase

    owner, _, short_name = name.partition("/")
    short_name = camelcase_to_snakecase(short_name)
    folder = Path(os.fspath(datasets.config.HF_DATASETS_CACHE)) / f"{owner}___{short_name}" / (config or "default")
    file = re.compile(rf"{re.escape(short_name)}-{'.*' if split == 'all' else split}(-\d+-of-\d+)?\.arrow")
    return sorted(path for path in folder.glob(f"*/{commit}/*.arrow") if file.fullmatch(path.name))


def _explanation(name: str, config: str | None, revision: str | None, error: BaseException) -> str:
    """Returns what failed, in the first line of an error without secrets, and what to do."""
    from datasets import config as settings

    data = f"{name}{f' ({config})' if config else ''}{f' at revision {revision!r}' if revision else ''}"
    reason = re.sub(
        r"\?[^\s'\"]*", "", shown_text(str(error).strip().partition("\n")[0])
    )  # a query may hold a signature
    return (
        f"{data}: neither the Hub ({reason[:200]}) nor the cache ({settings.HF_DATASETS_CACHE}) has it. Check the name "
        f"and your access at https://huggingface.co/datasets/{name} (`hf auth login`, HF_TOKEN), "
        "CULTURE_TASKS_REVISION, and the connection."
    )
