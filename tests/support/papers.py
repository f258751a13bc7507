"""Comparing our prompt files with the text of the papers."""

from __future__ import annotations

import re


def wording(text: str) -> str:
    """Returns a text without what extraction from a PDF changes: white space, Markdown's escapes and fences.

    The text of the papers shows ``**Accuracy**`` as bold text whose asterisks are escaped.
    """
    text = text.replace("**\\*\\*", "**").replace("\\*\\***", "**")
    return " ".join(re.sub(r"^```$", "", text, flags=re.MULTILINE).split())


def between(text: str, start: str, end: str) -> str:
    """Returns what stands between two texts, each of which must be there."""
    _, found, rest = text.partition(start)
    inside, found_too, _ = rest.partition(end)
    assert found
    assert found_too
    return inside
