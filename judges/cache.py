"""The verdict cache: raw completions in one SQLite file, safe for several processes, never fatal and never silent.

Completions are stored, not verdicts: they are parsed after reading, so a better parser needs no new calls. Refusals and
failures aren't stored. Each row has a checksum, so that a damaged one is asked again instead of being believed.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from culture_tasks.errors import JudgeError
from culture_tasks.judges.completions import Answer, Completion
from culture_tasks.judges.rubric.verdicts import Usage

logger = logging.getLogger(__name__)

_APPLICATION_ID, _VERSION = 0x43554C54, 3  # mark a file as a verdict cache, with these columns
_COLUMNS = (
    "key BLOB NOT NULL PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL, rubric TEXT NOT NULL, "
    "sample INTEGER NOT NULL, text TEXT NOT NULL, finish_reason TEXT, reply_model TEXT, "
    "prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, "
    "batch INTEGER NOT NULL, sampling TEXT, created REAL NOT NULL, checksum INTEGER NOT NULL"
)
_NAMES = [column.split()[0] for column in _COLUMNS.split(", ")]
_PLACES = ", ".join("?" * len(_NAMES))
_INSERT, _REPLACE = (f"INSERT OR {verb} INTO completions VALUES ({_PLACES})" for verb in ("IGNORE", "REPLACE"))  # noqa: S608  # our own table
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SECONDS_TO_LOCK = 5.0  # how long to wait for another process that writes
_KEYS_PER_QUERY = 500
_PAGE_CACHE_KILOBYTES = 65_536
# So many pages of the log are copied to the file at a time, and not SQLite's 1,000: each time waits for the disk.
_PAGES_TO_COPY = 10_000
T = TypeVar("T")
Row = tuple[Any, ...]
"""A completion as the cache keeps it: the values of the columns."""


def make_row(
    key: bytes, endpoint: str, model: str, rubric: str, sample: int, reply: Completion, sampling: str | None
) -> Row:
    """Returns the row of a completion that came just now, by sampling parameters as JSON."""
    usage = reply.usage
    values = (
        *(key, endpoint, model, rubric, sample, reply.text, reply.finish_reason, reply.model),
        *(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens),
        int(usage.batch_prompt_tokens + usage.batch_completion_tokens > 0),
        sampling,
        time.time(),
    )
    return *values, _checksum(values)


def _read_row(row: Row) -> Answer | None:
    """Reads the columns of a row; None where they aren't as they were written."""
    if _checksum(row[:-1]) != row[-1]:
        return None
    text, finish_reason, model, prompt_tokens, completion_tokens, cached_tokens, batch, sampling, created, _ = row[5:]
    usage = Usage(prompt_tokens, completion_tokens, cached_tokens)
    sampling = None if sampling is None else _decode(sampling)
    completion = Completion(text, finish_reason, model, usage.in_a_batch if batch else usage, sampling)
    return Answer(completion, kept_since=created)


_lenient = partial(str, encoding="utf-8", errors="replace")
_decode = lru_cache(maxsize=64)(json.loads)  # all rows of a judge hold the same parameters


def _checksum(values: Row) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


