"""What a caller waits with for a verdict, and what is said while verdicts come."""

from __future__ import annotations

import logging
import os
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress

from tqdm import tqdm

from culture_tasks.judges.grading import Grading
from culture_tasks.judges.rubric.verdicts import Verdict

logger = logging.getLogger(__name__)

_SECONDS_WITHOUT_A_LINE = 3.0
_SECONDS_BETWEEN_UPDATES = 1.0
_making_a_future = threading.Lock()


class GradingTicket:
    """A verdict in the making. Tickets are many: a future is made only for one that somebody waits for."""

    __slots__ = ("_future", "_pid", "_progress", "_verdict", "grading")

    def __init__(self, grading: Grading, progress: JudgingProgress) -> None:
        self.grading = grading
        self._pid = os.getpid()
        self._progress = progress
        self._verdict: Verdict | None = None
        self._future: Future[None] | None = None
        progress.submitted += 1

    def settle(self, *, quietly: bool = False) -> None:
        """Hands the grading's verdict out; quietly where nobody waits for it."""
        self._verdict = self.grading.verdict
        if self._future is not None and not self._future.done():
            self._future.set_result(None)
        if self._verdict is not None and not quietly:
            self._progress.count(self._verdict)

    def verdict(self) -> Verdict:
        """Waits for the verdict."""
        if self._verdict is None:
            if self._pid != os.getpid():
                return Verdict("failed", error="asked before this process was forked: no answer will come here")
            with _making_a_future:
                future = self._future = self._future or Future()
            # A verdict that came before the future was there is seen here, one that comes later ends the wait.
            if self._verdict is None:
                self._progress.wait(future)
        assert self._verdict is not None
        return self._verdict


class JudgingProgress:
    """How far a judge is: a progress line during a long wait, and warnings that count instead of repeating."""

    def __init__(self, name: str) -> None:
        self.submitted = 0
        self._name = name
        self._lock = threading.Lock()
        self._verdicts = 0
        self._without_score: dict[str, int] = {}

    def count(self, verdict: Verdict) -> None:
        """Counts a verdict that is there, and warns at the first, tenth, hundredth, … without a score."""
        self._verdicts += 1
        if verdict.outcome == "scored":
            return
        count = self._without_score[verdict.outcome] = self._without_score.get(verdict.outcome, 0) + 1
        if count == 10 ** (len(str(count)) - 1):
            logger.warning("%s: %d %s so far; the last: %s", self._name, count, verdict.outcome, verdict.error)

    def wait(self, future: Future[None]) -> None:
        """Waits for a verdict; shows a line if that takes long."""
        with suppress(TimeoutError):
            future.result(_SECONDS_WITHOUT_A_LINE)
            return
        # One line at a time; without a terminal there is none.
        with self._lock, tqdm(desc=self._name, unit="verdict", file=sys.stderr, leave=False, disable=None) as line:
            while not future.done():
                with suppress(TimeoutError):
                    future.result(_SECONDS_BETWEEN_UPDATES)
                line.total = self.submitted
                line.update(self._verdicts - line.n)
