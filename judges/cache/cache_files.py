"""The file of a verdict cache: its layout, its rows, and the actions of ``culture-tasks cache``.

Completions are stored, not verdicts: they are parsed after reading, so a better parser needs no new calls. Each row has
a checksum, so that a damaged one is asked again instead of being believed. The actions raise a ``JudgeError`` if a file
is no verdict cache, or can't be written.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.errors import JudgeError
from culture_tasks.judges.completions import Answer, ChatRequest, Completion
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.key_value_store import TableLayout, is_ours, open_database

logger = logging.getLogger(__name__)

LAYOUT = TableLayout(
    application_id=0x43554C54,
    version=3,
    table="completions",
    columns={
        "key": "BLOB",
        "endpoint": "TEXT NOT NULL",
        "model": "TEXT NOT NULL",
        "rubric": "TEXT NOT NULL",
        "sample": "INTEGER NOT NULL",
        "text": "TEXT NOT NULL",
        "finish_reason": "TEXT",
        "reply_model": "TEXT",
        "prompt_tokens": "INTEGER NOT NULL",
        "completion_tokens": "INTEGER NOT NULL",
        "cached_tokens": "INTEGER NOT NULL",
        "batch": "INTEGER NOT NULL",
        "sampling": "TEXT",
        "created": "REAL NOT NULL",
        "checksum": "INTEGER NOT NULL",
    },
)


@dataclass(frozen=True, slots=True)
class CachedRow:
    """One completion on its way into the cache."""

    request: ChatRequest
    rubric: str
    completion: Completion
    replaces: bool = False  # whether it takes the place of a completion that is there; else that one stays
    created: float = field(default_factory=time.time)  # when it came, in seconds since 1970

    def values(self) -> tuple[Any, ...]:
        """Returns the row's columns."""
        request, reply = self.request, self.completion
        values = (
            request.key,
            request.endpoint,
            request.model,
            self.rubric,
            request.sample,
            reply.text,
            reply.finish_reason,
            reply.model,
            reply.usage.prompt_tokens,
            reply.usage.completion_tokens,
            reply.usage.cached_tokens,
            int(reply.usage.batch_prompt_tokens + reply.usage.batch_completion_tokens > 0),
            None if reply.sampling is None else _encode(reply.sampling),
            self.created,
        )
        return *values, _checksum(values)


def read_row(row: tuple[Any, ...]) -> Answer | None:
    """Reads the columns of a row; None where they aren't as they were written."""
    if _checksum(row[:-1]) != row[-1]:
        return None
    *_, text, finish_reason, model, prompt_tokens, completion_tokens, cached_tokens, batch, sampling, created, _ = row
    usage = Usage(prompt_tokens, completion_tokens, cached_tokens)
    completion = Completion(
        text,
        finish_reason=finish_reason,
        model=model,
        usage=usage.in_a_batch if batch else usage,
        sampling=None if sampling is None else _decode(sampling),
    )
    return Answer(completion, kept_since=created)


_encode = json.JSONEncoder(sort_keys=True).encode
_decode = lru_cache(maxsize=64)(json.loads)  # all rows of a judge hold the same parameters


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class JudgeStats:
    """How many completions a cache has by one judge and rubric, how many of them after a reminder, and their tokens."""

    endpoint: str
    model: str
    rubric: str
    completions: int
    asked_again: int
    usage: Usage


def stats(file: Path) -> list[JudgeStats]:
    """Counts a cache's completions by judge and rubric; an absent file counts as empty."""
    query = (
        "SELECT endpoint, model, rubric, count(*), sum(sample > 0), "
        "sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), "
        "sum(batch * prompt_tokens), sum(batch * completion_tokens) "
        "FROM completions GROUP BY endpoint, model, rubric ORDER BY endpoint, model, rubric"
    )
    if not file.exists():
        return []
    with _open_database(file) as database:
        return [
            JudgeStats(endpoint, model, rubric, completions, asked_again, Usage(*tokens))
            for endpoint, model, rubric, completions, asked_again, *tokens in database.execute(query)
        ]