class VerdictCache:
    """The cache, for one thread at a time; without a file, completions are kept in memory.

    A file that another program has written is a ``JudgeError``. Nothing else raises: a damaged file is set aside, a row
    that can't be read isn't there, and completions that can't be written wait in memory for the end of the run.
    """

    def __init__(self, file: Path | None) -> None:
        _refuse_foreign(file)
        self._file = file
        self._database: sqlite3.Connection | None = None
        self._inode = 0
        self._waiting: list[tuple[str, list[Row]]] = []  # statements with their rows
        self._has_trouble = False

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Reads the completions of these keys, as far as they are there."""
        rows = self._run(lambda database: _select(database, keys)) or []
        answers = {row[0]: answer for row in rows if (answer := _read_row(row)) is not None}
        if len(answers) < len(rows):
            damaged = [(row[0],) for row in rows if row[0] not in answers]
            number = len(damaged)
            logger.warning("verdict cache: %s: %d rows aren't as they were written: asked again", self._file, number)
            self._run(lambda database: _write(database, [("DELETE FROM completions WHERE key = ?", damaged)]))
        return answers

    def put_many(self, rows: Sequence[Row], *, replace: bool = False) -> None:
        """Stores completions, in one transaction; one that is there stays, unless they are to replace it."""
        self._waiting.append((_REPLACE if replace else _INSERT, [*rows]))
        if not self._has_trouble:
            self._write_waiting()

    def _write_waiting(self) -> None:
        is_written: bool | None = self._run(lambda database: _write(database, self._waiting))
        if is_written:
            self._waiting = []

    def close(self) -> None:
        """Writes the completions that wait, and closes the file."""
        if self._waiting:
            self._write_waiting()
        if lost := sum(len(rows) for _, rows in self._waiting):
            logger.warning("verdict cache: %s: %d completions could not be kept", self._file, lost)
        self._close()

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Does work on the file, once more where that is damaged; None, and said once, where it can't be used."""
        try:
            try:
                return work(self._connection())
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_NOTADB) & 0xFF not in _DAMAGE:
                    raise
                self._set_aside(error)
                return work(self._connection())
        except (sqlite3.Error, OSError, ValueError) as error:  # a ValueError: a text that can't be encoded
            if not self._has_trouble:
                self._has_trouble = True
                logger.warning(
                    "verdict cache: %s can't be used for now (%s): completions wait in memory for the end of the run. "
                    "Free the disk or the file, or name a writable one with CULTURE_JUDGE_CACHE.",
                    self._file,
                    error,
                )
            return None

    def _connection(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = _open(self._file)
            self._inode = self._file.stat().st_ino if self._file else 0
        return self._database

    def _set_aside(self, error: sqlite3.Error) -> None:
        """Sets a damaged file, or one of another layout, aside; its rows that can be read are copied to a new one."""
        assert self._file is not None
        has_gone = self._database is not None and self._file.stat().st_ino != self._inode
        self._close()
        if has_gone:
            return  # another process has set it aside
        aside = self._file.with_name(f"{self._file.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                self._file.with_name(self._file.name + suffix).rename(aside.with_name(aside.name + suffix))
        saved = 0
        with (
            closing(sqlite3.connect(f"{aside.resolve().as_uri()}?mode=ro", uri=True)) as old,
            self._connection() as new,
        ):
            old.text_factory = _lenient
            for order in ("ASC", "DESC"):  # the rows before the damage, and those behind it
                with suppress(sqlite3.Error):
                    for row in old.execute(f"SELECT {', '.join(_NAMES)} FROM completions ORDER BY rowid {order}"):  # noqa: S608
                        saved += new.execute(_INSERT, row).rowcount
        name = aside.name
        logger.warning("%s can't be read (%s): set aside as %s; %d rows were saved", self._file, error, name, saved)


def _select(database: sqlite3.Connection, keys: Sequence[bytes]) -> list[Row]:
    rows = []
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        some = keys[start : start + _KEYS_PER_QUERY]
        places = ",".join("?" * len(some))
        rows += database.execute(f"SELECT * FROM completions WHERE key IN ({places})", some).fetchall()  # noqa: S608
    return rows


def _write(database: sqlite3.Connection, statements: Iterable[tuple[str, Iterable[Row]]]) -> bool:
    with database:
        for statement, rows in statements:
            database.executemany(statement, rows)
    return True


def _refuse_foreign(file: Path | None) -> None:
    """Refuses a file that another program has written, or none: it is not to be set aside as a damaged cache."""
    if file is None or not file.is_file():
        return
    with file.open("rb") as opened:
        head = opened.read(72)
    # What makes a new file ours may be in its log alone.
    ids = (_APPLICATION_ID.to_bytes(4), bytes(4) if file.with_name(f"{file.name}-wal").exists() else None)
    if head and not (head.startswith(b"SQLite format 3\0") and head[68:] in ids):
        raise JudgeError(
            f"verdict cache: {file} is no verdict cache, and is left alone. Name another file with "
            "CULTURE_JUDGE_CACHE, or delete this one if it was a cache that is damaged."
        )


def _open(file: Path | None) -> sqlite3.Connection:
    """Opens a file, made with its folders if it doesn't exist; None means one in memory."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():  # SQLite would wait for a pipe
            raise OSError("not a plain file")
    database = sqlite3.connect(file or ":memory:", timeout=_SECONDS_TO_LOCK, check_same_thread=False)
    try:
        database.text_factory = _lenient  # a text that isn't UTF-8 must not fail the query that reads other rows
        _lay_out(database)
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KILOBYTES}")
        database.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_TO_COPY}")
    except BaseException:  # also an interrupt must not leave the file open
        database.close()
        raise
    return database


def _lay_out(database: sqlite3.Connection) -> None:
    """Makes the table of a new file, and makes sure that another file has it."""
    version = database.execute("PRAGMA user_version").fetchone()[0]
    columns = [row[1] for row in database.execute("PRAGMA table_info(completions)")]
    if columns or version:
        if (version, columns) != (_VERSION, _NAMES):  # without SQLite's own code: set aside as a damaged file is
            raise sqlite3.DatabaseError(f"layout {version}; this version of culture-tasks writes {_VERSION}")
        return
    for attempt in range(100):
        try:
            # Before the log begins, so that the file itself says whose it is.
            database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:  # SQLite doesn't wait for a process that switches at the same time
            if attempt == 99:
                raise
            time.sleep(0.05)
    table = f"CREATE TABLE IF NOT EXISTS completions ({_COLUMNS})"
    database.executescript(f"BEGIN IMMEDIATE; {table}; PRAGMA user_version = {_VERSION}; COMMIT;")


@dataclass(frozen=True, slots=True)
class JudgeStats:
    """How many completions a cache has by one judge and rubric, how many after a reminder, and their tokens."""

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
    with _opened(file) as database:
        return [
            JudgeStats(endpoint, model, rubric, completions, asked_again, Usage(*tokens))
            for endpoint, model, rubric, completions, asked_again, *tokens in database.execute(query)
        ]


def clear(file: Path, model: str | None = None) -> int:
    """Deletes a cache's completions, or those of a model, safely for processes that use it; returns how many."""
    if not file.exists():
        return 0
    with _opened(file) as database:
        with database:
            deleted = database.execute("DELETE FROM completions WHERE ? IS NULL OR model = ?", (model, model)).rowcount
        database.execute("VACUUM")
        return deleted


def merge(files: Sequence[Path], into: Path) -> list[tuple[Path, int, int]]:
    """Copies completions of caches into one, safely for processes that use it; of two by one key the newer stays.

    Returns each file with the number of its completions, and how many of them were new or newer.
    """
    sources = [file for file in files if file.resolve() != into.resolve()]
    if absent := [file for file in sources if not file.is_file()]:
        raise JudgeError(f"verdict cache: {absent[0]} isn't there. Name the files of caches.")
    copy = (
        "INSERT OR REPLACE INTO main.completions SELECT theirs.* FROM other.completions AS theirs "
        "LEFT JOIN main.completions AS ours USING (key) WHERE ours.key IS NULL OR theirs.created > ours.created"
    )
    counts = []
    for file in sources:
        completions = sum(judge.completions for judge in stats(file))
        with _opened(into) as database:
            database.execute("ATTACH ? AS other", (str(file),))
            with database:
                counts.append((file, completions, database.execute(copy).rowcount))
    return counts


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Opens a cache for an action of ``culture-tasks cache``; a ``JudgeError`` if it is none, or can't be used."""
    _refuse_foreign(file)
    try:
        with closing(_open(file)) as database:
            yield database
    except (sqlite3.Error, OSError) as error:
        raise JudgeError(
            f"verdict cache: {file} can't be used ({error}). Name another with CULTURE_JUDGE_CACHE."
        ) from error
