"""Response filters, used by both harnesses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


class KeepAll:
    """Keeps every response of a request, so that repeated runs reach ``process_results`` together.

    Both harnesses keep only the first by default.
    """

    def __init__(self, **_: object) -> None:
        """Takes no arguments; the harnesses pass none or a few of their own."""

    def apply(self, resps: Iterable[Sequence[str]], docs: Any) -> list[list[str]]:  # noqa: ARG002
        """Returns the responses as they are."""
        return [list(responses) for responses in resps]


def responses_of(results: Sequence[Any]) -> list[str]:
    """Returns the responses to one document, whichever way the harness nests them; None becomes an empty one."""
    flat = results[0] if len(results) == 1 and isinstance(results[0], (list, tuple)) else results
    return ["" if response is None else str(response) for response in flat]
