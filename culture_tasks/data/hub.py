"""Data sets of the Hugging Face Hub: the commit to read, from the Hub or its cache, and advice where none can be read.

``datasets`` alone falls back on whatever it prepared last when the Hub fails, of whichever revision. Here the commit is
found first; only that commit is read, and it is noted for the results. Mirrors (``HF_ENDPOINT``), caches (``HF_HOME``)
and ``HF_HUB_OFFLINE`` are the libraries' own.
"""

from __future__ import annotations

import logging
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.errors import DataUnavailableError
from culture_tasks.secret_texts import shown_text

if TYPE_CHECKING:
    import datasets

_log = logging.getLogger(__name__)

_CARD = "README.md"
"""The file that ``datasets`` asks for first: its reply tells the commit, and whether the user may read the data."""

_ANY_COMMIT = "[0-9a-f]" * 40


def load_split(
    name: str, config: str | None, split: str, revision: str | None, otherwise: str
) -> tuple[datasets.Dataset, str]:
    """Returns a split at a revision, from the cache where the commit has been downloaded, and the commit.

    Raises:
        DataUnavailableError: If neither the Hub nor its cache has the data; ``otherwise`` says what to do instead.
    """
    import datasets
    from huggingface_hub.errors import HfHubHTTPError

    # The HTTP client of huggingface_hub, and with it the base of its errors, differs between versions.
    expected = (OSError, ValueError, *HfHubHTTPError.__bases__, datasets.exceptions.DatasetsError)
    try:
        commit = _commit_of(name, config, split, revision)
        if split != "all" and (files := _prepared_files(name, config, split, commit)):
            data = datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in files])
        else:
            data = datasets.load_dataset(name, config, split=split, revision=commit)
            if {Path(file["filename"]).parent.name for file in data.cache_files} - {commit}:
                raise ConnectionError(f"commit {commit[:8]} can't be downloaded")  # `datasets` took what it had
    except expected as error:
        raise DataUnavailableError(f"{_explanation(name, config, revision, error)} {otherwise}") from None
    _log.info("%s: commit %s", name, commit)
    return data, commit


def is_downloaded(name: str, config: str | None, split: str, revision: str | None) -> bool:
    """Whether a split is in the cache at a revision, found out without a connection."""
    from huggingface_hub import try_to_load_from_cache

    card = try_to_load_from_cache(name, _CARD, revision=revision or "main", repo_type="dataset")
    commit = Path(card).parent.name if isinstance(card, str) else revision or _ANY_COMMIT
    return bool(_prepared_files(name, config, split, commit))


def _commit_of(name: str, config: str | None, split: str, revision: str | None) -> str:
    """Returns the commit of a revision: by the Hub or its cache, else, without a revision, the last one prepared."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    if revision and re.fullmatch(_ANY_COMMIT, revision):
        return revision
    try:
        return _hub_commit(name, revision or "main")
    except LocalEntryNotFoundError:
        files = [] if revision else _prepared_files(name, config, split, _ANY_COMMIT)
        if not files:
            raise
        return max(files, key=lambda file: file.stat().st_mtime).parent.name


@cache
def _hub_commit(name: str, revision: str) -> str:
    """Returns the commit of a revision, the same in the whole process."""
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(name, _CARD, repo_type="dataset", revision=revision)).parent.name
    except LocalEntryNotFoundError:
        raise
    except EntryNotFoundError:  # a data set without a card
        return str(HfApi().dataset_info(name, revision=revision).sha)


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
    pattern = re.compile(rf"{re.escape(short_name)}-{'.*' if split == 'all' else split}(-\d+-of-\d+)?\.arrow")
    return sorted(path for path in folder.glob(f"*/{commit}/*.arrow") if pattern.fullmatch(path.name))


def _explanation(name: str, config: str | None, revision: str | None, error: BaseException) -> str:
    """Returns what failed and what to do, with the first lines of an error and of its first cause, without secrets."""
    from datasets import config as settings
    from huggingface_hub.errors import GatedRepoError

    causes = [error]  # also where the library hides them
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and cause not in causes:
        causes.append(cause)
    data = f"{name}{f' ({config})' if config else ''}{f' at revision {revision!r}' if revision else ''}"
    page = f"https://huggingface.co/datasets/{name}"
    if any(isinstance(cause, GatedRepoError) for cause in causes):
        return (
            f"{data}: access is granted on request. Ask for it at {page}, then log in with `hf auth login` (or set "
            "HF_TOKEN) as the user who was granted it."
        )
    lines = [shown_text(str(cause).strip().partition("\n")[0]) for cause in (causes[0], causes[-1])]
    reasons = [re.sub(r"\?[^\s'\"]*", "", line)[:200] for line in dict.fromkeys(lines)]  # a query may hold a signature
    return (
        f"{data}: neither the Hub ({'; '.join(reasons)}) nor the cache ({settings.HF_DATASETS_CACHE}) has it. Check "
        f"the name and your access at {page} (`hf auth login`, HF_TOKEN), CULTURE_TASKS_REVISION, and the connection: "
        "HF_HUB_OFFLINE, HTTPS_PROXY; HF_ENDPOINT names a mirror, HF_HOME another cache."
    )
