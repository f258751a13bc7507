"""The verdict cache's file in good times and bad: locked, full, read-only, damaged, of another layout, another's."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import time
from contextlib import closing
from functools import partial

import pytest

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.cli import cache as command
from culture_tasks.costs.prices import list_prices
from culture_tasks.errors import JudgeError, SettingsError
from culture_tasks.judges import cache as cache_module
from culture_tasks.judges.cache import VerdictCache, make_row, stats
from culture_tasks.judges.completions import Completion
from culture_tasks.judges.rubric.verdicts import JudgeItem, Usage

USAGE = Usage(3, 4)


def key(number, model="judge"):
    return f"{model} {number}".encode()


def completion(text="rating=2", usage=USAGE):
    return Completion(text, "stop", "judge-1", usage, {"max_tokens": 5})


def row(number, text="rating=2", model="judge", usage=USAGE, created=None):
    made = make_row(key(number, model), "http://x/v1", model, "lave", 0, completion(text, usage), '{"max_tokens":5}')
    values = (*made[:-2], made[-2] if created is None else created)
    return *values, cache_module._checksum(values)


def texts(cache, numbers):
    keys = {key(number): number for number in numbers}
    return {keys[key]: answer.reply.text for key, answer in cache.get_many(list(keys)).items()}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "folder" / "verdicts.sqlite3"


def changed(file, *statement):
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(*statement)


def fill(file, count, size=20):
    with closing(VerdictCache(file)) as cache:
        cache.put_many([row(number, f"rating={number} " + "x" * size) for number in range(count)])


def beside(file, pattern):
    return list(file.parent.glob(f"*.{pattern}-*[0-9]"))


def test_completions_are_read_as_they_were_put_and_stay_unless_they_are_replaced(file):
    replies = {key(number): completion() for number in range(1200)} | {key(1200): completion(usage=USAGE.in_a_batch)}
    with closing(VerdictCache(file)) as cache:
        cache.put_many([*map(row, range(1200)), row(1200, usage=USAGE.in_a_batch)])
        cache.put_many([row(1, "second")])
        cache.put_many([row(2, "third")], replace=True)
    replies[key(2)] = completion("third")
    with closing(VerdictCache(file)) as cache:
        answers = cache.get_many([*replies, b"absent"])
    assert {key: answer.reply for key, answer in answers.items()} == replies
    assert all(time.time() - 60 < answer.kept_since <= time.time() for answer in answers.values())


# What an earlier version kept of one verdict: an unreadable reply, and the reply to the reminder.
OLD = """
CREATE TABLE completions (key BLOB NOT NULL PRIMARY KEY, endpoint TEXT NOT NULL, model TEXT NOT NULL,
  rubric TEXT NOT NULL, sample INTEGER NOT NULL, text TEXT NOT NULL, finish_reason TEXT, reply_model TEXT,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
  batch INTEGER NOT NULL, sampling TEXT, created REAL NOT NULL, checksum INTEGER NOT NULL);
INSERT INTO completions VALUES(X'77D7D59C95F3C97B6828355D18E44EAD58C6D8652FA12F2A7C13E0F0A7ACB7D3',
  'http://127.0.0.1:8000/v1','judge','lave',0,'hm','stop','judge',300,5,0,0,
  '{"max_tokens": 512, "temperature": 0.0}',1.79587009836562275883e+09,1200304681);
INSERT INTO completions VALUES(X'28D0E32BC434D1FA327657176F5C9314C9AAD050176CA27DFF2EF11D154F033F',
  'http://127.0.0.1:8000/v1','judge','lave',1,'It names the dish of the reference.\nrating=2','stop','judge',300,5,0,0,
  '{"max_tokens": 512, "temperature": 0.0}',1.79587009839211654655e+09,3850609707);
