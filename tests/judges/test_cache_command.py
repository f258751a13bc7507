from __future__ import annotations

import argparse
import json
import sqlite3
from contextlib import closing
from functools import partial

import pytest

from culture_tasks.cli import cache as command
from culture_tasks.costs.prices import list_prices
from culture_tasks.errors import JudgeError, SettingsError
from culture_tasks.judges.cache.cache_files import CachedRow
from culture_tasks.judges.cache.verdict_cache import VerdictCache
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.rubric.verdicts import Usage


def put(file, model, completion, number=0, **changes):
    request = ChatRequest("http://x/v1", model, list, {}, texts=number)
    with closing(VerdictCache(file)) as cache:
        cache.put_many([CachedRow(request, "lave", completion, **changes)])
        assert cache.get_many([request.key])[request.key].reply == completion
    return request.key


@pytest.fixture
def file(tmp_path, monkeypatch):
    file = tmp_path / "verdicts.sqlite3"
    for number in range(3):
        put(file, "judge", Completion("rating=2", usage=Usage(1000, 2)), number)
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(file))
    return file


def run(*arguments):
    parser = argparse.ArgumentParser()
    command.register(partial(parser.add_subparsers(required=True).add_parser, "cache"))
    options = parser.parse_args(["cache", *map(str, arguments)])
    return options.handler(options)


def test_stats_count_completions_discounts_and_money(file, tmp_path, capsys):
    for number, usage in enumerate((Usage(1_000_000, 0, 200_000), Usage(1_000_000, 100_000).in_a_batch)):
        put(file, "gpt-4o", Completion("rating=2", usage=usage), number)
    put(file, "red\x1b[31m", Completion("rating=2", usage=Usage(1, 1)))
    assert run("stats", "--file", file) == 0
    assert "  red[31m  lave: 1 completions" in capsys.readouterr().out  # no model acts on the terminal
    assert run("clear", "--model", "red\x1b[31m", "--yes") == run("stats") == 0
    output = capsys.readouterr().out
    assert f"{file}: 5 completions" in output
    assert "http://x/v1  judge  lave: 3 completions, 3,000 + 6 tokens, no price" in output
    # 0.8 M at 2.5, 0.2 M at 1.25, and half of 2.5 and of 0.1 M at 10
    tokens = "2,000,000 + 100,000 tokens (200,000 from the endpoint's prompt cache, 1,100,000 in batches), 4.00 USD"
    assert f"gpt-4o  lave: 2 completions, {tokens}" in output
    assert f"Prices: {list_prices().origin}" in output
    assert run("stats", "--json") == 0
    assert [judge["money"] for judge in json.loads(capsys.readouterr().out)["judges"]] == [4.0, None]
    for action in ("stats", "export", "clear"):
        assert run(action, "--file", tmp_path / "none") == 0
    assert "none: 0 completions" in capsys.readouterr().out


def test_clear_needs_a_yes(file, capsys):
    assert run("clear") == 1
    assert "Nothing was deleted" in capsys.readouterr().out
    assert run("clear", "--yes", "--model", "other") == 0
    assert run("clear", "--yes", "--model", "judge") == 0
    assert "3 completions deleted" in capsys.readouterr().out


def test_export_leaves_out_rows_that_are_not_as_they_were_written(file, tmp_path, capsys, caplog):
    assert run("export") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE completions SET text = 'rating=1' WHERE rowid = 2")
    assert run("export", "-o", tmp_path / "out.jsonl") == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(line["text"], line["model"], line["sampling"]) for line in lines] == [("rating=2", "judge", None)] * 2
    assert "1 rows are not as they were written, and left out" in caplog.text
    with pytest.raises(SettingsError, match="can't write to /dev/null/x"):
        run("export", "-o", "/dev/null/x")


def test_a_file_that_is_no_cache_is_named_and_left_alone(tmp_path, monkeypatch):
    (tmp_path / "x").write_text("no database" * 100)
    merge = ["merge", str(tmp_path / "x"), "--output", str(tmp_path / "merged" / "file")]
    for action in (["stats", "--file"], ["clear", "--yes", "--file"], ["export", "--file"]):
        with pytest.raises(JudgeError, match="is no verdict cache"):
            run(*action, tmp_path / "x")
    with pytest.raises(JudgeError, match="x is no verdict cache"):
        run(*merge)
    (tmp_path / "x").rename(tmp_path / "y")
    with pytest.raises(JudgeError, match="x isn't there"):
        run(*merge)
    assert (tmp_path / "y").is_file()
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", "off")
    with pytest.raises(SettingsError, match="there is no cache"):
        run("stats")


def test_caches_are_merged_into_one(file, tmp_path, capsys):
    source, into = tmp_path / "other.sqlite3", tmp_path / "new" / "merged.sqlite3"
    times = {0: 9e9, 1: 1.0, 7: 1.0, 8: 1.0}
    newer, older, new, damaged = (put(source, "judge", Completion("rating=3"), n, created=times[n]) for n in times)
    with closing(sqlite3.connect(source)) as database, database:
        database.execute("UPDATE completions SET text = 'rating=1' WHERE key = ?", (damaged,))
    assert run("merge", file, source, into, "--output", into) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{file}: 3 completions, 3 copied to {into}"
    assert second == f"{source}: 3 completions, 2 copied to {into}, 1 rows left out that are not as they were written"
    with closing(VerdictCache(into)) as cache:
        replies = {key: answer.reply.text for key, answer in cache.get_many([newer, older, new, damaged]).items()}
    assert replies == {newer: "rating=3", older: "rating=2", new: "rating=3"}
    assert run("merge", file, source, "--output", into) == 0
    assert capsys.readouterr().out.count(" 0 copied") == 2
