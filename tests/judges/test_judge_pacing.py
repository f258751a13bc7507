"""Pace and patience: limits, outages and load over hours of simulated time, in a loop whose clock jumps."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from typing import NamedTuple

import pytest

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.addresses import Secrets
from culture_tasks.judges.endpoint.asker import Asker, Exchange
from culture_tasks.judges.endpoint.client import Reply
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.grading import Grader, Grading
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.settings import Settings

PATIENCE = 600.0
GRADER = Grader("openai", "http://e/v1", "m", "", Secrets(), Settings(judge_delimiters="off"))
GOOD = Reply(Completion("rating=2", "stop"))


def problem(status, wait=None):
    """What the client makes of an error that may pass; None is a refused connection."""
    return Reply(Problem(f"HTTP {status}", retry=True, overload=status in (429, 503), status=status), wait)


COMPLAINT = (0, problem(429))


class JumpingLoop(asyncio.SelectorEventLoop):
    """Never waits: where nothing happens before a time, it is that time."""

    now = 0.0

    def __init__(self):
        super().__init__()
        select = self._selector.select

        def jump(timeout=None):
            if timeout is None:
                raise RuntimeError("everybody waits, and nothing will ever happen")
            self.now += max(0.0, timeout)
            return select(0)

        self._selector.select = jump

    def time(self):
        return self.now


def in_simulated_time(work):
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(work)


class Replying:
    """An endpoint, as the asker knows it: answers after so many seconds, or as a function of it says.

    Args:
        latency: Makes the seconds that an answer takes.
        instead: Returns another reply to a request, and the seconds that it takes; None for an answer.
    """

    def __init__(self, latency, instead=lambda endpoint, body: None):
        self.latency, self.instead = latency, instead
        self.posts, self.in_flight, self.most_in_flight = [], 0, 0

    @property
    def now(self):
        return asyncio.get_running_loop().time()

    async def post(self, body):
        self.posts.append(self.now)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            seconds, reply = self.instead(self, body) or (self.latency(), GOOD)
            await asyncio.sleep(seconds)
            return reply
        finally:
            self.in_flight -= 1


def limited(rate, *, burst=1, tells=False, latency=0.5):
    """Takes so many requests a second from a bucket that fills; ``tells``: Retry-After comes in whole seconds."""
    level, filled_at = float(burst), 0.0

    def wait(now):
        nonlocal level, filled_at
        level, filled_at = min(burst, level + (now - filled_at) * rate), now
        if level < 1 - 1e-9:
            return (1 - level) / rate
        level -= 1
        return 0.0

    def instead(endpoint, _):
        seconds = wait(endpoint.now)
        return (0.01, problem(429, float(math.ceil(seconds)) if tells else None)) if seconds > 0 else None

    return Replying(lambda: latency, instead)


class Outcome(NamedTuple):
    """How requests ended, in the order of their ends, and when each did."""

    answers: list[Answer]
    ended: list[float]

    @property
    def lost(self):
        return sum(not isinstance(answer.reply, Completion) for answer in self.answers)

    @property
    def seconds(self):
        return max(self.ended)


def run(endpoint, requests, *, concurrency=64):
    """Asks the endpoint as an engine does: so many at a time."""
    random.seed(0)

    async def scenario():
        outcome, done = Outcome([], []), asyncio.Event()

        def deliver(_, answer):
            outcome.answers.append(answer)
            outcome.ended.append(endpoint.now)
            if len(outcome.answers) == requests:
                done.set()

        asker = Asker(lambda: endpoint, deliver, name="judge", concurrency=concurrency, patience=Patience())
        for number in range(requests):
            asker.ask(exchange(str(number)))
        asker.wake()
        await done.wait()
        return outcome

    return in_simulated_time(scenario())


def exchange(text):
    return Exchange([Grading(GRADER, LAVE, JudgeItem(text, ("x",), ""))])


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
@pytest.mark.parametrize("spans", [[(5, 95)], [(0, 590)], [(10, 13), (30, 33), (40, 60)]], ids=str)
def test_an_outage_up_to_the_patience_loses_nothing(spans, status, concurrency):
    endpoint = failing(*spans, status=status)
    outcome = run(endpoint, 12 * concurrency, concurrency=concurrency)
    assert outcome.lost == 0
    # All goes on after it: within a wait after a fault, a request that hangs, and the rounds that are left.
    assert outcome.seconds < spans[-1][1] + 30 + 120 + 60
    # Each that waits asks now and then.
    assert len(endpoint.posts) < 12 * concurrency * (8 + spans[-1][1] / 15)


@pytest.mark.parametrize("status", [None, 503, 429])
def test_a_dead_endpoint_is_given_up_when_patience_ends_for_all_at_once(status):
    endpoint = failing((0, float("inf")), status=status)
    outcome = run(endpoint, 1_000)
    assert outcome.lost == 1_000
    assert PATIENCE <= min(outcome.ended) <= max(outcome.ended) < PATIENCE + 60
    assert "600 s at most (CULTURE_JUDGE_PATIENCE)" in outcome.answers[-1].reply.message
    assert "Its last reply" in outcome.answers[-1].reply.message


def test_a_given_up_endpoint_is_found_to_be_back(caplog):
    caplog.set_level(logging.WARNING)
    endpoint = failing((0, 700))

    async def scenario():
        answers = []
        asker = Asker(
            lambda: endpoint, lambda _, it: answers.append(it), name="judge", concurrency=8, patience=Patience(100)
        )
        for text, seconds in (("first", 129.9), ("at once", 600), ("probe", 10), ("next", 10)):
            asker.ask(exchange(text))
            asker.wake()
            await asyncio.sleep(seconds)
        return answers

    results = in_simulated_time(scenario())
    assert [isinstance(answer.reply, Completion) for answer in results] == [False, False, True, True]
    assert results[1].attempts == 0
    told = [record.getMessage() for record in caplog.records]
    assert [text.split(".")[0] for text in told] == [
        "judge: the endpoint gives no answers, and the judge waits 100 s at most (CULTURE_JUDGE_PATIENCE)",
        "judge: the endpoint answers again",
    ]


@pytest.mark.parametrize(("concurrency", "status"), [(4, None), (16, 503)])
def test_requests_that_fail_alone_end_when_their_own_patience_does_and_hold_up_nobody(status, concurrency):
    poisons, hits = [b"Question: %d\\n" % number for number in (0, 7, 8, 9)], []

    def instead(_, body):
        found = [poison for poison in poisons if poison in body]
        hits.extend(found)
        return (0.5, problem(status)) if found else None

    outcome = run(Replying(lambda: 0.5, instead), 400 * concurrency, concurrency=concurrency)
    assert outcome.lost == 4
    assert all(2 < hits.count(poison) < 60 for poison in poisons)
    assert outcome.seconds < 2.5 * PATIENCE
    assert max(end for end, answer in zip(outcome.ended, outcome.answers, strict=True) if answer.attempts == 1) < 400


@pytest.mark.parametrize("tells", [False, True], ids=["without Retry-After", "with Retry-After"])
@pytest.mark.parametrize("limit", [{"burst": 1}, {"burst": 60}, {"burst": 1, "latency": 5.0}], ids=str)
@pytest.mark.parametrize("rate", [10.0, 1.0, 0.1])
def test_a_rate_limit_loses_nothing_and_is_used_well(rate, limit, tells):
    requests = max(30, int(100 * rate))
    endpoint = limited(rate, tells=tells, **limit)
    outcome = run(endpoint, requests)
    assert outcome.lost == 0
    assert outcome.seconds < 1.3 * requests / rate + limit.get("latency", 0.5)
    # The first burst, the search for the rate, and a trial of more now and then.
    assert len(endpoint.posts) - requests < 64 + 160 + requests / 10


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
