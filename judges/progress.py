"""How far a judge is: a progress line while somebody waits for long, and warnings that count instead of repeating."""

from __future__ import annotations

import logging
import sys
import threading

from tqdm import tqdm

from culture_tasks.judges.verdicts import Verdict

logger = logging.getLogger(__name__)

_PATIENCE = 3.0
_SECONDS_BETWEEN_UPDATES = 1.0


class Progress:
    """Counts verdicts asked for and given.

    Args:
        name: Who grades, as shown.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._asked = 0
        self._given = 0
        self._without_score: dict[str, int] = {}

    def submitted(self) -> None:
        """Counts a verdict that was asked for."""
        self._asked += 1

    def given(self, verdict: Verdict) -> None:
        """Counts a verdict that is there, and warns at the first, tenth, hundredth, … without a score."""
        self._given += 1
        if verdict.outcome == "scored":
            return
        count = self._without_score[verdict.outcome] = self._without_score.get(verdict.outcome, 0) + 1
        if count == 10 ** (len(str(count)) - 1):
            logger.warning("%s: %d %s so far; the last: %s", self._name, count, verdict.outcome, verdict.error)

    def waiting(self, event: threading.Event) -> None:
        """Waits for the event; shows a line if that takes long."""
        if event.wait(_PATIENCE):
            return
        # One line at a time; without a terminal there is none.
        with self._lock, tqdm(desc=self._name, unit="verdict", file=sys.stderr, leave=False, disable=None) as line:
            while not event.wait(_SECONDS_BETWEEN_UPDATES):
                line.total = self._asked
                line.update(self._given - line.n)
