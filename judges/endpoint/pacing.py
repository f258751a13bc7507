"""How an endpoint is treated: how many requests at a time, how many a second, and how long it may stay silent.

Three things are learned from its replies, each by one class, and :class:`Gate` joins them inside an event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

Kind = Literal["answer", "limited", "overload", "fault"]
"""What a reply says of the endpoint: that it answers (if only "wrong key"), that requests come too often, that too
many are in flight, or that something else went wrong which may pass."""

# How messages about a silent endpoint begin; the seconds follow.
NO_ANSWERS = "the endpoint gives no answers, and the judge waits"


@dataclass(frozen=True, slots=True)
class Patience:
    """How persistent to be."""

    # Seconds to wait for an endpoint that gives no answer, and to go on with one request that alone fails.
    longest: float = 600.0
    first: float = 0.5  # seconds of the first wait after a fault; each later one is twice as long
    cap: float = 30.0  # longest of these waits in seconds


class Bound:
    """A bound on requests in flight that halves on overload and grows again while all goes well.

    It starts at the ceiling, since most endpoints take what their user configured. One burst of overloaded replies
    counts once: only a request that began after the last cut can cause the next.
    """

    _ROUNDS_TO_RECOVER = 32  # from nothing to the ceiling

    def __init__(self, ceiling: int) -> None:
        self.limit = float(ceiling)
        self._ceiling = ceiling
        self._last_cut = float("-inf")

    def grow(self) -> None:
        """Grows a little."""
        if self.limit < self._ceiling:
            grown = self.limit + max(1.0, self._ceiling / self._ROUNDS_TO_RECOVER) / self.limit
            self.limit = min(self._ceiling, grown)

    def halve(self, began: float, now: float) -> None:
        """Halves."""
        if began >= self._last_cut:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = now


class Rate:
    """Requests a second that an endpoint takes, learned from its complaints of too many (status 429).

    There is no limit until two thirds of the latest requests are turned away: fewer complaints concern their own
    requests alone. Then each complaint about a request that began after the last cut cuts the rate, but not below nine
    tenths of the answers a second over the last minute. Every answer lets it grow.
    """

    _LOWEST, _HIGHEST = 1 / 15, 1_000.0
    _CUT, _GROWTH = 0.85, 1.01
    _LONE_SHARE, _FEWEST = 2 / 3, 64
    _SECONDS, _KNOWN_SHARE = 60.0, 0.9

    def __init__(self) -> None:
        self.value: float | None = None  # requests a second; None where there is no limit
        self._share = 0.0
        self._latest = self._FEWEST
        self._measured = 0.0
        self._measured_at = 0.0
        self._last_cut = float("-inf")
        self._next_start = float("-inf")

    def count_start(self, now: float) -> None:
        """Counts a request that starts."""
        if self.value is not None:
            self._next_start = max(now, self._next_start) + 1 / self.value

    def delay(self, now: float) -> float:
        """Returns seconds until the next request may start."""
        return 0.0 if self.value is None else max(0.0, self._next_start - now)

    def count_answer(self, began: float, now: float) -> None:
        """Counts an answer, and grows."""
        self._share -= self._share / self._latest
        self._measured = self._answers_a_second(now) + 1 / self._SECONDS
        self._measured_at = now
        if self.value is not None and began >= self._last_cut:
            self.value = self.value * self._GROWTH if self.value < self._HIGHEST else None

    def count_complaint(self, began: float, now: float, in_flight: int) -> None:
        """Counts a complaint; the request that it is about is among those in flight."""
        self._latest = max(self._FEWEST, 2 * in_flight)
        self._share += (1 - self._share) / self._latest
        if began < self._last_cut or (self.value is None and self._share < self._LONE_SHARE):
            return
        value = self._CUT * (self.value or 2 * in_flight)
        self.value = max(self._LOWEST, self._KNOWN_SHARE * self._answers_a_second(now), value)
        self._last_cut = now
        self._next_start = now + 1 / self.value

    def _answers_a_second(self, now: float) -> float:
        return self._measured * math.exp((self._measured_at - now) / self._SECONDS)


class Silence:
    """Notices that an endpoint gives no answers, and when that has lasted too long.

    After some more faults than answers the endpoint is out, and only probes are sent, one after a while, until one is
    answered. If the first one after the patience is over fails, the endpoint is given up: requests are refused, except
    for a late probe now and then, whose answer ends it.
    """

    _FAULTS_OF_AN_OUTAGE = 8
    _PROBES_OF_A_SILENCE = 8
    _SECONDS_BETWEEN_LATE_PROBES = 30.0

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.answered_at = float("-inf")
        self.given_up: str | None = None  # why requests are refused
        self._silent_since: float | None = None
        self._surplus_of_faults = 0
        self._out_since: float | None = None
        self._next_probe = float("-inf")

    @property
    def out(self) -> bool:
        """Whether only probes are sent."""
        return self._out_since is not None

    def delay(self, now: float) -> float:
        """Returns seconds until the next request may start."""
        return max(0.0, self._next_probe - now) if self.out else 0.0

    def count_start(self, now: float) -> None:
        """Counts a request that starts: where the endpoint is out, a probe."""
        if self.out:
            self._plan_probe(now)

    def count_answer(self, began: float, now: float) -> None:
        """Counts an answer. One to a request from before the outage doesn't end it: it says nothing of the present."""
        self.answered_at = now
        self._silent_since = None
        if self._out_since is None:
            self._surplus_of_faults = max(0, self._surplus_of_faults - 1)
        elif began >= self._out_since:
            self._out_since = self.given_up = None
            self._surplus_of_faults = 0

    def count_fault(self, began: float, now: float, kind: Kind, pause: float) -> None:
        """Counts a request that was not answered, and the seconds for which the endpoint asked to be left alone."""
        self._silent_since = now if self._silent_since is None else self._silent_since
        longest = self.patience.longest
        self._surplus_of_faults += kind != "limited"
        if pause > longest:
            self._give_up(now, f"the endpoint asks to be left alone for {pause:g} s, and the judge waits")
        elif began >= self._silent_since + longest:
            self._give_up(now, NO_ANSWERS)
        elif not self.out and self._surplus_of_faults >= self._FAULTS_OF_AN_OUTAGE:
            self._out_since = now
            self._plan_probe(now)

    def _give_up(self, now: float, why: str) -> None:
        if self.given_up is None:
            self.given_up = f"{why} {self.patience.longest:g} s at most (CULTURE_JUDGE_PATIENCE)"
            self._out_since = now
            self._plan_probe(now)

    def _plan_probe(self, now: float) -> None:
        if self.given_up is not None:
            self._next_probe = now + self._SECONDS_BETWEEN_LATE_PROBES
            return
        since = now if self._silent_since is None else self._silent_since
        spacing = (now - since) / self._PROBES_OF_A_SILENCE
        self._next_probe = now + min(self.patience.cap, max(self.patience.first, spacing))


