"""How an endpoint is treated: how many requests at a time and how many a second, as its complaints tell."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How persistent to be."""

    # Seconds to wait for an endpoint that gives no answer, and to go on with one request that alone fails.
    longest: float = 600.0
    first: float = 0.5  # seconds of the first wait after a fault; each later one is twice as long
    cap: float = 30.0  # longest of these waits in seconds


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
        self._share = 0.0  # of the latest requests that were turned away
        self._latest = self._FEWEST
        self._answers = 0.0  # answers a second, at the last answer
        self._answered_at = 0.0
        self._last_cut = -math.inf

    def count_answer(self, began: float, now: float) -> None:
        """Counts an answer, and grows."""
        self._share -= self._share / self._latest
        self._answers = self._answers_a_second(now) + 1 / self._SECONDS
        self._answered_at = now
        if self.value is not None and began >= self._last_cut:
            self.value = self.value * self._GROWTH if self.value < self._HIGHEST else None

    def count_complaint(self, began: float, now: float, in_flight: int) -> bool:
        """Counts a complaint about one of the requests in flight; returns whether the rate was cut."""
        self._latest = max(self._FEWEST, 2 * in_flight)
        self._share += (1 - self._share) / self._latest
        if began < self._last_cut or (self.value is None and self._share < self._LONE_SHARE):
            return False
        value = self._CUT * (self.value or 2 * in_flight)
        self.value = max(self._LOWEST, self._KNOWN_SHARE * self._answers_a_second(now), value)
        self._last_cut = now
        return True

    def _answers_a_second(self, now: float) -> float:
        return self._answers * math.exp((self._answered_at - now) / self._SECONDS)


class Gate:
    """Lets requests through to an endpoint as it takes them, in order of arrival. To be used in one event loop.

    The bound on requests in flight begins at the ceiling, halves on overload, and grows again while all goes well. One
    burst of overloaded replies counts once: only a request that began after the last cut can cause the next.
    """

    _ROUNDS_TO_RECOVER = 32  # from nothing to the ceiling

    def __init__(self, ceiling: int) -> None:
        self.rate = Rate()
        self._ceiling = ceiling
        self._bound = float(ceiling)
        self._in_flight = 0
        self._last_halved = self._next_start = self._resumes_at = -math.inf
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()

    async def enter(self) -> float:
        """Waits until one more request may start; returns the time."""
        loop = asyncio.get_running_loop()
        if self._turn.locked() or self._in_flight >= int(self._bound) or self._delay(loop.time()) > 0:
            async with self._turn:
                while (delay := self._delay(loop.time())) > 0 or self._in_flight >= int(self._bound):
                    self._room.clear()
                    await (asyncio.sleep(delay) if delay > 0 else self._room.wait())
                self._start(loop.time())
        else:
            self._start(loop.time())
        return loop.time()

    def _delay(self, now: float) -> float:
        return max(self._resumes_at, -math.inf if self.rate.value is None else self._next_start) - now

    def _start(self, now: float) -> None:
        self._in_flight += 1
        if self.rate.value is not None:
            self._next_start = max(now, self._next_start) + 1 / self.rate.value

    def leave(self) -> None:
        """Ends a request, however it ended."""
        self._in_flight -= 1
        self._room.set()

    def count_answer(self, began: float, now: float) -> None:
        """Counts an answer, if only "wrong key"."""
        self.rate.count_answer(began, now)
        if self._bound < self._ceiling:
            grown = self._bound + max(1.0, self._ceiling / self._ROUNDS_TO_RECOVER) / self._bound
            self._bound = min(self._ceiling, grown)

    def count_limit(self, began: float, now: float) -> None:
        """Counts a request that came too early."""
        if self.rate.count_complaint(began, now, self._in_flight + 1) and self.rate.value:
            self._next_start = now + 1 / self.rate.value

    def count_overload(self, began: float, now: float) -> None:
        """Counts a request that was one too many at a time."""
        if began >= self._last_halved:
            self._bound = max(1.0, self._bound / 2)
            self._last_halved = now

    def open(self) -> None:
        """Forgets what was learned."""
        self.rate, self._bound, self._resumes_at = Rate(), float(self._ceiling), -math.inf

    def pause(self, until: float) -> None:
        """Lets nothing through until then."""
        self._resumes_at = max(self._resumes_at, until)
