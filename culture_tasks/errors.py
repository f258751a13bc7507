"""Every error that culture-tasks raises on purpose.

A message says who complains, what was found, what is allowed and what to do. All errors derive from
:class:`CultureTasksError`, so that a command line can print the message without a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

WAYS_OUT = (
    "Either set CULTURE_JUDGE=openai:<model> with OPENAI_API_KEY (and OPENAI_BASE_URL for any compatible server, such "
    "as `vllm serve`); or set CULTURE_JUDGE=none to record the responses now and grade them later with "
    "`culture-tasks rejudge`, which can also load a judge itself (--judge lm_eval:<backend>,pretrained=<model>). "
    "(CULTURE_JUDGE=lexical grades offline by text overlap: good for a trial run, not for a result.)"
)
"""What to do when no judge is configured, or the judge doesn't work."""


class CultureTasksError(Exception):
    """Base of all errors of this package."""


class DataError(CultureTasksError):
    """Benchmark data that can't be used: names the file, the row, the field, the value and the expected one."""


class DataUnavailableError(DataError):
    """No data where they were expected."""


class SettingsError(CultureTasksError):
    """A setting with a value that is not allowed."""


class JudgeError(CultureTasksError):
    """A judge that can't be used."""


class JudgeNotConfiguredError(JudgeError):
    """No judge was named and none can be assumed."""


class JudgeUnreachableError(JudgeError):
    """The judge's endpoint refused the key, the model or the connection."""


class ImagesNotShownError(CultureTasksError):
    """A model that isn't shown all images of a document, so that its answer says nothing."""


class MissingExtraError(CultureTasksError):
    """An optional dependency is needed and not installed."""

    def __init__(self, needed_for: str, package: str, extra: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'culture-tasks[{extra}]'"
        )


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns a hint with the nearest of the names, or an empty string."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def hint(name: str, names: Sequence[str]) -> str:
    """Returns the nearest of the names to an unknown one, and the first twenty of all; empty without any."""
    more = ", …" if len(names) > 20 else ""
    return f"{nearest(name, names)} There are {', '.join(names[:20])}{more}." if names else ""
