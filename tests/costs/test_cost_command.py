"""``culture-tasks cost``: hand-counted tokens and money, before a run and of finished ones."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from support.fault_server import FaultServer, says
from support.written_runs import write_lm_eval

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.cli.main import main
from culture_tasks.harness.records import scorer_of
from culture_tasks.rejudge import estimates
from culture_tasks.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def environment(monkeypatch, fixture_data, tmp_path):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))


@pytest.fixture
def words(monkeypatch):
    """Counts words, so that sums can be checked."""
    monkeypatch.setattr(estimates, "tokens_by_rule", lambda text: len(text.split()))


def cost(capsys, *arguments):
    assert main(["cost", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_before_a_run_tokens_and_money_lie_between_the_least_and_the_most(words, capsys):
    arguments = ("--tasks", "care_zh", "--judge", "openai:gpt-4o")
    [task] = cost(capsys, *arguments)["tasks"]
    rows = task_named("care_zh").data.load(Settings.from_environment()).rows
    asked = [rubric.messages(item) for rubric, item in map(scorer_of("care_zh").expected, rows)]
    # each message counts four tokens more, and each request three
    least = sum(len(message["content"].split()) + 4 for messages in asked for message in messages) + 3 * len(asked)
    most = least + 10 * task_named("care_zh").decoding.max_tokens
    assert (task["questions"], task["verdicts"], task["kept"], task["requests"]) == (10, 10, 0, 10.0)
    assert task["tokens_in"] == {"low": least, "high": most}
    assert task["tokens_out"] == {"low": 50, "high": 10 * 1024}
    assert task["money"]["low"] == pytest.approx((least * 2.5 + 50 * 10) / 1e6)
    assert task["money"]["high"] == pytest.approx((most * 2.5 + 10240 * 10) / 1e6)
    assert task["measured"] is False
    [batch] = cost(capsys, *arguments, "--batch")["tasks"]
    assert batch["money"]["high"] == pytest.approx(task["money"]["high"] / 2)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE", "none")
    with closing(FaultServer()) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def test_of_finished_runs_only_what_the_cache_lacks_costs(words, server, tmp_path, capsys):
    write_lm_eval(tmp_path / "runs", ["care_zh", "care_ja"], lambda prompt, _: prompt)
    arguments = ("--results", tmp_path / "runs", "--judge", "openai:judge")
    before = cost(capsys, *arguments)["tasks"]
    assert [(each["task"], each["verdicts"], each["kept"]) for each in before] == [
        ("care_ja", 10, 0),
        ("care_zh", 10, 0),
    ]
    for each in before:
        assert each["tokens_in"]["low"] == each["tokens_in"]["high"]  # the responses are known
        assert each["tokens_out"] == {"low": 50, "high": 10240}
        assert each["money"] is None
    assert server.requests == []

    server.decide = lambda seen: says("Rating: [[6]]")
    assert main(["rejudge", str(tmp_path / "runs"), "--judge", "openai:judge"]) == 0
    capsys.readouterr()
    sent = len(server.requests)
    after = cost(capsys, *arguments)["tasks"]
    assert [(each["kept"], each["requests"], each["tokens_in"]["high"]) for each in after] == [(10, 0, 0)] * 2
    assert len(server.requests) == sent


def test_kept_replies_tell_the_length_of_others(words, server, tmp_path, capsys):
    def decide(seen):
        reminded = len(seen.body["messages"]) > 2
        asked.append(reminded)
        text = "rating=2" if reminded or asked.count(False) % 2 else "no"
        return says(text, usage={"prompt_tokens": 300, "completion_tokens": 40})

    asked = []
    server.decide = decide
    write_lm_eval(tmp_path / "runs", ["culturalvqa_blind"], lambda prompt, _: prompt)
    assert main(["rejudge", str(tmp_path / "runs"), "--judge", "openai:judge"]) == 0
    capsys.readouterr()
    kept, again = len(asked) - 1, sum(asked)  # the question ahead isn't kept
    assert kept >= 20
    assert again > 0
    [task] = cost(capsys, "--tasks", "culturalvqa_blind", "--judge", "openai:judge")["tasks"]
    assert task["measured"] is True
    assert task["requests"] == pytest.approx(22 * kept / (kept - again), rel=0.1)
    assert task["tokens_out"]["low"] == task["tokens_out"]["high"] == pytest.approx(40 * task["requests"])


def test_the_answer_says_how_it_was_made_and_asks_for_a_price_that_is_missing(tmp_path, capsys):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"currency": "EUR", "models": {"own": {"input": 1, "output": 2}}}), encoding="utf-8")
    arguments = ["cost", "--tasks", "care_zh", "--judge", "openai:gpt-4o"]
    assert main(arguments) == main([*arguments, "--batch"]) == main([*arguments[:-1], "openai:own"]) == 0
    said = capsys.readouterr().out
    for part in (
        "| care_zh | gpt-4o | 10 | 10 | 0 | 10 |",
        "Tokens are counted by a rule",
        "Replies are assumed to have between 5 tokens and their limit",
        "Prices of batches: ",
        'Without a price: own. Give it one with --prices FILE: {"currency"',
    ):
        assert said.count(part) >= 1, part
    assert main([*arguments[:-1], "openai:own", "--prices", str(prices)]) == 0
    said = capsys.readouterr().out
    assert ("| EUR |" in said, "no price" in said) == (True, False)


def test_a_judge_without_an_endpoint_costs_nothing(capsys):
    assert main(["cost", "--tasks", "care_zh", "--judge", "none"]) == 0
    assert "costs are known only of judges behind an endpoint" in capsys.readouterr().out
    assert cost(capsys, "--tasks", "care_zh", "--judge", "lexical")["totals"] == []
