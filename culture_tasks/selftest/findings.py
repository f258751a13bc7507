"""The findings of an examination of a set-up, and their remedies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any, Literal

from culture_tasks.errors import CultureTasksError

State = Literal["ok", "note", "fix"]
"""``note``: only some runs need it. ``fix``: runs fail or score wrongly without it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look found, what to do (empty where nothing is to be done), and the facts for programs."""

    state: State
    found: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def finding_of(look: Callable[[], Finding], redact: Callable[[str], str] = str) -> Finding:
    """Returns what a look found; one that fails is a finding, too.

    Args:
        look: The look; what libraries print meanwhile goes to standard error.
        redact: Takes secrets out of the message of a library's error.
    """
    try:
        with redirect_stdout(sys.stderr):
            return look()
    except CultureTasksError as error:
        return Finding("fix", "can't be used", str(error))
    except Exception as error:  # noqa: BLE001 - whatever is broken here is what the user wants to know
        message = redact(" ".join(str(error).split()))[:300]
        return Finding("fix", f"can't be looked at ({type(error).__name__}{message and f': {message}'})")
