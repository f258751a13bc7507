"""What the docstrings of this project's classes say of their attributes, for help texts and the README."""

from __future__ import annotations

import re
from inspect import cleandoc


def attribute_texts(described: type) -> dict[str, str]:
    """Returns what a class and those that it is made from say of each attribute, on one line each.

    Args:
        described: A class with a Google docstring. What it says comes before what its bases say.
    """
    found: dict[str, str] = {}
    for each in reversed(described.__mro__):
        found |= _attributes(cleandoc(each.__doc__ or ""))
    return found


def _attributes(docstring: str) -> dict[str, str]:
    _, _, section = docstring.partition("\nAttributes:\n")
    # "    name: what it means", up to the next name, an empty line or the end
    pairs = re.findall(r"^    (\w+): (.*?)(?=\n    \w+: |\n\n|\Z)", section, re.S | re.M)
    return {name: " ".join(text.replace("``", "`").split()) for name, text in pairs}