def clear(file: Path, model: str | None = None) -> int:
    """Deletes a cache's completions, or those of a model, safely for processes that use it; returns how many."""
    if not file.exists():
        return 0
    with _open_database(file) as database:
        with database:
            deleted = database.execute("DELETE FROM completions WHERE ? IS NULL OR model = ?", (model, model)).rowcount
        database.execute("VACUUM")
        return deleted


def export(file: Path) -> Iterator[dict[str, Any]]:
    """Yields a cache's completions as JSON data, the oldest first; rows that can't be read are left out."""
    if not file.exists():
        return
    unreadable = 0
    with _open_database(file) as database:
        for row in database.execute("SELECT * FROM completions ORDER BY created"):
            if read_row(row) is None:
                unreadable += 1
                continue
            record = dict(zip(LAYOUT.columns, row, strict=True))
            del record["checksum"]
            record["key"] = record["key"].hex()
            record["sampling"] = None if record["sampling"] is None else _decode(record["sampling"])
            record["created"] = datetime.fromtimestamp(record["created"], UTC).isoformat()
            yield record
    if unreadable:
        logger.warning("verdict cache: %s: %d rows are not as they were written, and left out", file, unreadable)


class CopyCount(NamedTuple):
    """What was copied from one cache to another."""

    file: Path
    completions: int  # how many completions the file has
    copied: int  # how many of them weren't there yet, or are newer than those that were
    unreadable: int  # how many rows were left out, since they are not as they were written


def merge(files: Sequence[Path], into: Path) -> list[CopyCount]:
    """Copies completions of caches into one, safely for processes that use it; of two by one key the newer stays."""
    sources = [file for file in files if file.resolve() != into.resolve()]
    if absent := [file for file in sources if not file.is_file()]:
        raise JudgeError(f"verdict cache: {absent[0]} isn't there. Name the files of caches.")
    names = ", ".join(f"{name} = excluded.{name}" for name in LAYOUT.columns if name != "key")
    places = ", ".join("?" * len(LAYOUT.columns))
    upsert = (
        f"INSERT INTO completions VALUES ({places}) ON CONFLICT (key) DO UPDATE SET {names} "  # noqa: S608  # our own
        "WHERE excluded.created > completions.created"
    )
    counts = []
    with _open_database(into) as target:
        for file in sources:
            completions = copied = unreadable = 0
            with _open_database(file) as database:
                cursor = database.execute("SELECT * FROM completions")
                while rows := cursor.fetchmany(_ROWS_PER_COMMIT):
                    readable = [row for row in rows if read_row(row) is not None]
                    with target:
                        copied += target.executemany(upsert, readable).rowcount if readable else 0
                    completions += len(readable)
                    unreadable += len(rows) - len(readable)
            counts.append(CopyCount(file, completions, copied, unreadable))
    return counts


def refuse_foreign(file: Path | None) -> None:
    """Refuses a file that another program has written, or none: it is not to be set aside as a damaged cache."""
    if file is None or not file.exists():
        return
    try:
        is_unmarked = file.with_name(f"{file.name}-wal").exists()  # what is ours may be in the log alone
        is_foreign = file.stat().st_size > 0 and not is_ours(file, LAYOUT, unmarked=is_unmarked)
    except OSError:
        return  # it is said when the file is used
    if is_foreign:
        raise JudgeError(
            f"verdict cache: {file} is no verdict cache, and is left alone. Name another file with "
            "CULTURE_JUDGE_CACHE, or delete this one if it was a cache that is damaged."
        )


# Rows that are written together; processes that use the cache wait no longer than that takes.
_ROWS_PER_COMMIT = 5_000


@contextmanager
def _open_database(file: Path) -> Iterator[sqlite3.Connection]:
    refuse_foreign(file)
    try:
        with closing(open_database(file, LAYOUT)) as database:
            yield database
    except (sqlite3.Error, OSError) as error:
        raise JudgeError(
            f"verdict cache: {file} can't be used ({error}). If it is damaged or another version's, the next run sets "
            "it aside by itself; name another file with CULTURE_JUDGE_CACHE."
        ) from error
