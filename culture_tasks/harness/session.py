"""The settings of the evaluation that this process is running.

A harness calls hooks with nothing but a document, so what the user chose has to be found from a process-wide place. It
is read from the environment when documents are loaded, before any inference, and holds until the next loading.
"""

from __future__ import annotations

import threading

from culture_tasks.judges.judge import Judge
from culture_tasks.judges.selection import shared_judge
from culture_tasks.settings import Settings


class Session:
    """One evaluation.

    Attributes:
        settings: What the user chose.
        said_why_nan: Whether the log has explained scores that are NaN.
    """

    def __init__(self, settings: Settings) -> None:
        """Starts an evaluation with these settings."""
        self.settings = settings
        self.said_why_nan = False
        self._judges: dict[str, Judge] = {}

    def judge(self, paper_model: str) -> Judge:
        """Returns who grades, ``paper_model`` being the default."""
        judge = self._judges.get(paper_model)
        if judge is None:
            judge = self._judges.setdefault(paper_model, shared_judge(self.settings, paper_model))
        return judge


_current: Session | None = None
_lock = threading.Lock()


def renew_session() -> Session:
    """Reads the environment again and returns the session that holds from now on.

    Raises:
        SettingsError: If a variable has a value that is not allowed.
    """
    return start_session(Settings.from_environment())


def start_session(settings: Settings) -> Session:
    """Starts a session with settings of one's own; it holds from now on."""
    global _current  # the harness leaves no other way to reach the hooks
    session = Session(settings)
    with _lock:
        _current = session
    return session


def current_session() -> Session:
    """Returns the session that holds, made on first use."""
    return _current if _current is not None else renew_session()
