"""How an endpoint is treated: how many requests at a time and how many a second, as its complaints tell."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How persistent to be."""

    # Seconds to wait for an endpoint that gives no answer, and to go on with one request that alone fails.
    longest: float = 600.0
    first: float = 0.5  # seconds of the first wait after a fault; each later one is twice as long
    cap: float = 30.0  # longest of these waits in seconds


class Pace:
    """What an endpoint takes: requests in flight, requests a second, and pauses. All times are in seconds.

    The bound on requests in flight begins at the ceiling, halves on overload, and grows again while all goes well. One
    burst of overloaded replies counts once: only a request that began after the last cut can cause the next.

    There is no limit of requests a second until two thirds of the latest requests are turned away (status 429): fewer
    complaints concern their own requests alone. Then each complaint about a request that began after the last cut cuts
    the rate, but not below nine tenths of the answers a second over the last minute. Every answer lets it grow.
    """

    _ROUNDS_TO_RECOVER = 32  # from no request in flight to the ceiling
    _LOWEST, _HIGHEST = 1 / 15, 1_000.0
    _CUT, _GROWTH = 0.85, 1.01
    _LONE_SHARE, _FEWEST = 2 / 3, 64
    _SECONDS, _KNOWN_SHARE = 60.0, 0.9

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self.open()

    def open(self) -> None:
        """Forgets what was learned."""
        self.bound = float(self._ceiling)  # requests in flight
        self._rate: float | None = None  # requests a second; None where there is no limit
        self._share = 0.0  # of the latest requests that were turned away
        self._latest = self._FEWEST
        self._answers = 0.0  # answers a second, at the last answer
        self._answered_at = 0.0
        self._last_cut = self._last_halved = self._next_start = self._resumes_at = -math.inf

    def delay(self, now: float) -> float:
        """Returns how long the next request has to wait; 0 or less if it may start."""
        return max(self._resumes_at, -math.inf if self._rate is None else self._next_start) - now

    def start(self, now: float) -> None:
        """Counts a request that starts."""
        if self._rate is not None:
            self._next_start = max(now, self._next_start) + 1 / self._rate

    def pause(self, until: float) -> None:
        """Lets nothing start until then."""
        self._resumes_at = max(self._resumes_at, until)

    def count_answer(self, began: float, now: float) -> None:
        """Counts an answer, if only "wrong key", to a request that began then."""
        self._share -= self._share / self._latest
        self._answers = self._answers_a_second(now) + 1 / self._SECONDS
        self._answered_at = now
        if self._rate is not None and began >= self._last_cut:
            self._rate = self._rate * self._GROWTH if self._rate < self._HIGHEST else None
        if self.bound < self._ceiling:
            grown = self.bound + max(1.0, self._ceiling / self._ROUNDS_TO_RECOVER) / self.bound
            self.bound = min(self._ceiling, grown)

    def count_limit(self, began: float, now: float, in_flight: int) -> None:
        """Counts one of the requests in flight that came too early."""
        self._latest = max(self._FEWEST, 2 * in_flight)
        self._share += (1 - self._share) / self._latest
        if began <= self._last_cut or (self._rate is None and self._share < self._LONE_SHARE):
            return
        rate = self._CUT * (self._rate or 2 * in_flight)
        self._rate = max(self._LOWEST, self._KNOWN_SHARE * self._answers_a_second(now), rate)
        self._last_cut, self._next_start = now, now + 1 / self._rate

    def count_overload(self, began: float, now: float) -> None:
        """Counts a request that was one too many at a time."""
        if began >= self._last_halved:
            self.bound = max(1.0, self.bound / 2)
            self._last_halved = now

    def _answers_a_second(self, now: float) -> float:
        return self._answers * math.exp((self._answered_at - now) / self._SECONDS)
