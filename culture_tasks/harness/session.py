"""The settings of the evaluation that this process is running.

A harness calls hooks with nothing but a document, so the user's settings have to be in a process-wide place. They are
read from the environment when documents are loaded, before any inference, and hold until the next loading.
"""

from __future__ import annotations

from collections.abc import Callable

from culture_tasks.judges.judge import Judge
from culture_tasks.judges.selection import shared_judge
from culture_tasks.settings import Settings


class Session:
    """One evaluation: the user's settings, its judges, and what it has seen so far."""

    def __init__(self, settings: Settings, judge_for: Callable[[str], Judge] | None = None) -> None:
        self.settings = settings
        self.has_explained_nan = False
        self.looks: dict[int, tuple[int, set[int]]] = {}  # how many images of a document were handed out, and not read
        self._judge_for = judge_for or (lambda paper_model: shared_judge(settings, paper_model))
        self._judges: dict[str, Judge] = {}

    def judge(self, paper_model: str) -> Judge:
        """Returns the judge; ``paper_model`` is the default."""
        if paper_model not in self._judges:
            self._judges.setdefault(paper_model, self._judge_for(paper_model))
        return self._judges[paper_model]


_current: Session | None = None


def renew_session() -> Session:
    """Reads the environment again and returns the session that holds from now on; may raise a SettingsError."""
    return hold_session(Session(Settings.from_environment()))


def start_prediction() -> None:
    """Switches grading off until the next loading: the answers are recorded, for ``culture-tasks rejudge``."""
    hold_session(Session(current_session().settings.model_copy(update={"judge": "none"})))


def hold_session(session: Session) -> Session:
    """Has a session hold from now on, and returns it."""
    global _current  # the harness leaves no other way to reach the hooks
    _current = session
    return session


def current_session() -> Session:
    """Returns the session that holds, made on first use."""
    return _current if _current is not None else renew_session()
