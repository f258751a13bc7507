"""Faults to survive, one by one and mixed, against a real server on loopback."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest
from support.fault_server import drips, fails, hangs, late, raw, resets, resets_midway, says
from support.judging import BRIEF, ask, ask_all

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE

PASSING = {
    "429 without Retry-After": fails(429),
    "429 with Retry-After": fails(429, {"Retry-After": "0.05"}),
    "429 with Retry-After-Ms": fails(429, {"Retry-After-Ms": "20"}),
    "reset before a reply": resets,
    "reset in the middle of a body": resets_midway,
    "empty body": raw(""),
    "invalid JSON": raw('{"choices": [{"message"'),
    "time-out": hangs,
    "slow drip": drips,
}
NO_TEMPERATURE = fails(400, message="Unsupported parameter: 'temperature'", param="temperature")
ELSEWHERE = raw("", 307, {"Location": "http://127.0.0.1:9/"})


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING)
def test_a_passing_fault_costs_one_more_request_and_a_lasting_one_the_patience(server, judge_for, items, fault):
    first, second = items(2)
    server.script(fault, says())
    verdict = ask(judge_for(judge_timeout=0.1), first)
    assert (verdict.outcome, verdict.score, verdict.attempts) == ("scored", 2.0, 2)
    assert len(server.requests) == 2
    server.script(fault)
    verdict = ask(judge_for(patience=BRIEF, judge_timeout=0.1), second)
    assert (verdict.outcome, verdict.score, verdict.attempts) == ("failed", None, len(server.requests) - 2)
    assert verdict.attempts > 1
    assert "0.5 s at most (CULTURE_JUDGE_PATIENCE)" in verdict.error
    assert "\n" not in verdict.error


FAILED = ("failed", None, 1, False)
UNPARSABLE, SCORED = ("unparsable", None, 2, True), ("scored", 2.0, 1, False)
ENDINGS = {
    "401": ([fails(401)], FAILED, "wrong or missing key: something is wrong"),
    "redirects": ([ELSEWHERE], ("failed", None, 3, False), "redirects elsewhere"),
    "a redirect between good replies": ([ELSEWHERE, says()], ("scored", 2.0, 2, False), ""),
    "a body too long": ([raw("x" * 3_000_000), says()], ("scored", 2.0, 2, False), ""),
    "cut off once": ([says("rating=1, but", "length"), says("rating=2")], ("scored", 2.0, 2, True), ""),
    "a quoted rating once": (  # each reply is read by itself
        [says("rating=1. The candidate tried to inject 'rating=2'."), says("rating=1")],
        ("scored", 1.0, 2, True),
        "",
    ),
    "unreadable twice": ([says("no idea")], UNPARSABLE, "no rating that can be read without doubt"),
    "an empty reply once": ([says("  \n"), says("rating=2")], ("scored", 2.0, 2, False), ""),
    "nothing but thoughts": ([says(None, reasoning="It fits.")], ("unparsable", None, 4, True), "no rating"),
    "a failure when asked again": ([says("no idea"), fails(401)], ("failed", None, 2, True), ""),
    "no Unicode": (
        [raw('{"model": "m\\ud800", "choices": [{"message": {"content": "\\ud800 rating=2"}}]}')],
        SCORED,
        "",
    ),
    "content in parts": ([says([{"text": "rating"}, {"text": "=2"}])], SCORED, ""),
}


@pytest.mark.parametrize(("replies", "ending", "error"), ENDINGS.values(), ids=ENDINGS)
def test_other_replies_end_a_verdict_or_ask_again_once(server, judge_for, item, replies, ending, error):
    server.script(*replies)
    verdict = ask(judge_for(), item)
    assert (verdict.outcome, verdict.score, verdict.attempts, verdict.asked_again) == ending
    assert error in (verdict.error or "")
    assert len(server.requests) == verdict.attempts


def test_a_wait_beyond_the_patience_ends_all_requests_at_once(server, judge_for, items):
    server.script(fails(503, {"Retry-After": "3600"}))
    verdicts = ask_all(judge_for(judge_concurrency=4), items(100))
    assert {verdict.outcome for verdict in verdicts} == {"failed"}
    assert {verdict.attempts for verdict in verdicts} == {0, 1}
    assert all("left alone for 3600 s" in verdict.error for verdict in verdicts)
    assert len(server.requests) <= 4


def test_an_unreadable_reply_is_asked_again_with_a_reminder(server, judge_for, item):
    server.script(says("Looks right to me."), says("rating=2", model="judge-2024"))
    verdict = ask(judge_for(), item)
    assert (verdict.score, verdict.asked_again, verdict.attempts) == (2.0, True, 2)
    assert (verdict.usage.prompt_tokens, verdict.usage.completion_tokens) == (600, 10)
    assert verdict.reply_model == "judge-2024"
    first, second = (request.body["messages"] for request in server.requests)
    assert second == first + LAVE.reminder_messages("Looks right to me.")
    server.script(says("The candidate", "model_length"), says())
    assert ask(judge_for(judge_cache="off"), item).score == 2.0
    assert "cut off" in server.requests[-1].body["messages"][-1]["content"]


@pytest.mark.parametrize("replies", [[says()], [says("hm"), says()]], ids=["once", "with a reminder"])
def test_identical_requests_in_flight_are_asked_once(server, judge_for, item, replies):
    server.script(*(late(0.2, reply) for reply in replies))
    verdicts = ask_all(judge_for(), [item] * 50)
    assert len(server.requests) == len(replies)
    assert {(verdict.score, verdict.asked_again) for verdict in verdicts} == {(2.0, len(replies) > 1)}
    assert sum(verdict.attempts for verdict in verdicts) == len(replies)


def test_a_verdict_is_handed_over_while_replies_keep_coming(server, judge_for, items):
    server.decide = lambda request: late(0.002, says())
    judge = judge_for(judge_concurrency=2)
    first, *_ = [judge.submit(LAVE, item) for item in items(2_000)]
    assert first.verdict().outcome == "scored"
    assert len(server.requests) < 2_000


def test_replies_on_their_way_when_a_judge_is_closed_are_kept(server, judge_for, items):
    arrived = threading.Semaphore(0)

    def decide(request):
        arrived.release()
        return late(0.1, says())

    server.decide = decide
    judge = judge_for(judge_concurrency=3)
    tickets = [judge.submit(LAVE, item) for item in items(50)]
    for _ in range(3):
        arrived.acquire()
    judge.close()
    server.decide = lambda request: says()
    assert Counter(ticket.verdict().outcome for ticket in tickets) == {"scored": 3, "failed": 47}
    assert sum(verdict.attempts == 0 for verdict in ask_all(judge_for(judge_concurrency=3), items(50))) == 3
    assert len(server.requests) == 50


@pytest.mark.slow
def test_thirty_percent_faults_over_two_thousand_requests_lose_invent_and_repeat_nothing(server, judge_for, items):
    chance, answered = random.Random(7), Counter()
    faults = [
        *PASSING.values(),
        *(fails(status) for status in (408, 409, 500, 502, 504, 529)),
        NO_TEMPERATURE,
        raw("<html>Welcome</html>"),
        ELSEWHERE,
        raw("x" * 3_000_000),
        says(None),
        says("<think>It is", "length"),
        says(None, reasoning="It fits."),
        says("Rating: 2 or 1"),
        says("The candidate", "length"),
    ]
    ends = {"filter": fails(400, code="content_filter"), "another model": says(model="judge-2024")}

    def decide(request):
        number = int(request.text.split("What is dish ")[1].split("?")[0])
        if number % 100 in (7, 8):
            answered[number] += 1
            return ends["filter" if number % 100 == 7 else "another model"]
        fault = chance.choice(faults) if chance.random() < 0.3 else None
        if (fault is ELSEWHERE and chance.random() < 0.9) or "temperature" not in request.body:
            fault = None if fault in (ELSEWHERE, NO_TEMPERATURE) else fault  # thrice in a row a redirect doesn't pass
        if fault is None:
            answered[number] += 1
        return fault or says(f"What the candidate says, {number}, fits.\nrating={1 + number % 2}")

    server.decide = decide
    verdicts = ask_all(judge_for(judge_timeout=0.5, judge_concurrency=64), items(2000))
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    assert outcomes["refused"] == 20
    assert outcomes["failed"] == 0
    assert outcomes["unparsable"] < 40  # two bad replies in a row
    for number, verdict in enumerate(verdicts):
        if verdict.outcome == "scored":
            assert verdict.score == (2.0 if number % 100 == 8 else 1.0 + number % 2)
            assert number % 100 == 8 or f" {number}, fits" in verdict.completion
    assert max(answered.values()) == 1  # nothing that was answered is paid for twice
    assert sum(verdict.attempts for verdict in verdicts) == len(server.requests)
