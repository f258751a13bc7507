"""The file of a verdict cache: its layout, opening it, setting it aside, and what ``culture-tasks cache`` does with it.

Completions are stored, not verdicts: they are parsed after reading, so a better parser needs no new calls. Each row has
a checksum, so that a damaged one is asked again instead of being believed.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.errors import JudgeError
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.verdicts import Usage

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 3
SECONDS_TO_LOCK = 5.0
_APPLICATION_ID = 0x43554C54
_PAGE_CACHE_KILOBYTES = 65_536
_SMALLEST_ROW = 64
_SECONDS_BETWEEN_SWITCHES = 0.01
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TYPES = {
    "key": "BLOB NOT NULL PRIMARY KEY",
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
}
COLUMNS = ", ".join(_TYPES)
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS completions ({", ".join(f"{name} {kind}" for name, kind in _TYPES.items())});
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
_INSERT = f"INSERT OR IGNORE INTO completions VALUES ({','.join('?' * len(_TYPES))})"  # noqa: S608  # question marks


class OtherLayoutError(Exception):
    """A verdict cache that another version of culture-tasks wrote."""


@dataclass(frozen=True, slots=True)
class Row:
    """One completion on its way into the cache.

    Attributes:
        request: What was asked.
        rubric: Name of the rubric.
        completion: What came back.
        replaces: Whether it takes the place of a completion that is there; else that one stays.
        created: When it came, in seconds since 1970.
    """

    request: ChatRequest
    rubric: str
    completion: Completion
    replaces: bool = False
    created: float = field(default_factory=time.time)

    def values(self) -> tuple[Any, ...]:
        """Returns the row's columns."""
        request, reply = self.request, self.completion
        sampling = None if reply.sampling is None else json.dumps(reply.sampling, sort_keys=True)
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
            sampling,
            self.created,
        )
        return *values, _checksum(values)


class Kept(NamedTuple):
    """A completion as the cache holds it.

    Attributes:
        completion: The completion.
        created: When it came, in seconds since 1970.
    """

    completion: Completion
    created: float


def read_row(row: tuple[Any, ...]) -> Kept | None:
    """Reads the columns of a row; None where they aren't what was written."""
    if _checksum(row[:-1]) != row[-1]:
        return None
    _, _, _, _, _, text, finish_reason, model, read, written, cached, batch, sampling, created, _ = row
    usage = Usage(read, written, cached)
    completion = Completion(
        text,
        finish_reason=finish_reason,
        model=model,
        usage=usage.in_a_batch if batch else usage,
        sampling=None if sampling is None else json.loads(sampling),
    )
    return Kept(completion, created)


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def is_read_only(file: Path) -> bool:
    """Whether a cache is there and can't be written, such as on a read-only disk."""
    return file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))


def opened(file: Path | None) -> sqlite3.Connection:
    """Opens a cache, made with its folders if it isn't there; None is one in memory.

    One that is read-only is opened to be read. SQLite can't share it with others then, unless they have it open: it
    would need to write beside it.

    Raises:
        OtherLayoutError: If another version wrote it.
        sqlite3.Error: If it is damaged (see :func:`is_damage`), another program's, or can't be opened now.
        OSError: If its folder can't be made.
    """
    uri = "file::memory:"
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        uri = file.resolve().as_uri()
        if is_read_only(file):
            uri += "?mode=ro" if file.with_name(f"{file.name}-shm").exists() else "?mode=ro&immutable=1"
    database = sqlite3.connect(uri, timeout=SECONDS_TO_LOCK, check_same_thread=False, uri=True)
    try:
        # A text that isn't UTF-8 spoils its own row, by the checksum, and not the whole query.
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        if _is_new(database):
            _switch_to_wal(database)
            database.executescript(_SCHEMA)
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KILOBYTES}")
    except BaseException:  # also an interrupt must not leave the file open
        database.close()
        raise
    return database


def _switch_to_wal(database: sqlite3.Connection) -> None:
    """Has the file written ahead to a log; SQLite itself doesn't wait for a process that does the same just now."""
    until = time.monotonic() + SECONDS_TO_LOCK
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_SECONDS_BETWEEN_SWITCHES)


def _is_new(database: sqlite3.Connection) -> bool:
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    program = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if program not in (0, _APPLICATION_ID) or (program == 0 and tables):
        raise sqlite3.OperationalError("it is another program's database")
    if not tables and version == 0:
        return True
    columns = [row[1] for row in database.execute("PRAGMA table_info(completions)")]
    if version != SCHEMA_VERSION or columns != list(_TYPES):
        raise OtherLayoutError(f"layout {version}; this version of culture-tasks writes {SCHEMA_VERSION}")
    return False


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file itself is damaged, and not that it can't be used for the moment."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def insert(database: sqlite3.Connection, rows: Iterable[tuple[Any, ...]], replaced: Iterable[bytes] = ()) -> None:
    """Stores the columns of rows, in one transaction.

    Args:
        database: The cache.
        rows: The columns; a row whose key is there already stays out.
        replaced: Keys of rows to delete first.
    """
    with database:
        database.executemany("DELETE FROM completions WHERE key = ?", [(key,) for key in replaced])
        database.executemany(_INSERT, rows)


