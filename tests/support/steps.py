"""Counting what a function does: how work grows with its input is asserted in steps, which no machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def steps(function: Callable[..., Any], *arguments: Any) -> int:
    """Returns how many functions a call enters, those written in C among them."""
    count = 0

    def entered(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(entered)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return count
