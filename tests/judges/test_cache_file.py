"""The verdict cache and its file in good times and bad: locked, full, damaged, of another layout, taken away."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from culture_tasks import key_value_store
from culture_tasks.errors import JudgeError
from culture_tasks.judges.cache import cache_files
from culture_tasks.judges.cache.cache_files import CachedRow
from culture_tasks.judges.cache.verdict_cache import CacheThread, VerdictCache, open_cache
from culture_tasks.judges.completions import Answer, ChatRequest, Completion
from culture_tasks.judges.rubric.verdicts import Usage


def row(number: int, text: str = "rating=2") -> CachedRow:
    request = ChatRequest("http://x/v1", "judge", list, {"max_tokens": 5}, texts=number)
    return CachedRow(request, "lave", Completion(text, "stop", "judge-1", Usage(3, 4), {"max_tokens": 5}))


def texts(cache, numbers):
    keys = {number: row(number).request.key for number in numbers}
    answers = [(number, cache.get_many([key]).get(key)) for number, key in keys.items()]
    return {number: answer.reply.text for number, answer in answers if answer}


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def file(tmp_path):
    return tmp_path / "folder" / "verdicts.sqlite3"


@pytest.fixture(autouse=True)
def quick_locks(monkeypatch):
    monkeypatch.setattr(key_value_store, "SECONDS_TO_LOCK", 0.05)


def locked(file):
    database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    database.execute("BEGIN IMMEDIATE")
    return database


def changed(file, *statement):
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(*statement)


def scramble(file, start, size):
    with file.open("r+b") as raw:
        raw.seek(start)
        raw.write(os.urandom(size))


def fill(file, count, size=20):
    with closing(VerdictCache(file)) as cache:
        cache.get_many([])
        cache.put_many([row(number, f"rating={number} " + "x" * size) for number in range(count)])


def beside(file, pattern):
    return list(file.parent.glob(f"*.{pattern}-*[0-9]"))


def test_completions_are_read_as_they_were_put_and_stay(file):
    rows = [row(number) for number in range(1200)]
    thread = CacheThread(file)
    for new_row in rows:
        thread.put([new_row])
    keys = [new_row.request.key for new_row in rows]
    assert len(thread.get_many(keys).result()) == 1200
    unstorable = row(2000)
    unstorable.request.sample = 2**70
    thread.put([unstorable])
    thread.flush()
    thread.put([row(1, "second")])
    thread.close()
    expected = {new_row.request.key: Answer(new_row.completion, kept_since=new_row.created) for new_row in rows}
    with closing(VerdictCache(file)) as cache:
        assert cache.get_many([*keys, b"absent"]) == expected


@pytest.mark.parametrize(("trouble", "message"), [("a lock", "locked"), ("a full disk", "is full")])
def test_completions_that_trouble_kept_out_are_written_when_it_ends(file, caplog, trouble, message):
    clock = Clock()
    cache = VerdictCache(file, clock)
    cache.put_many([row(0)])
    database, holder = cache._store._database, locked(file) if trouble == "a lock" else None
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(1, 100):
        cache.put_many([row(number, "x" * 3000)])
        clock.now += 0.25
    assert set(texts(cache, range(100))) == set(range(100))
    assert caplog.text.count("wait in memory") == caplog.text.count(message) == 1
    database.execute("PRAGMA max_page_count = 100000")
    if holder:
        holder.close()
    clock.now += 60
    cache.put_many([row(100)])
    assert "works again" in caplog.text
    cache.close()
    assert cache_files.stats(file)[0].completions == 101
    assert "lost" not in caplog.text


ON_A_READ_ONLY_DISK = """
from pathlib import Path
import logging, os, sys
sys.path.insert(0, {tests!r})
from test_cache_file import row, texts
from culture_tasks.judges.cache.verdict_cache import VerdictCache

