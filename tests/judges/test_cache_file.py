"""The verdict cache and its file in bad times: locked, full, damaged, of another layout, taken away."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

import pytest
from support.fault_server import says

from culture_tasks import key_value_store
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.cache import cache_files
from culture_tasks.judges.cache.cache_files import Row
from culture_tasks.judges.cache.verdict_cache import VerdictCache
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.rubric.verdicts import Usage


def row(number: int, text: str = "rating=2") -> Row:
    request = ChatRequest("http://x/v1", "judge", [{"role": "user", "content": str(number)}], {"max_tokens": 5})
    return Row(request, "lave", Completion(text, "stop", "judge-1", Usage(3, 4), {"max_tokens": 5}))


def key(number: int) -> bytes:
    return row(number).request.key


def texts(cache, numbers):
    return {
        number: kept.completion.text
        for number in numbers
        for kept in [cache.get_many([key(number)]).get(key(number))]
        if kept
    }


class Clock:
    def __init__(self):
        self.now = 100.0

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


def fill(file, count, size=20):
    cache = VerdictCache(file)
    cache.get_many([])
    cache.put_many([row(number, f"rating={number} " + "x" * size) for number in range(count)])
    cache.close()


def test_what_a_lock_kept_out_is_written_when_it_ends(file, caplog):
    clock = Clock()
    cache = VerdictCache(file, clock)
    cache.put_many([row(0)])
    other = locked(file)
    for number in range(1, 50):
        cache.put_many([row(number)])
        clock.now += 0.5
    assert set(texts(cache, range(50))) == set(range(50))
    assert caplog.text.count("wait in memory") == 1
    other.execute("ROLLBACK")
    other.close()
    clock.now += 100
    cache.put_many([row(50)])
    assert "works again" in caplog.text
    cache.close()
    assert cache_files.stats(file)[0].completions == 51
    assert "lost" not in caplog.text


def test_a_disk_that_was_full_gets_everything_later(file, caplog):
    clock = Clock()
    cache = VerdictCache(file, clock)
    cache.put_many([row(0)])
    database = cache._store._database
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(1, 200):
        cache.put_many([row(number, "x" * 3000)])
        clock.now += 0.1
    assert set(texts(cache, range(200))) == set(range(200))
    assert caplog.text.count("is full") == 1
    database.execute("PRAGMA max_page_count = 100000")
    clock.now += 60
    cache.put_many([row(200)])
    cache.close()
    assert cache_files.stats(file)[0].completions == 201


@pytest.mark.parametrize("is_open_elsewhere", [False, True])
def test_a_file_on_a_read_only_disk_is_read(file, monkeypatch, caplog, is_open_elsewhere):
    fill(file, 5)
    other = VerdictCache(file)  # has the log beside the file, without which SQLite opens none on a read-only disk
    if not is_open_elsewhere:
        other.close()
    before = {path: path.read_bytes() for path in file.parent.iterdir()}
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    clock = Clock()
    cache = VerdictCache(file, clock)
    cache.put_many([row(5)])
    assert set(texts(cache, range(7))) == set(range(6))
    clock.now += 100
    cache.put_many([row(6)])
    cache.close()
    assert cache_files.stats(file)[0].completions == 5
    assert {path: path.read_bytes() for path in file.parent.iterdir() if path.suffix != ".sqlite3-shm"} == {
        path: content for path, content in before.items() if path.suffix != ".sqlite3-shm"
    }
    other.close()
    begin, end = (record.getMessage() for record in caplog.records)
    assert "readonly database" in begin
    assert "name a writable one with CULTURE_JUDGE_CACHE" in begin
    assert "2 completions are lost" in end


def test_the_last_try_is_at_the_end_and_says_what_is_lost(file, caplog):
    fill(file, 0)
    cache = VerdictCache(file)
    with closing(locked(file)):
        cache.put_many([row(1), row(2)])
        cache.close()
    assert "2 completions are lost" in caplog.text
    caplog.clear()
    cache = VerdictCache(file)
    other = locked(file)
    cache.put_many([row(1), row(2)])
    other.close()
    cache.close()
    assert "lost" not in caplog.text
    assert cache_files.stats(file)[0].completions == 2


@pytest.mark.parametrize("damage", [b"this is no database, and long enough to be read as one" * 100, b"\0" * 5000])
def test_a_file_that_is_no_database_is_set_aside_with_a_warning(file, caplog, damage):
    file.parent.mkdir()
    file.write_bytes(damage)
    cache = VerdictCache(file)
    cache.put_many([row(1)])
    assert texts(cache, [1])
    cache.close()
    assert [path.read_bytes() for path in file.parent.glob("*.damaged-*")] == [damage]
    assert "set aside" in caplog.text
    assert "0 rows were saved" in caplog.text


def test_rows_before_and_behind_the_damage_are_saved(file, caplog):
    fill(file, 2000, 500)
    with file.open("r+b") as raw:
        raw.seek(file.stat().st_size // 2)
        raw.write(os.urandom(20 * 4096))
    cache = VerdictCache(file)
    found = texts(cache, range(2000))
    cache.put_many([row(number) for number in range(2000)])
    assert len(texts(cache, range(2000))) == 2000
    cache.close()
    assert all(text.startswith(f"rating={number} ") for number, text in found.items())
    assert 1000 < len(found) < 2000
    assert {0, 1999} <= found.keys()
    assert f"{len(found)} rows were saved" in caplog.text
    assert len(list(file.parent.glob("*.damaged-*[0-9]"))) == 1


def test_damage_while_in_use_is_survived(file, caplog):
    fill(file, 200, 3000)
    with file.open("r+b") as raw:
        raw.seek(4096)
        raw.write(os.urandom(file.stat().st_size - 4096))
    cache = VerdictCache(file)
    keys = [key(number) for number in range(200)]
    assert cache.get_many(keys) == {}
    cache.put_many([row(1)])
    assert len(cache.get_many(keys)) == 1
    cache.close()
    assert "set aside" in caplog.text


SPOILT = {"text": "'rating=1'", "created": "'yesterday'", "reply_model": "cast(x'ff' as text)"}


@pytest.mark.parametrize("column", SPOILT)
def test_a_row_that_is_not_as_it_was_written_is_asked_again_and_replaced(file, caplog, column):
    fill(file, 10)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(f"UPDATE completions SET {column} = {SPOILT[column]} WHERE key = ?", (key(3),))
    cache = VerdictCache(file)
    assert set(texts(cache, range(10))) == set(range(10)) - {3}
    assert "1 rows are not as they were written" in caplog.text
    cache.put_many([row(3, "rating=1")])
    assert texts(cache, [3]) == {3: "rating=1"}
    cache.close()
    caplog.clear()
    cache = VerdictCache(file)
    assert set(texts(cache, range(10))) == set(range(10))
    cache.close()
    assert caplog.text == ""


OTHER_LAYOUTS = {"newer": "PRAGMA user_version = 99", "no table": "DROP TABLE completions"}


@pytest.mark.parametrize("change", OTHER_LAYOUTS)
def test_a_file_of_another_layout_is_moved_aside_once(file, caplog, change):
    fill(file, 5)
    with closing(sqlite3.connect(file)) as database:
        database.execute(OTHER_LAYOUTS[change])
    cache = VerdictCache(file)
    cache.put_many([row(1)])
    cache.close()
    assert caplog.text.count("set aside as verdicts.sqlite3.other-layout-") == 1
    caplog.clear()
    cache = VerdictCache(file)
    assert texts(cache, [1])
    cache.close()
    assert caplog.text == ""
    assert len(list(file.parent.glob("*.other-layout-*[0-9]"))) == 1


def test_another_program_s_database_is_left_alone(file, caplog):
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE theirs (x)")
    before = file.read_bytes()
    cache = VerdictCache(file)
    cache.put_many([row(1)])
    assert texts(cache, [1])
    cache.close()
    assert "another program's database" in caplog.text
    assert "CULTURE_JUDGE_CACHE" in caplog.text
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_file_that_can_not_be_opened_is_done_without(tmp_path, caplog):
    cache = VerdictCache(tmp_path)
    cache.put_many([row(1)])
    assert texts(cache, [1])
    cache.close()
    assert caplog.text.count("can't be used for now") == 1
    assert "1 completions are lost" in caplog.text


def test_a_file_that_is_taken_away_is_begun_anew(file):
    cache = VerdictCache(file)
    cache.put_many([row(1)])
    for path in file.parent.iterdir():
        path.unlink()
    cache.put_many([row(2)])
    assert texts(cache, [1, 2]).keys() == {2}
    cache.close()
    assert cache_files.stats(file)[0].completions == 1


def test_two_that_find_the_same_damage_set_one_file_aside(file):
    fill(file, 300, 500)
    caches = [VerdictCache(file), VerdictCache(file)]
    assert all(cache.get_many([key(1)]) for cache in caches)
    with file.open("r+b") as raw:
        raw.seek(4096 * 10)
        raw.write(os.urandom(4096 * 10))
    for cache in caches:
        cache._store._database.execute("PRAGMA cache_size = 0")
        texts(cache, range(300))
        cache.put_many([row(number) for number in range(300)])
    for cache in caches:
        assert len(texts(cache, range(300))) == 300
        cache.close()
    assert len(list(file.parent.glob("*.damaged-*[0-9]"))) == 1


def test_a_refused_completion_leaves_the_others_in_peace(file, server, judge_for, item):
    server.script(says("hm \ud800\nrating=2"))
    assert judge_for(judge_cache=str(file)).submit(LAVE, item).verdict().score == 2.0
