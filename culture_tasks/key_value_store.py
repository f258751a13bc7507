"""Rows by key in one SQLite file: a put is committed when it returns, and other processes see it at once.

A damaged file of ours is set aside with a message, and the rows before and behind the damage are copied to a new one.
Other trouble, such as a full disk or another program's file, is raised as SQLite reports it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

logger = logging.getLogger(__name__)
T = TypeVar("T")

# How long to wait for another process that writes.
SECONDS_TO_LOCK = 10.0
_KEYS_PER_QUERY = 500
_PAGE_CACHE_KILOBYTES = 65_536


class TableLayout(NamedTuple):
    """How a file is laid out: the number that marks it as ours, and its only table, whose first column is the key."""

    application_id: int
    version: int
    table: str
    columns: Mapping[str, str]


class LayoutError(sqlite3.DatabaseError):
    """The file has the layout of another version of culture-tasks."""


class KeyValueStore:
    """A file of rows, opened when it is first used, and made with its folders; None keeps rows in memory.

    All methods raise ``sqlite3.Error`` or ``OSError`` if the file can't be used for the moment.
    """

    def __init__(self, file: Path | None, layout: TableLayout) -> None:
        self._file = file
        self._layout = layout
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    def get_many(self, keys: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Returns the rows of these keys, as far as they are there."""

        def read(database: sqlite3.Connection) -> list[tuple[Any, ...]]:
            rows = []
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                some = keys[start : start + _KEYS_PER_QUERY]
                places = ",".join("?" * len(some))
                query = f"SELECT * FROM {self._layout.table} WHERE key IN ({places})"  # noqa: S608  # our own table
                rows += database.execute(query, some).fetchall()
            return rows

        return self._run(read)

    def put_many(self, rows: Sequence[tuple[Any, ...]], replaced: Iterable[Any] = ()) -> None:
        """Deletes the rows of the replaced keys, then stores rows whose keys aren't there, in one transaction."""
        deleted = [(key,) for key in replaced]

        def write(database: sqlite3.Connection) -> None:
            with database:
                database.executemany(f"DELETE FROM {self._layout.table} WHERE key = ?", deleted)  # noqa: S608
                self._insert(database, rows)

        self._run(write)

    def __len__(self) -> int:
        query = f"SELECT count(*) FROM {self._layout.table}"  # noqa: S608  # our own table
        return self._run(lambda database: int(database.execute(query).fetchone()[0]))

    def close(self) -> None:
        """Closes the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _insert(self, database: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> None:
        places = ",".join("?" * len(self._layout.columns))
        query = f"INSERT OR IGNORE INTO {self._layout.table} VALUES ({places})"  # noqa: S608  # our own table
        database.executemany(query, rows)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Does work on the file; a damaged one is replaced, and the work done again."""
        try:
            return work(self._connection())
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if not isinstance(error, LayoutError) and code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise  # the file can't be used for the moment, but it isn't damaged
            if self._file is not None and not is_ours(self._file, self._layout):
                raise sqlite3.OperationalError("it is another program's file, and is left alone") from error
            self._replace_file(error)
            return work(self._connection())

    def _connection(self) -> sqlite3.Connection:
        if self._file is not None and _inode(self._file) != self._inode:
            self.close()  # another process has set the file aside
        if self._database is None:
            self._database = open_database(self._file, self._layout)
            self._inode = 0 if self._file is None else _inode(self._file)
        return self._database

    def _replace_file(self, error: sqlite3.Error) -> None:
        assert self._file is not None
        has_gone = self._database is not None and _inode(self._file) != self._inode
        self.close()
        if has_gone:
            return
        why = "other-layout" if isinstance(error, LayoutError) else "damaged"
        aside = self._file.with_name(f"{self._file.name}.{why}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                self._file.with_name(self._file.name + suffix).rename(aside.with_name(aside.name + suffix))
        saved = 0
        try:
            if not isinstance(error, LayoutError):
                database, before = self._connection(), len(self)
                with database, closing(sqlite3.connect(f"{aside.resolve().as_uri()}?mode=ro", uri=True)) as old:
                    old.text_factory = _text
                    for order in ("ASC", "DESC"):  # the rows before the damage, and those behind it
                        with suppress(sqlite3.Error):
                            query = f"SELECT * FROM {self._layout.table} ORDER BY rowid {order}"  # noqa: S608
                            self._insert(database, old.execute(query))
                saved = len(self) - before
        finally:
            logger.warning(
                "%s can't be read (%s): set aside as %s; %d rows were saved", self._file, error, aside.name, saved
            )


def is_ours(file: Path, layout: TableLayout, *, unmarked: bool = False) -> bool:
    """Whether a file begins as SQLite's with this layout's application id do; ``unmarked`` allows no id, too.

    Only a file that is ours may be replaced.
    """
    with file.open("rb") as opened:
        head = opened.read(72)
    ids = (layout.application_id.to_bytes(4), *([bytes(4)] if unmarked else []))
    return head.startswith(b"SQLite format 3\0") and head[68:] in ids


def is_read_only(file: Path) -> bool:
    """Whether a file is there and can't be written, such as on a read-only disk."""
    return file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK))