class Gate:
    """Lets requests through to an endpoint as it takes them, in order of arrival. To be used in one event loop."""

    def __init__(self, ceiling: int, patience: Patience) -> None:
        self.bound = Bound(ceiling)
        self.rate = Rate()
        self.silence = Silence(patience)
        self.in_flight = 0
        self._resumes_at = float("-inf")
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def delay(self, now: float) -> float | None:
        """Returns seconds until one more request may start; None where another one must end first."""
        if self.in_flight >= int(self.bound.limit):
            return None
        return max(0.0, self._resumes_at - now, self.rate.delay(now), self.silence.delay(now))

    async def enter(self) -> float | None:
        """Waits until one more request may start; returns the time, or None where the endpoint was given up."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not self._waiting and not self._closed and self.delay(now) == 0:
            self._start(now)
            return now
        turn: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(turn)
        self._admit(now)
        return loop.time() if await turn else None

    def leave(self, began: float, kind: Kind | None, pause: float = 0.0) -> None:
        """Ends a request, with None where nothing came of it, and lets the next ones in after the pause it asks for."""
        now = asyncio.get_running_loop().time()
        if kind == "answer":
            self.bound.grow()
            self.rate.count_answer(began, now)
            self.silence.count_answer(began, now)
        elif kind is not None:
            was_out = self.silence.out
            self.silence.count_fault(began, now, kind, pause=pause)
            if kind == "limited":
                self.rate.count_complaint(began, now, in_flight=self.in_flight)
            elif kind == "overload" and not was_out:
                self.bound.halve(began, now)
        if 0 < pause <= self.silence.patience.longest:
            self._resumes_at = max(self._resumes_at, now + pause)
        self.in_flight -= 1
        if self._waiting:
            self._admit(now)

    def close(self) -> None:
        """Admits no further requests."""
        self._closed = True
        self._admit(0.0)

    def _start(self, now: float) -> None:
        self.in_flight += 1
        self.rate.count_start(now)
        self.silence.count_start(now)

    def _admit(self, now: float) -> None:
        delay: float | None = None
        while self._waiting and not self._closed and (delay := self.delay(now)) == 0:
            turn = self._waiting.popleft()
            if not turn.done():
                self._start(now)
                turn.set_result(True)
        while self._waiting and (self._closed or self.silence.given_up is not None):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(False)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and delay:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(delay, lambda: self._admit(loop.time()))