def set_aside(file: Path, why: str) -> Path:
    """Renames a file, with the parts that SQLite keeps beside it, and returns its new name."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = next(
        name for number in range(1000) if not (name := file.with_name(f"{file.name}.{why}-{stamp}-{number}")).exists()
    )
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside


def salvage(damaged: Path, database: sqlite3.Connection) -> int:
    """Copies the rows of a damaged file that can still be read, and returns how many these were."""
    saved = 0

    def readable() -> Iterator[tuple[Any, ...]]:
        nonlocal saved
        for row in _readable_rows(damaged):
            saved += 1
            yield row

    insert(database, readable())
    return saved


def _readable_rows(file: Path) -> Iterator[tuple[Any, ...]]:
    """Reads on behind every row that can't be read; rows lie in the order of their numbers."""
    query = f"SELECT rowid, {COLUMNS} FROM completions WHERE rowid >= ? ORDER BY rowid"  # noqa: S608  # our own columns
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            database.execute(f"SELECT {COLUMNS} FROM completions LIMIT 0")  # noqa: S608  # our own columns
            following, highest = 1, _highest_row(database, file)
            while following <= highest:
                try:
                    for number, *row in database.execute(query, (following,)):
                        if read_row(tuple(row)) is not None:  # else its number may be wrong, too
                            following = max(following, number + 1)
                            yield tuple(row)
                    return
                except sqlite3.Error:
                    # A cursor reads one row ahead, so that it loses the last one before the damage.
                    yield from _row_alone(database, following)
                    following += 1
    except sqlite3.Error:
        return


def _row_alone(database: sqlite3.Connection, number: int) -> list[tuple[Any, ...]]:
    try:
        found = database.execute(f"SELECT {COLUMNS} FROM completions WHERE rowid = ?", (number,)).fetchall()  # noqa: S608
    except sqlite3.Error:
        return []
    return [row for row in found if read_row(row) is not None]


def _highest_row(database: sqlite3.Connection, file: Path) -> int:
    try:
        return int(database.execute("SELECT max(rowid) FROM completions").fetchone()[0] or 0)
    except sqlite3.Error:
        return file.stat().st_size // _SMALLEST_ROW


@dataclass(frozen=True, slots=True)
class JudgeStats:
    """What a cache holds of one judge and rubric.

    Attributes:
        endpoint: Who was asked, without secrets.
        model: Model name as asked for.
        rubric: Name of the rubric.
        completions: How many completions there are.
        asked_again: How many of them came after a reminder of the format.
        usage: Tokens that they took.
    """

    endpoint: str
    model: str
    rubric: str
    completions: int
    asked_again: int
    usage: Usage


def stats(file: Path) -> list[JudgeStats]:
    """Counts a cache's completions by judge and rubric; an absent file counts as empty.

    Raises:
        JudgeError: If the file can't be read as a verdict cache.
    """
    query = (
        "SELECT endpoint, model, rubric, count(*), sum(sample > 0), "
        "sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), "
        "sum(batch * prompt_tokens), sum(batch * completion_tokens) "
        "FROM completions GROUP BY endpoint, model, rubric ORDER BY endpoint, model, rubric"
    )
    if not file.exists():
        return []
    with _used(file) as database:
        return [
            JudgeStats(
                endpoint=endpoint,
                model=model,
                rubric=rubric,
                completions=completions,
                asked_again=asked_again,
                usage=Usage(*tokens),
            )
            for endpoint, model, rubric, completions, asked_again, *tokens in database.execute(query)
        ]


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
    with _used(file) as database:
        with database:
            deleted = database.execute("DELETE FROM completions WHERE ? IS NULL OR model = ?", (model, model)).rowcount
        database.execute("VACUUM")
        return deleted


def export(file: Path) -> Iterator[dict[str, Any]]:
    """Yields a cache's completions as JSON data, the oldest first; rows that can't be read are left out.

    Raises:
        JudgeError: If the file can't be read as a verdict cache.
    """
    if not file.exists():
        return
    unreadable = 0
    with _used(file) as database:
        for row in database.execute(f"SELECT {COLUMNS} FROM completions ORDER BY created"):  # noqa: S608  # our columns
            kept = read_row(row)
            if kept is None:
                unreadable += 1
                continue
            record = dict(zip(_TYPES, row, strict=True))
            del record["checksum"]
            record["key"] = record["key"].hex()
            record["sampling"] = kept.completion.sampling
            record["created"] = datetime.fromtimestamp(kept.created, UTC).isoformat()
            yield record
    if unreadable:
        logger.warning("verdict cache: %s: %d rows are not as they were written, and left out", file, unreadable)


@contextmanager
def _used(file: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(opened(file)) as database:
            yield database
    except (sqlite3.Error, OtherLayoutError, OSError) as error:
        raise JudgeError(
            f"verdict cache: {file} can't be used ({error}). If it is damaged or another version's, the next run sets "
            "it aside by itself; name another file with CULTURE_JUDGE_CACHE."
        ) from error
