"""Data sets of the Hugging Face Hub: the commit to read, from the Hub or its cache, and advice where none can be read.

``datasets`` alone falls back on whatever it prepared last when the Hub fails, of whichever revision. Here the commit is
found first; only that commit is read, and it is noted for the results. Mirrors (``HF_ENDPOINT``), caches (``HF_HOME``)
and ``HF_HUB_OFFLINE`` are the libraries' own.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.errors import DataUnavailableError
from culture_tasks.secret_texts import shown_text, shown_url

if TYPE_CHECKING:
    import datasets

_log = logging.getLogger(__name__)

_COMMIT = re.compile(r"[0-9a-f]{40}")
_CARD = "README.md"
"""The file that ``datasets`` asks for first: its reply tells the commit, and whether the user may read the data."""


_commits: dict[tuple[str, str | None], str] = {}
"""The commit of each data set and revision that this process has read: it reads no other one."""
_failures: dict[tuple[str, str | None], tuple[float, Exception]] = {}
"""When the Hub last couldn't be reached, and why: for a while it isn't asked again."""
_A_WHILE = 60.0


def load_split(
    name: str, config: str | None, split: str, revision: str | None, otherwise: str
) -> tuple[datasets.Dataset, str]:
    """Returns a split at a revision, from the cache where the commit has been downloaded, and the commit.

    Raises:
        DataUnavailableError: If neither the Hub nor its cache has the data; ``otherwise`` says what to do instead.
    """
    import datasets
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    # The HTTP client of huggingface_hub, and with it the base of its errors, differs between versions.
    expected = (OSError, ValueError, *HfHubHTTPError.__bases__, datasets.exceptions.DatasetsError)
    try:
        commit = _commits.get((name, revision)) or _commit_of(name, config, split, revision)
        if files := _prepared_files(name, config, split, commit):
            data = datasets.concatenate_datasets([datasets.Dataset.from_file(str(file)) for file in files])
        elif constants.HF_HUB_OFFLINE:
            raise OfflineModeIsEnabled
        else:
            data = datasets.load_dataset(name, config, split=split, revision=commit)
            if {Path(file["filename"]).parent.name for file in data.cache_files} - {commit}:
                raise ConnectionError(f"the download of commit {commit[:8]} broke off")  # `datasets` took what it had
    except expected as error:
        raise DataUnavailableError(f"{_explanation(name, config, revision, error)} {otherwise}") from None
    _commits[name, revision] = commit
    _log.info("%s: commit %s", name, commit)
    return data, commit


def is_downloaded(name: str, config: str | None, split: str, revision: str | None) -> bool:
    """Whether a split is in the cache at a revision, found out without a connection."""
    commit = _noted_commit(name, revision or "main")
    return (commit is not None or revision is None) and bool(_prepared_files(name, config, split, commit))


def _commit_of(name: str, config: str | None, split: str, revision: str | None) -> str:
    """Returns the commit of a revision: by the Hub, and by its cache where the Hub can't be reached.

    Without a revision that is ``main`` when the Hub last told, or else the latest commit that has the split. Raises
    errors of huggingface_hub, where the Hub says no, or the cache doesn't tell.
    """
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    failed_at, failure = _failures.get((name, revision), (-_A_WHILE, None))
    if failure is not None and time.monotonic() - failed_at < _A_WHILE:
        raise failure
    try:
        return Path(hf_hub_download(name, _CARD, repo_type="dataset", revision=revision or "main")).parent.name
    except LocalEntryNotFoundError as error:  # the Hub can't be reached
        if commit := _noted_commit(name, revision or "main"):
            return commit
        if revision is None and (files := _prepared_files(name, config, split, None)):
            return files[0].parent.name
        _failures[name, revision] = time.monotonic(), error
        raise
    except EntryNotFoundError:
        return str(HfApi().dataset_info(name, revision=revision or "main").sha)


def _noted_commit(name: str, revision: str) -> str | None:
    """Returns the commit that a revision was when the Hub last told; a commit is itself."""
    from huggingface_hub import constants

    if _COMMIT.fullmatch(revision):
        return revision
    folder = Path(constants.HF_HUB_CACHE) / f"datasets--{name.replace('/', '--')}" / "refs"
    try:
        return (folder / revision).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def _prepared_files(name: str, config: str | None, split: str, commit: str | None) -> list[Path]:
    """Returns the files of a split that ``datasets`` has prepared, in order; of the latest commit for None.

    They are in ``<owner>___<name_in_snake_case>/<config>/<version>/<commit>/``. While data are being prepared, and
    after that has failed, the folder's name has another ending.
    """
    import datasets
    from datasets.naming import camelcase_to_snakecase, filenames_for_dataset_split

    owner, _, short_name = name.partition("/")
    folder = Path(os.fspath(datasets.config.HF_DATASETS_CACHE)) / f"{owner}___{camelcase_to_snakecase(short_name)}"
    infos = [
        path for path in folder.glob(f"*/*/{commit or '*'}/dataset_info.json") if _COMMIT.fullmatch(path.parent.name)
    ]
    for info in sorted(infos, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            content = json.loads(info.read_text(encoding="utf-8"))
            files = [
                Path(file)
                for part in (content["splits"] if split == "all" else [split])
                for file in filenames_for_dataset_split(
                    str(info.parent), short_name, part, "arrow", content["splits"][part].get("shard_lengths")
                )
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if content.get("config_name") == (config or "default") and all(file.is_file() for file in files):
            return files
    return []


def _explanation(name: str, config: str | None, revision: str | None, error: BaseException) -> str:
    import datasets
    from huggingface_hub import constants, errors

    endpoint = shown_url(constants.ENDPOINT).rstrip("/")
    page = f"https://huggingface.co/datasets/{name}"
    data = f"{name} ({config})" if config else name
    missing = f"the cache ({datasets.config.HF_DATASETS_CACHE}) doesn't hold it"
    if revision:
        missing += f" at revision {revision!r}"
    causes: list[BaseException] = []  # the error and its causes, also where the library hides them
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__

    advice = {
        errors.GatedRepoError: f"access is granted on request. Ask for it at {page}, then log in with `hf auth login` "
        "(or set HF_TOKEN) as the user who was granted it.",
        errors.RevisionNotFoundError: f"the Hub has no revision {revision or 'main'!r} of it. Name a branch, tag or "
        f"commit from {page}/commits/main in CULTURE_TASKS_REVISION, or take {name} out of it.",
        errors.RepositoryNotFoundError: f"{endpoint} has no such data set, or only for users who may see it. If it "
        "is private, log in with `hf auth login`.",
        errors.OfflineModeIsEnabled: f"HF_HUB_OFFLINE is set, and {missing}. Unset it to download the data, or name "
        "by HF_HOME a cache that has them.",
    }
    for kind, text in advice.items():
        if any(isinstance(cause, kind) for cause in causes):
            return f"{data}: {text}"
    if failures := [cause for cause in causes if _is_of_the_connection(cause)]:
        return (
            f"{data}: can't be downloaded from {endpoint} ({_reason(failures[-1])}), and {missing}. Check the "
            "connection (HTTPS_PROXY names a proxy), name a mirror by HF_ENDPOINT, or name by HF_HOME a cache that has "
            "them."
        )
    return f"{data}: can't be loaded from the Hub ({_reason(error)}). Check the connection and your access."


def _is_of_the_connection(error: BaseException) -> bool:
    from huggingface_hub import errors

    if isinstance(error, errors.HfHubHTTPError):  # a reply: of a Hub that is out of order, or asks to wait
        status = getattr(getattr(error, "response", None), "status_code", 0)
        return status == 429 or status >= 500
    client = errors.HfHubHTTPError.__bases__[0]
    return isinstance(error, (ConnectionError, TimeoutError, client, errors.LocalEntryNotFoundError))


def _reason(error: BaseException) -> str:
    """Returns the first line of what an error says, without secrets that are in an address."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return re.sub(r"\?[^\s'\"]*", "", shown_text(lines[0]))[:200]  # a query, which may hold a signature