PRAGMA application_id = 1129663572;
PRAGMA user_version = 3;
PRAGMA journal_mode = WAL;
"""


def test_a_cache_of_an_earlier_version_answers(judge_for, tmp_path):
    file = tmp_path / "old.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(OLD)
    judge = judge_for(openai_base_url="http://127.0.0.1:8000/v1", judge_cache=str(file))
    verdict = judge.submit(LAVE, JudgeItem("What is dish 0?", ("biryani",), "biryani 0")).verdict()
    assert (verdict.score, verdict.attempts, verdict.asked_again, verdict.usage) == (2.0, 0, True, Usage(600, 10))


@pytest.mark.parametrize(("trouble", "message"), [("a lock", "locked"), ("a full disk", "is full")])
def test_completions_that_trouble_kept_out_are_written_in_the_end(file, caplog, monkeypatch, trouble, message):
    monkeypatch.setattr(cache_module, "_SECONDS_TO_LOCK", 0.05)
    cache = VerdictCache(file)
    cache.put_many([row(0)])
    holder = sqlite3.connect(file, isolation_level=None)
    if trouble == "a lock":
        holder.execute("BEGIN IMMEDIATE")
    pages = cache._database.execute("PRAGMA page_count").fetchone()[0]
    cache._database.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(1, 100):
        cache.put_many([row(number, "x" * 3000)])
    assert texts(cache, [0]) == {0: "rating=2"}
    assert caplog.text.count("wait in memory") == caplog.text.count(message) == 1
    cache._database.execute("PRAGMA max_page_count = 100000")
    holder.close()
    cache.close()
    assert stats(file)[0].completions == 100
    assert "could not be kept" not in caplog.text


def scramble(file, start, size):
    with file.open("r+b") as raw:
        raw.seek(start)
        raw.write(os.urandom(size))


DAMAGES = {
    "only the beginning is left": (lambda file: scramble(file, 4096, file.stat().st_size - 4096), 0, 0),
    "in the middle": (lambda file: scramble(file, file.stat().st_size // 2, 20 * 4096), 1000, 1999),
}


@pytest.mark.parametrize(("damage", "fewest", "most"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_set_aside_once_and_its_readable_rows_are_saved(file, caplog, damage, fewest, most):
    fill(file, 2000, 500)
    caches = [VerdictCache(file), VerdictCache(file)]
    assert all(texts(cache, [1]) for cache in caches)
    damage(file)
    before = file.read_bytes()
    for cache in caches:
        cache._database.execute("PRAGMA cache_size = 0")
    replies = texts(caches[0], range(2000))
    for cache in caches:
        cache.put_many([row(number) for number in range(2000)])
        assert len(texts(cache, range(2000))) == 2000
        cache.close()
    assert fewest <= len(replies) <= most
    assert all(text.startswith(f"rating={number} ") for number, text in replies.items())
    assert [path.read_bytes() for path in beside(file, "damaged")] == [before]
    assert caplog.text.count("set aside") == 1
    assert f"{len(replies)} rows were saved" in caplog.text


@pytest.mark.parametrize("change", ["text = 'rating=1'", "created = 'yesterday'", "reply_model = cast(x'ff' as text)"])
def test_a_row_that_is_not_as_it_was_written_is_asked_again(file, caplog, change):
    fill(file, 10)
    changed(file, f"UPDATE completions SET {change} WHERE key = ?", (key(3),))
    with closing(VerdictCache(file)) as cache:
        assert set(texts(cache, range(10))) == set(range(10)) - {3}
        assert "1 rows aren't as they were written" in caplog.text
        cache.put_many([row(3, "rating=1")])
        assert texts(cache, [3]) == {3: "rating=1"}


def test_a_file_of_another_layout_is_set_aside(file, caplog):
    fill(file, 5)
    changed(file, "PRAGMA user_version = 99")
    with closing(VerdictCache(file)) as cache:
        assert set(texts(cache, range(9))) == set(range(5))
    assert "set aside" in caplog.text
    assert len(beside(file, "damaged")) == 1


NOT_CACHES = {
    "another program's database": lambda file: changed(file, "CREATE TABLE theirs (x)"),
    "another program's file": lambda file: file.write_bytes(b"this is no database, and long enough to be one" * 100),
}


@pytest.mark.parametrize("make", NOT_CACHES.values(), ids=NOT_CACHES)
def test_a_file_of_another_program_is_refused_and_left_alone(file, make):
    file.parent.mkdir()
    make(file)
    before = file.read_bytes()
    for use in (VerdictCache, stats, cache_module.clear, lambda path: cache_module.merge([path], path.parent / "new")):
        with pytest.raises(JudgeError, match="is no verdict cache, and is left alone"):
            use(file)
    assert file.read_bytes() == before


def run(*arguments):
    parser = argparse.ArgumentParser()
    command.register(partial(parser.add_subparsers(required=True).add_parser, "cache"))
    options = parser.parse_args(["cache", *map(str, arguments)])
    return options.handler(options)


def put(file, *rows):
    with closing(VerdictCache(file)) as cache:
        cache.put_many(rows)


def test_stats_count_completions_discounts_and_money_and_clear_needs_a_yes(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(file))
    discounted = [Usage(1_000_000, 0, 200_000), Usage(1_000_000, 100_000).in_a_batch]
    put(file, *(row(number, model="judge", usage=Usage(1000, 2)) for number in range(3)))
    put(file, *(row(number, model="gpt-4o", usage=usage) for number, usage in enumerate(discounted)))
    put(file, row(0, model="red\x1b[31m"))
    assert run("stats", "--file", file) == 0
    assert "  red[31m  lave: 1 completions" in capsys.readouterr().out  # no model acts on the terminal
    assert run("clear") == 1
    assert "Nothing was deleted" in capsys.readouterr().out
    assert run("clear", "--model", "red\x1b[31m", "--yes") == run("stats") == 0
    output = capsys.readouterr().out
    assert f"{file}: 1 completions deleted" in output
    assert "http://x/v1  judge  lave: 3 completions, 3,000 + 6 tokens, no price" in output
    # 0.8 M at 2.5, 0.2 M at 1.25, and half of 2.5 and of 0.1 M at 10
    tokens = "2,000,000 + 100,000 tokens (200,000 from the endpoint's prompt cache, 1,100,000 in batches), 4.00 USD"
    assert f"gpt-4o  lave: 2 completions, {tokens}" in output
    assert f"Prices: {list_prices().origin}" in output
    assert run("stats", "--json") == 0
    assert [judge["money"] for judge in json.loads(capsys.readouterr().out)["judges"]] == [4.0, None]
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", "off")
    with pytest.raises(SettingsError, match="there is no cache"):
        run("stats")


def test_caches_are_merged_into_one(file, tmp_path, capsys):
    source, into = tmp_path / "other.sqlite3", tmp_path / "new" / "merged.sqlite3"
    put(file, *(row(number) for number in range(3)))
    put(source, *(row(number, "rating=3", created=created) for number, created in ((0, 9e9), (1, 1.0), (7, 1.0))))
    assert run("merge", file, source, into, "--output", into) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{file}: 3 completions, 3 copied to {into}",
        f"{source}: 3 completions, 2 copied to {into}",
    ]
    with closing(VerdictCache(into)) as cache:
        assert texts(cache, range(9)) == {0: "rating=3", 1: "rating=2", 2: "rating=2", 7: "rating=3"}
    assert run("merge", file, source, "--output", into) == 0
    assert capsys.readouterr().out.count(" 0 copied") == 2
    with pytest.raises(JudgeError, match="x isn't there"):
        run("merge", tmp_path / "x", "-o", into)
