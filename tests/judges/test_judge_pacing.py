"""Pace and patience: limits, outages and load over hours of simulated time, and the parts of the pace one by one."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest
from support.simulated import GOOD, Limited, Simulated, in_simulated_time, problem, run

from culture_tasks.judges.completions import ChatRequest, Completion, Problem
from culture_tasks.judges.endpoint.asker import Asker
from culture_tasks.judges.endpoint.client import Reply
from culture_tasks.judges.endpoint.pacing import Patience

PATIENCE = 600.0
COMPLAINT = (0, problem(429))


class Replying(Simulated):
    """Answers after so many seconds, or as a function of it says.

    Args:
        latency: Makes the seconds that an answer takes.
        instead: Returns another reply to a request, and the seconds that it takes; None for an answer.
    """

    def __init__(self, latency, instead=lambda endpoint, body: None):
        super().__init__()
        self.latency, self.instead = latency, instead

    async def reply(self, body):
        seconds, reply = self.instead(self, body) or (self.latency(), GOOD)
        await asyncio.sleep(seconds)
        return reply


def failing(*spans, status=None):
    """Fails within spans of time: refuses connections (None), answers with a status, or ``hangs``."""
    chance = random.Random(1)
    hanging = Reply(Problem("no reply within 120 s", retry=True, overload=True))
    fault = (120, hanging) if status == "hangs" else (0.01, problem(status))
    return Replying(
        lambda: chance.uniform(0.5, 1.5),
        lambda endpoint, _: fault if any(begin <= endpoint.now < end for begin, end in spans) else None,
    )


@pytest.mark.parametrize("concurrency", [1, 64])
@pytest.mark.parametrize("status", [None, 503, "hangs"])
@pytest.mark.parametrize("seconds", [90, 600])
def test_an_outage_up_to_the_patience_loses_nothing_and_is_probed_with_few(seconds, status, concurrency):
    endpoint = failing((5, 5 + seconds), status=status)
    outcome = run(endpoint, 12 * concurrency, concurrency=concurrency)
    assert outcome.lost == 0
    # All goes on after it, within the time between two probes, or of one that hangs; a bound that was halved recovers.
    assert outcome.seconds < 5 + seconds + 120 + 60 + 60
    # Requests on their way when it begins, some faults until it is noticed, and the probes.
    assert sum(6 <= post < 5 + seconds for post in endpoint.posts) <= concurrency + 60


@pytest.mark.parametrize(
    ("spans", "status"), [([(0, 590)], 503), *(([(10, 13), (30, 33), (40, 60)], status) for status in (None, 503))]
)
def test_faults_from_the_beginning_and_in_bursts_lose_nothing(spans, status):
    endpoint = failing(*spans, status=status)
    assert run(endpoint, 3_000).lost == 0
    assert len(endpoint.posts) < 3_000 + 64 * 4 + 200


@pytest.mark.parametrize("status", [None, 503, 429])
def test_a_dead_endpoint_is_given_up_when_patience_ends_for_all_at_once(status):
    endpoint = failing((0, float("inf")), status=status)
    outcome = run(endpoint, 1_000)
    assert outcome.lost == 1_000
    assert PATIENCE <= min(outcome.ended) <= max(outcome.ended) < PATIENCE + 60
    assert "600 s at most (CULTURE_JUDGE_PATIENCE)" in outcome.answers[-1].reply.message
    assert "Its last reply" in outcome.answers[-1].reply.message
    assert len(endpoint.posts) < 64 + 150


def test_a_given_up_endpoint_is_found_to_be_back(caplog):
    caplog.set_level(logging.WARNING)
    endpoint = failing((0, 700))

    async def scenario():
        asker = Asker(lambda: endpoint, name="judge", concurrency=8, patience=Patience(100))
        first = [await asker.ask(request(text)) for text in ("first", "at once")]
        await asyncio.sleep(700)
        return first + [await asker.ask(request(text)) for text in ("probe", "next")]

    results = in_simulated_time(scenario())
    assert [isinstance(answer.reply, Completion) for answer in results] == [False, False, True, True]
    assert results[1].attempts == 0
    told = [record.getMessage() for record in caplog.records]
    assert [text.split(".")[0] for text in told] == [
        "judge: the endpoint gives no answers, and the judge waits 100 s at most",
        "judge: the endpoint gives no answers, and the judge waits 100 s at most (CULTURE_JUDGE_PATIENCE)",
        "judge: the endpoint answers again",
    ]


def request(text):
    return ChatRequest("e", "m", [{"role": "user", "content": text}], {})


@pytest.mark.parametrize(("concurrency", "status"), [(4, None), (16, 503)])
def test_requests_that_fail_alone_end_when_their_own_patience_does_and_hold_up_nobody(status, concurrency):
    poisons, hits = [b'"content":"%d"' % number for number in (0, 7, 8, 9)], []

    def instead(_, body):
        found = [poison for poison in poisons if poison in body]
        hits.extend(found)
        return (0.5, problem(status)) if found else None

    outcome = run(Replying(lambda: 0.5, instead), 400 * concurrency, concurrency=concurrency)
    assert outcome.lost == 4
    assert all(2 < hits.count(poison) < 60 for poison in poisons)
    assert outcome.seconds < 2.5 * PATIENCE
    assert max(end for end, answer in zip(outcome.ended, outcome.answers, strict=True) if answer.attempts == 1) < 400


LIMITS = {
    "a bucket of one": {"burst": 1},
    "a bucket of ten": {"burst": 10},
    "a bucket of sixty": {"burst": 60},
    "slow answers": {"burst": 1, "latency": 5.0},
    "windows of a minute": {"window": 60.0},
}


@pytest.mark.parametrize("tells", [False, True], ids=["without Retry-After", "with Retry-After"])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("rate", [10.0, 0.1])
def test_a_steady_rate_limit_loses_nothing_and_is_used_well(rate, limit, tells):
    requests = max(30, int(200 * rate))
    endpoint = Limited(rate, tells=tells, **limit)
    outcome = run(endpoint, requests)
    assert outcome.lost == 0
    # Retry-After comes in whole seconds, longer than ten a second need; a window without one is found out by trying.
    most = 1.6 if (tells and rate > 1) or (endpoint.window and not tells) else 1.25
    assert outcome.seconds < most * requests / rate + 60
    # The first burst, the search for the rate, and a trial of more now and then; within a window that is used up, more.
    spared = 10 if tells or endpoint.window is None else 1
    assert len(endpoint.posts) - requests < 64 + 120 + requests / spared


def test_an_endpoint_that_does_not_slow_down_is_driven_at_the_ceiling():
    endpoint = Replying(lambda: 0.2)
    assert run(endpoint, 2_560).seconds == pytest.approx(2_560 * 0.2 / 64)
    assert endpoint.most_in_flight == 64


@pytest.mark.parametrize(("concurrency", "share"), [(8, 0.3), (64, 0.3), (128, 0.05)])
def test_a_lone_complaint_delays_its_own_request_alone(concurrency, share):
    chance, requests = random.Random(1), 25 * concurrency
    endpoint = Replying(lambda: chance.uniform(0.07, 0.13), lambda *_: COMPLAINT if chance.random() < share else None)
    outcome = run(endpoint, requests, concurrency=concurrency)
    assert outcome.lost == 0
    # 25 rounds of 0.1 s, and the waits of a request that was refused seven times in a row: 61.5 s at most.
    rounds = 1.2 * 25 * 0.1 / (1 - share)
    assert outcome.seconds < rounds + 61.5
    assert sorted(outcome.ended)[int(0.9 * requests)] < rounds


@pytest.mark.parametrize("status", [429, 503])
def test_a_bound_on_requests_at_a_time_is_learned(status):
    endpoint = Replying(lambda: 1.0, lambda it, _: (0, problem(status)) if it.in_flight > 8 else None)
    outcome = run(endpoint, 1_000)
    assert outcome.lost == 0
    assert outcome.seconds < 1.6 * 1_000 / 8
    assert len(endpoint.posts) < 1_300


def test_a_wait_up_to_the_patience_is_waited_for():
    endpoint = Replying(lambda: 0.1, lambda it, _: (0.1, problem(429, 590.0 - it.now)) if it.now < 590 else None)
    assert run(endpoint, 500).lost == 0
    assert len(endpoint.posts) == 64 + 500
