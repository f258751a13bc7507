"""Looking into a verdict cache, emptying it and copying it out, for ``culture-tasks cache``."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from culture_tasks.errors import JudgeError

_EXPORTED = (
    *("key", "endpoint", "model", "rubric", "sample", "text", "finish_reason", "reply_model"),
    *("prompt_tokens", "completion_tokens", "sampling", "created"),
)


@dataclass(frozen=True, slots=True)
class JudgeStats:
    """What a cache holds of one judge and rubric.

    Attributes:
        endpoint: Who was asked, without secrets.
        model: Model name as asked for.
        rubric: Name of the rubric.
        completions: How many completions there are.
        prompt_tokens: Tokens that they took to ask.
        completion_tokens: Tokens that they took to answer.
    """

    endpoint: str
    model: str
    rubric: str
    completions: int
    prompt_tokens: int
    completion_tokens: int


def stats(file: Path) -> list[JudgeStats]:
    """Counts a cache's completions by judge and rubric; an absent file counts as empty.

    Raises:
        JudgeError: If the file can't be read as a verdict cache.
    """
    query = (
        "SELECT endpoint, model, rubric, count(*), sum(prompt_tokens), sum(completion_tokens) "
        "FROM completions GROUP BY endpoint, model, rubric ORDER BY endpoint, model, rubric"
    )
    if not file.exists():
        return []
    with _opened(file) as database:
        return [JudgeStats(*row) for row in database.execute(query)]


def clear(file: Path, model: str | None = None) -> int:
    """Deletes a cache's completions, safely for processes that use it.

    Args:
        file: The cache.
        model: Only those of this model.

    Returns:
        How many were deleted.

    Raises:
        JudgeError: If the file can't be read as a verdict cache, or not be written.
    """
    if not file.exists():
        return 0
    with _opened(file) as database:
        with database:
            deleted = database.execute("DELETE FROM completions WHERE ? IS NULL OR model = ?", (model, model)).rowcount
        database.execute("VACUUM")
        return deleted


def export(file: Path) -> Iterator[dict[str, Any]]:
    """Yields a cache's completions as JSON data, the oldest first.

    Raises:
        JudgeError: If the file can't be read as a verdict cache.
    """
    if not file.exists():
        return
    with _opened(file) as database:
        for row in database.execute(f"SELECT {', '.join(_EXPORTED)} FROM completions ORDER BY created"):  # noqa: S608
            record = dict(zip(_EXPORTED, row, strict=True))
            record["key"] = record["key"].hex()
            record["sampling"] = None if record["sampling"] is None else json.loads(record["sampling"])
            record["created"] = datetime.fromtimestamp(record["created"], UTC).isoformat()
            yield record


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=rw", uri=True, timeout=30.0)) as database:
            yield database
    except sqlite3.Error as error:
        raise JudgeError(
            f"verdict cache: {file} can't be used ({error}). If it is damaged, the next run sets it aside by itself; "
            "name another file with CULTURE_JUDGE_CACHE."
        ) from error
