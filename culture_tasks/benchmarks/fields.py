"""Types of fields that rows of several benchmarks have: names in more than one spelling, and lists in one field."""

from __future__ import annotations

import ast
import io
import json
import tokenize
from collections.abc import Mapping
from typing import Any

from pydantic import AfterValidator

from culture_tasks.errors import nearest


def spelled(names: Mapping[str, str]) -> AfterValidator:
    """Returns a validator that gives the name for a spelling, of those in ``names``, or a name itself.

    Case, spaces and punctuation don't matter: ``Sub-nationwide`` and ``sub_nationwide`` are one.
    """
    spellings = {_letters(text): name for text, name in [*names.items(), *((name, name) for name in names.values())]}

    def check(text: str) -> str:
        if name := spellings.get(_letters(text)):
            return name
        raise ValueError(f"{nearest(text, names)} Expected one of {', '.join(names)}".strip())

    return AfterValidator(check)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def listed(value: Any) -> Any:
    """Returns the list that a text is, as JSON, Python or NumPy print it; anything but a text as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:  # Python's and NumPy's, which has no commas: as Python, ['a' 'b'] would be one text
        words = [token.string for token in tokenize.generate_tokens(io.StringIO(value.strip()).readline)]
        opening, *inner, closing = (word for word in words if word.strip())
        if opening + closing not in ("[]", "()"):
            raise ValueError("no list")
        return [None if word in ("None", "nan") else ast.literal_eval(word) for word in inner if word != ","]
    except (ValueError, SyntaxError, tokenize.TokenError):
        raise ValueError('Expected a list of texts, such as ["naan", "flatbread"]') from None
