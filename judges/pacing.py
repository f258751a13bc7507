"""How many requests may be in flight, and whether an endpoint is worth asking: pure logic, the clock passed in."""

from __future__ import annotations

_ROUNDS_TO_RECOVER = 32


class Pace:
    """A bound on requests in flight that halves on overload and grows again while all goes well.

    Starts at the ceiling, since most endpoints bear what their user configured. One burst of overloaded replies
    counts once: only a request that began after the last cut can cause the next. Going well for about 32 rounds
    takes the bound from nothing to the ceiling.

    Attributes:
        ceiling: Most requests in flight, ever.
        limit: Most requests in flight now.
        in_flight: Requests in flight now.
        resumes_at: Time before which no request may start.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.in_flight = 0
        self.resumes_at = 0.0
        self._last_cut = float("-inf")

    def free(self, now: float) -> bool:
        """Whether one more request may start."""
        return self.in_flight < int(self.limit) and now >= self.resumes_at

    def start(self) -> None:
        """Counts a request that starts."""
        self.in_flight += 1

    def end(self, began: float, now: float, *, overload: bool, pause: float = 0.0) -> None:
        """Counts a request that ended.

        Args:
            began: When it started.
            now: When it ended.
            overload: Whether its reply asks for fewer requests at a time.
            pause: Seconds for which the endpoint asked to be left alone.
        """
        self.in_flight -= 1
        if pause > 0:
            self.resumes_at = max(self.resumes_at, now + pause)
        if not overload:
            self.limit = min(self.ceiling, self.limit + max(1.0, self.ceiling / _ROUNDS_TO_RECOVER) / self.limit)
        elif began >= self._last_cut:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = now


class Breaker:
    """Stops asking an endpoint that has been silent for long, so that a run with a dead judge still ends.

    After ``patience`` seconds with failures alone, requests are refused, except one every ``probe_every`` seconds
    that finds out whether the endpoint is back.
    """

    def __init__(self, patience: float, probe_every: float = 30.0) -> None:
        self._patience = patience
        self._probe_every = probe_every
        self._failing_since: float | None = None
        self._next_probe = 0.0

    def succeeded(self) -> None:
        """The endpoint answered, whatever it said."""
        self._failing_since = None

    def failed(self, now: float) -> None:
        """The endpoint did not answer, or not with anything of use."""
        if self._failing_since is None:
            self._failing_since = now

    def refuses(self, now: float) -> bool:
        """Whether to give up on a request without sending it."""
        if self._failing_since is None or now - self._failing_since < self._patience:
            return False
        if now < self._next_probe:
            return True
        self._next_probe = now + self._probe_every
        return False
