"""How an endpoint is treated: how many requests at a time, how many a second, and how long it may stay silent.

Four things are learned from its replies, each by a class of its own: how many requests in flight serve best
(:class:`Climb`), how many it takes before it calls itself overloaded (:class:`Bound`), how many a second it takes
(:class:`Rate`), and whether it answers at all (:class:`Silence`). :class:`Pace` joins them. All of this is pure logic,
the time passed in; :class:`Gate` applies it inside an event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Literal

Kind = Literal["answer", "limited", "overload", "fault"]
"""What a reply says of the endpoint: that it answers (if only "wrong key"), that requests come too often, that too
many are in flight, or that something else went wrong which may pass."""


NO_ANSWERS = "the endpoint gives no answers, and the judge waits"
"""How messages about a silent endpoint begin; the seconds follow."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How persistent to be.

    Attributes:
        longest: Seconds to wait for an endpoint that gives no answer, and to go on with one request that alone fails.
        first: Seconds of the first wait after a fault; each later one is twice as long.
        cap: Longest such wait in seconds.
    """

    longest: float = 600.0
    first: float = 0.5
    cap: float = 30.0

    def backoff(self, faults: int, luck: float) -> float:
        """Returns seconds to wait after so many faults of a request in a row; luck, from 0 to 1, is the jitter."""
        return min(self.cap, self.first * 2.0 ** min(faults - 1, 60)) * (0.5 + 0.5 * luck)


class Bound:
    """A bound on requests in flight that halves on overload and grows again while all goes well.

    Starts at the ceiling, since most endpoints take what their user configured. One burst of overloaded replies
    counts once: only a request that began after the last cut can cause the next. Going well for about 32 rounds
    takes the bound from nothing to the ceiling.

    Attributes:
        ceiling: Most requests in flight, ever.
        limit: Most requests in flight now.
    """

    _ROUNDS_TO_RECOVER = 32

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self._last_cut = float("-inf")

    def answered(self) -> None:
        """Grows a little."""
        if self.limit < self.ceiling:
            grown = self.limit + max(1.0, self.ceiling / self._ROUNDS_TO_RECOVER) / self.limit
            self.limit = min(self.ceiling, grown)

    def overloaded(self, began: float, now: float) -> None:
        """Halves."""
        if began >= self._last_cut:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = now


class Climb:
    """Finds the number of requests in flight at which most answers a second come; by trying, a little at a time.

    The rate at a limit is the limit over the mean time of an answer (Little's law), measured over a window of requests
    that began under that limit while it was used to the full. Now and then another limit is tried for one window, lower
    or higher; it is kept where the rate is clearly better, and else the old one returns, and the next trial comes
    later and steps less far. While lower limits cost nothing, ever lower ones are tried: beyond the number that an
    endpoint can take, its rate may have collapsed to the same for any number. Where answers take the same time however
    many are in flight, a trial below the ceiling costs a third of one window, and the trials soon become rare. None is
    made while the mean time is below twice that of a request that was alone (the check before inference is one): an
    endpoint whose time grows as 1 + (n / k) ** 2 is at its best where it has doubled.

    Attributes:
        ceiling: Most requests in flight.
        limit: How many may be in flight now.
        target: The best number known, to which an unsuccessful trial returns.
    """

    # A window has answers for half of the limit, at least so many, and more where they vary: see _is_precise.
    _SMALLEST_WINDOW = 16
    _PRECISION = 0.07
    _CLEARLY_BETTER, _NOT_WORSE, _CLEARLY_WORSE = 1.04, 0.88, 0.8
    # Connections are made and models wake up in the first second: it tells nothing of what follows.
    _WARM_UP = 1.0
    # The very first requests count too if the limit was reached soon after they began, as a share of their time: an
    # endpoint that is much too slow at the ceiling isn't waited for twice.
    _SOON = 0.25
    # A trial changes the limit by the factor 2 ** step.
    _FIRST_STEP, _LONGEST_STEP, _SHORTEST_STEP = 0.5, 1.0, 0.25
    _WORTH_A_TRIAL = 2.0
    # Windows to rest after an unsuccessful trial: few, unless it was costly.
    _SHORT_REST, _FIRST_REST, _LONGEST_REST = 4, 16, 128

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = ceiling
        self.target = ceiling
        self._step = self._FIRST_STEP
        self._direction = -1
        self._rest = 1
        self._next_rest = self._FIRST_REST
        self._reference = 0.0
        self._began: float | None = None
        self._opened: float | None = None
        self._lone_began: float | None = None
        self._lone_seconds: float | None = None
        self._reset()
        self._is_first_window = True

    def started(self, now: float, in_flight: int) -> None:
        """Counts a request that starts, itself among those in flight."""
        if self._began is None:
            self._began = now
        self._lone_began = now if in_flight == 1 else None
        if in_flight >= self.limit:
            self._full_at = now
            if self._opened is None:
                self._opened = now

    def answered(self, began: float, now: float) -> None:
        """Counts a request that was answered."""
        seconds = now - began
        if began == self._lone_began:
            self._lone_seconds = seconds if self._lone_seconds is None else min(seconds, self._lone_seconds)
        if self._opened is None or began > self._full_at:
            return
        if began <= self._opened and not (self._is_first_window and self._opened - began < self._SOON * seconds):
            return
        self._answers += 1
        self._seconds += seconds
        self._squares += seconds * seconds
        if self._answers >= max(self.limit / 2, self._SMALLEST_WINDOW) and self._is_precise():
            rate = self.limit * self._answers / max(self._seconds, 1e-9)
            self._reset()
            if self._began is not None and now >= self._began + self._WARM_UP:
                self._judge(rate)

    def _is_precise(self) -> bool:
        """Whether the mean time's standard error is small, or will not be soon."""
        if self._answers >= max(2 * self.limit, 4 * self._SMALLEST_WINDOW):
            return True
        mean = self._seconds / self._answers
        variance = max(0.0, self._squares / self._answers - mean * mean)
        return variance <= self._answers * (self._PRECISION * mean) ** 2

    def disturbed(self) -> None:
        """Gives up a trial and what was measured: something else bounds the requests in flight."""
        self.limit = self.target
        self._reset()

    def _judge(self, rate: float) -> None:
        if self.limit == self.target:
            self._reference = rate
            self._rest -= 1
            if self._rest <= 0 and self.ceiling > 1 and self._is_slowed_down(self.limit / rate):
                self._try()
            return
        gain = rate / self._reference
        if gain > self._CLEARLY_BETTER:
            self.target, self._reference, self._next_rest = self.limit, rate, self._FIRST_REST
        if gain > self._CLEARLY_BETTER or (self._direction < 0 and gain > self._NOT_WORSE and self.limit > 1):
            if self._direction < 0:
                self._step = min(self._LONGEST_STEP, 2 * self._step)
            self._try()
        else:
            self._return(gain)

    def _is_slowed_down(self, seconds: float) -> bool:
        """Whether a mean time at the ceiling is much longer than a lone request's, or nothing is known of that.

        A lone request that took far longer than many together woke the endpoint up: it tells nothing.
        """
        lone = self._lone_seconds
        if lone is None or self.limit < self.ceiling:
            return True
        return not lone / self._WORTH_A_TRIAL <= seconds <= self._WORTH_A_TRIAL * lone

    def _return(self, gain: float) -> None:
        """Ends a trial that didn't pay. What clearly costs something is tried ever more rarely."""
        at_ceiling = self.target == self.ceiling
        if gain < self._CLEARLY_WORSE and (at_ceiling or self._direction > 0):
            self._rest = self._next_rest
            self._next_rest = min(self._LONGEST_REST, 2 * self._next_rest)
        else:
            self._rest = self._SHORT_REST
        self.limit = self.target
        self._direction = -self._direction
        self._step = max(self._SHORTEST_STEP, self._step / 2)

    def _try(self) -> None:
        if self.limit in (1, self.ceiling):
            self._direction = 1 if self.limit == 1 else -1
        tried = round(self.limit * 2.0 ** (self._direction * self._step))
        if tried == self.limit:
            tried += self._direction
        self.limit = min(self.ceiling, max(1, tried))

    def _reset(self) -> None:
        """Begins a window, when there are as many requests in flight as may be."""
        self._is_first_window = False
        self._opened = None
        self._full_at = float("-inf")
        self._answers = 0
        self._seconds = 0.0
        self._squares = 0.0


class Rate:
    """Requests a second that an endpoint takes, learned from its complaints of too many (status 429).

    There is no limit until complaints accumulate: more than eight, and more than a fifth of the latest requests. Fewer
    concern their own requests alone, unless one says how long to wait. Then the limit is half of what was tried, and
    each further complaint about a request that began after the last cut cuts it again: the fewer answers there were in
    between, the more. Every answer lets it grow: fast while it is searched for, and around a known one hardly at first,
    then ever faster.

    Attributes:
        value: Requests a second, or None where there is no limit.
    """

    _LOWEST, _HIGHEST = 1 / 15, 10_000.0
    _SHORTEST_REPLY = 0.05
    # So many complaints without a wait slow nobody else; beyond them, so large a share of the latest requests.
    _MOST_LONE, _LARGEST_LONE_SHARE = 8, 0.2
    # The latest requests: at least half of this number, or those in flight.
    _LATEST = 64
    # So many answers tell the rate; so many complaints with no answer between them, that it must be searched for.
    _ENOUGH, _FRUITLESS = 8, 3
    # Cuts with an answer since the last one, and without.
    _CUTS_IN_SEARCH, _CUTS_OF_KNOWN = (0.7, 0.5), (0.93, 0.7)
    _MOST_OVER_MEASURED = 1.1
    _GROWTH_IN_SEARCH = 1.5
    # Growth with the n-th answer is (n / 250) ** 2: 7 % after 24 of them, double after 50, eightfold after 75.
    _STREAK_OF_KNOWN = 250

    def __init__(self) -> None:
        self.value: float | None = None
        self._known = False
        self._next_start = float("-inf")
        self._last_cut = float("-inf")
        self._measured_from: float | None = None
        self._answers = 0
        self._streak = 0
        self._fruitless = 0
        self._latest = 0
        self._complaints = 0

    def started(self, now: float, in_flight: int) -> None:
        """Counts a request that starts, itself among those in flight."""
        self._latest += 1
        if self._latest > max(self._LATEST, 2 * in_flight):
            self._latest, self._complaints = self._latest // 2, self._complaints // 2
        if self._measured_from is None:
            self._measured_from = now
        if self.value is not None:
            self._next_start = max(now, self._next_start) + 1 / self.value

    def delay(self, now: float) -> float:
        """Returns seconds until the next request may start."""
        return 0.0 if self.value is None else max(0.0, self._next_start - now)

    def answered(self, began: float) -> None:
        """Counts an answer, and grows."""
        self._answers += 1
        if self.value is None or began < self._last_cut:
            return
        self._streak += 1
        self.value *= 1 + (self._streak / self._STREAK_OF_KNOWN) ** 2 if self._known else self._GROWTH_IN_SEARCH
        if self.value > self._HIGHEST:
            self.value = None

    def limited(self, began: float, now: float, in_flight: int, pause: float) -> None:
        """Counts a complaint.

        Args:
            began: When the request began.
            now: When the complaint came.
            in_flight: Requests in flight, this one among them.
            pause: Seconds for which the endpoint asked to be left alone: no request within them would be taken.
        """
        if began < self._last_cut:
            return
        if self.value is None:
            self._complaints += 1
            if not pause and self._complaints <= max(self._MOST_LONE, self._LARGEST_LONE_SHARE * self._latest):
                return
            self._complaints = 0
            self.value = in_flight / max(self._SHORTEST_REPLY, now - began, pause / 2)
        self._fruitless = 0 if self._streak else self._fruitless + 1
        self._known = self._known and self._fruitless < self._FRUITLESS
        if not self._known and self._answers >= self._ENOUGH and self._measured_from is not None:
            measured = self._answers / max(now - self._measured_from, self._SHORTEST_REPLY)
            self.value = max(self.value / 2, min(self.value, self._MOST_OVER_MEASURED * measured))
            self._known = True
        cuts = self._CUTS_OF_KNOWN if self._known else self._CUTS_IN_SEARCH
        self.value = max(self._LOWEST, self.value * cuts[0 if self._streak else 1])
        if self._known or self._answers == 0:
            self._measured_from, self._answers = now, 0
        self._last_cut, self._streak = now, 0
        self._next_start = now + 1 / self.value


class Silence:
    """Notices that an endpoint gives no answers, and when that has lasted too long.

    After some more faults than answers the endpoint is out, and only probes are sent, one after a while, until one is
    answered; the last one when the patience is over. If that fails, the endpoint is given up: requests are refused,
    except for a late probe now and then, whose answer ends it.

    Attributes:
        patience: How persistent to be.
        answered_at: When the last answer came.
        given_up: Why requests are refused, or None.
    """

    _FAULTS_OF_AN_OUTAGE = 8
    _PROBES_OF_A_SILENCE = 8
    _SECONDS_BETWEEN_LATE_PROBES = 30.0

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self.answered_at = float("-inf")
        self.given_up: str | None = None
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

    def started(self, now: float) -> None:
        """Counts a request that starts: where the endpoint is out, a probe."""
        if self.out:
            self._plan_probe(now)

    def answered(self, began: float, now: float) -> None:
        """Counts an answer. One to a request from before the outage doesn't end it: it says nothing of the present."""
        self.answered_at = now
        self._silent_since = None
        if self._out_since is None:
            self._surplus_of_faults = max(0, self._surplus_of_faults - 1)
        elif began >= self._out_since:
            self._out_since = self.given_up = None
            self._surplus_of_faults = 0

    def failed(self, began: float, now: float, kind: Kind, asked_to_wait: float) -> None:
        """Counts a request that was not answered.

        Args:
            began: When it began.
            now: When it failed.
            kind: How.
            asked_to_wait: Seconds for which the endpoint asked to be left alone.
        """
        self._silent_since = now if self._silent_since is None else self._silent_since
        longest = self.patience.longest
        self._surplus_of_faults += kind != "limited"
        if asked_to_wait > longest:
            self._give_up(now, f"the endpoint asks to be left alone for {asked_to_wait:g} s, and the judge waits")
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
        over = since + self.patience.longest
        if now < over:
            self._next_probe = min(self._next_probe, over)


class Pace:
    """When the next request may start.

    Args:
        ceiling: Most requests in flight.
        patience: How persistent to be.

    Attributes:
        bound: What the endpoint takes before it calls itself overloaded.
        climb: What serves best.
        rate: What it takes a second.
        silence: Whether it answers.
        in_flight: Requests in flight now.
    """

    def __init__(self, ceiling: int, patience: Patience) -> None:
        self.bound = Bound(ceiling)
        self.climb = Climb(ceiling)
        self.rate = Rate()
        self.silence = Silence(patience)
        self.in_flight = 0
        self._resumes_at = float("-inf")

    @property
    def limit(self) -> int:
        """Most requests in flight now."""
        return min(int(self.bound.limit), self.climb.limit)

    def delay(self, now: float) -> float | None:
        """Returns seconds until one more request may start; None where another one must end first."""
        if self.in_flight >= self.limit:
            return None
        return max(0.0, self._resumes_at - now, self.rate.delay(now), self.silence.delay(now))

    def start(self, now: float) -> None:
        """Counts a request that starts."""
        self.in_flight += 1
        self.climb.started(now, self.in_flight)
        self.rate.started(now, self.in_flight)
        self.silence.started(now)

    def end(self, began: float, now: float, kind: Kind | None, pause: float = 0.0) -> None:
        """Counts a request that ended.

        Args:
            began: When it started.
            now: When it ended.
            kind: What its reply says of the endpoint; None where it was cancelled.
            pause: Seconds for which the endpoint asked to be left alone.
        """
        if kind == "answer":
            self.bound.answered()
            self.rate.answered(began)
            self.silence.answered(began, now)
            self._measure(began, now)
        elif kind is not None:
            was_out = self.silence.out
            self.silence.failed(began, now, kind, asked_to_wait=pause)
            if kind == "limited":
                self.rate.limited(began, now, in_flight=self.in_flight, pause=pause)
            elif kind == "overload" and not was_out:
                self.bound.overloaded(began, now)
        if 0 < pause <= self.silence.patience.longest:
            self._resumes_at = max(self._resumes_at, now + pause)
        self.in_flight -= 1

    def _measure(self, began: float, now: float) -> None:
        if self.bound.limit < self.climb.limit:
            self.climb.disturbed()
        else:
            self.climb.answered(began, now)


class Gate:
    """Lets requests through to an endpoint as its pace allows, in order of arrival. To be used in one event loop."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def enter(self) -> float | None:
        """Waits until one more request may start; returns the time, or None where the endpoint was given up."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not self._waiting and not self._closed and self.pace.delay(now) == 0:
            self.pace.start(now)
            return now
        turn: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(turn)
        self._admit(now)
        try:
            admitted = await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave(loop.time(), None)
            raise
        return loop.time() if admitted else None

    def leave(self, began: float, kind: Kind | None, pause: float = 0.0) -> None:
        """Ends a request (see :meth:`Pace.end`) and lets the next ones in."""
        now = asyncio.get_running_loop().time()
        self.pace.end(began, now, kind, pause=pause)
        if self._waiting:
            self._admit(now)

    def close(self) -> None:
        """Admits no further requests."""
        self._closed = True
        self._turn_away()

    def _admit(self, now: float) -> None:
        delay: float | None = None
        while self._waiting and not self._closed and (delay := self.pace.delay(now)) == 0:
            turn = self._waiting.popleft()
            if not turn.done():
                self.pace.start(now)
                turn.set_result(True)
        if self._closed or self.pace.silence.given_up is not None:
            self._turn_away()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and delay:
            self._timer = asyncio.get_running_loop().call_later(delay, self._resume)

    def _turn_away(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(False)

    def _resume(self) -> None:
        self._timer = None
        self._admit(asyncio.get_running_loop().time())