logging.basicConfig(format="%(message)s", stream=sys.stdout)
file = Path({file!r})
assert not os.access(file, os.W_OK)
cache = VerdictCache(file)
print(sorted(texts(cache, range(9))))
cache.put_many([row({new})])
cache.close()
"""


NAMESPACES = subprocess.run(["unshare", "-Urm", "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not NAMESPACES, reason="no file system can be mounted here without rights")
@pytest.mark.parametrize("left", ["nothing", "log", "log without its index"])
def test_new_completions_go_to_the_user_s_cache_where_the_file_is_on_a_read_only_mount(file, tmp_path, left):
    fill(file, 5)
    if left != "nothing":  # a process was killed: its last completions are in the log beside the file
        shutil.copytree(file.parent, tmp_path / "copy")
        writer = VerdictCache(file)
        writer.put_many([row(5)])
        for path in file.parent.glob("*.sqlite3*"):
            shutil.copy(path, tmp_path / "copy" / path.name)
        writer.close()
        file = tmp_path / "copy" / file.name
    if left == "log without its index":
        file.with_name(f"{file.name}-shm").unlink()

    def on_the_mount(new):
        mount = f"mount --bind {file.parent} {file.parent} && mount -o remount,bind,ro {file.parent}"
        code = ON_A_READ_ONLY_DISK.format(tests=str(Path(__file__).parent), file=str(file), new=new)
        command = ["unshare", "-Urm", "sh", "-c", f'{mount} && exec "$0" -c "$1"', sys.executable, code]
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "user")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = list(range(5 if left == "nothing" else 6))
    if left == "log without its index":  # without which SQLite can't say what is in the log
        assert "copy the files to a writable one" in on_the_mount(7)
        return
    message = on_the_mount(7)
    assert f"{file} is read-only: new completions are kept in {tmp_path}/user/culture-tasks/verdicts.sqlite3" in message
    assert message.count("read-only") == 1
    assert f"{first}\n" in message
    assert f"{[*first, 7]}\n" in on_the_mount(8)


NO_DATABASE = b"this is no database, and long enough to be read as one" * 100
DAMAGES = {
    "only the beginning is left": (lambda file: scramble(file, 4096, file.stat().st_size - 4096), 0, 0),
    "in the middle": (lambda file: scramble(file, file.stat().st_size // 2, 20 * 4096), 1000, 1999),
}


@pytest.mark.parametrize(("damage", "fewest", "most"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_set_aside_and_its_readable_rows_are_saved(file, caplog, damage, fewest, most):
    fill(file, 2000, 500)
    damage(file)
    before = file.read_bytes()
    with closing(VerdictCache(file)) as cache:
        replies = texts(cache, range(2000))
        cache.put_many([row(number) for number in range(2000)])
        assert len(texts(cache, range(2000))) == 2000
    assert fewest <= len(replies) <= most
    assert all(text.startswith(f"rating={number} ") for number, text in replies.items())
    assert {0, 1999} <= replies.keys() or not fewest
    assert [path.read_bytes() for path in beside(file, "damaged")] == [before]
    assert "set aside" in caplog.text
    assert f"{len(replies)} rows were saved" in caplog.text


def test_two_that_find_the_same_damage_set_one_file_aside(file):
    fill(file, 300, 500)
    caches = [VerdictCache(file), VerdictCache(file)]
    assert all(texts(cache, [1]) for cache in caches)
    scramble(file, 4096 * 10, 4096 * 10)
    for cache in caches:
        cache._store._database.execute("PRAGMA cache_size = 0")
        texts(cache, range(300))
        cache.put_many([row(number) for number in range(300)])
    for cache in caches:
        assert len(texts(cache, range(300))) == 300
        cache.close()
    assert len(beside(file, "damaged")) == 1


@pytest.mark.parametrize("change", ["text = 'rating=1'", "created = 'yesterday'", "reply_model = cast(x'ff' as text)"])
def test_a_row_that_is_not_as_it_was_written_is_asked_again_and_replaced(file, caplog, change):
    fill(file, 10)
    changed(file, f"UPDATE completions SET {change} WHERE key = ?", (row(3).request.key,))
    with closing(VerdictCache(file)) as cache:
        assert set(texts(cache, range(10))) == set(range(10)) - {3}
        assert "1 rows are not as they were written" in caplog.text
        cache.put_many([row(3, "rating=1")])
        assert texts(cache, [3]) == {3: "rating=1"}
    caplog.clear()
    with closing(VerdictCache(file)) as cache:
        assert set(texts(cache, range(10))) == set(range(10))
    assert caplog.text == ""


@pytest.mark.parametrize("change", ["PRAGMA user_version = 99", "DROP TABLE completions"])
def test_a_file_of_another_layout_is_moved_aside_once(file, caplog, change):
    fill(file, 5)
    changed(file, change)
    for times in (1, 0):
        caplog.clear()
        with closing(VerdictCache(file)) as cache:
            cache.put_many([row(1)])
            assert texts(cache, [1])
        assert caplog.text.count("set aside as verdicts.sqlite3.other-layout-") == times
    assert len(beside(file, "other-layout")) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: changed(file, "CREATE TABLE theirs (x)"), ["another program's database", "CULTURE_JUDGE_CACHE"]),
        (lambda file: file.write_bytes(NO_DATABASE), ["another program's file", "CULTURE_JUDGE_CACHE"]),
        (lambda file: file.mkdir(), ["can't be used for now"]),
    ],
    ids=["another program's database", "another program's file", "a folder"],
)
def test_a_file_that_is_no_cache_is_left_alone_and_done_without(file, caplog, make, message):
    file.parent.mkdir()
    make(file)
    before = [file.read_bytes() if file.is_file() else None, *file.parent.iterdir()]
    if file.is_file():
        with pytest.raises(JudgeError, match="is no verdict cache, and is left alone"):
            open_cache(file)
    with closing(VerdictCache(file)) as cache:
        cache.put_many([row(1)])
        assert texts(cache, [1])
    assert all(caplog.text.count(part) >= 1 for part in message)
    assert "1 completions are lost" in caplog.text
    assert [file.read_bytes() if file.is_file() else None, *file.parent.iterdir()] == before