def open_database(file: Path | None, layout: TableLayout) -> sqlite3.Connection:
    """Opens a file, made with its folders if it doesn't exist; None is one in memory.

    A read-only file is opened to be read. Another version's is a LayoutError, any other trouble a ``sqlite3.Error``.
    """
    uri = "file::memory:"
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file():  # SQLite would wait for a pipe
            raise sqlite3.OperationalError("not a plain file")
        uri = file.resolve().as_uri()
        if is_read_only(file):
            index, log = (file.with_name(f"{file.name}-{name}") for name in ("shm", "wal"))
            if not index.exists() and log.exists() and log.stat().st_size:
                raise sqlite3.OperationalError(
                    f"its newest rows are in {log.name}, which needs {index.name} on a read-only disk: copy "
                    "the files to a writable one"
                )
            uri += "?mode=ro" if index.exists() else "?mode=ro&immutable=1"
    database = sqlite3.connect(uri, timeout=SECONDS_TO_LOCK, check_same_thread=False, uri=True)
    try:
        database.text_factory = _text
        _lay_out(database, layout)
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA cache_size = -{_PAGE_CACHE_KILOBYTES}")
    except BaseException:  # also an interrupt must not leave the file open
        database.close()
        raise
    return database


def _text(raw: bytes) -> str:
    """Reads a text; one that isn't UTF-8 must not fail the query that reads other rows, too."""
    return raw.decode("utf-8", "replace")


def _lay_out(database: sqlite3.Connection, layout: TableLayout) -> None:
    """Makes the table of a new file, and makes sure that another file has it."""
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    program = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if program not in (0, layout.application_id) or (program == 0 and tables):
        raise sqlite3.OperationalError("it is another program's database")
    if tables or version:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({layout.table})")]
        if version != layout.version or columns != list(layout.columns):
            raise LayoutError(f"layout {version}; this version of culture-tasks writes {layout.version}")
        return
    until = time.monotonic() + SECONDS_TO_LOCK
    while True:
        try:
            # Before the log begins, so that the file itself says whose it is.
            database.execute(f"PRAGMA application_id = {layout.application_id}")
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            # SQLite itself doesn't wait for a process that switches at the same time.
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    key, *fields = (f"{name} {kind}" for name, kind in layout.columns.items())
    database.executescript(
        f"""
        BEGIN IMMEDIATE;
        CREATE TABLE IF NOT EXISTS {layout.table} ({", ".join((f"{key} NOT NULL PRIMARY KEY", *fields))});
        PRAGMA user_version = {layout.version};
        COMMIT;
        """
    )


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return 0
