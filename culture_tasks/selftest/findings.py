"""What an examination of a set-up found, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any, Literal

from culture_tasks.errors import CultureTasksError

State = Literal["ok", "note", "fix"]
"""``note`` is for what only some runs need, ``fix`` for what stands in the way."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look found, what to do (empty where nothing is to be done), and the facts for programs."""

    state: State
    found: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def finding_of(look: Callable[[], Finding], shown: Callable[[str], str] = str) -> Finding:
    """Returns what a look found; one that fails is a finding, too.

    Args:
        look: The look; what libraries print meanwhile goes to standard error.
        shown: Makes the message of a library's error presentable, such as without secrets.
    """
    try:
        with redirect_stdout(sys.stderr):
            return look()
    except CultureTasksError as error:
        return Finding("fix", "can't be used", str(error))
    except Exception as error:  # noqa: BLE001 - whatever is broken here is what the user wants to know
        message = shown(" ".join(str(error).split()))[:300]
        return Finding("fix", f"can't be looked at ({type(error).__name__}{message and f': {message}'})")
