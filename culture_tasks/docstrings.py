"""What the docstrings of this project's classes say of their attributes, for help texts and the README."""

from __future__ import annotations

import re
from inspect import cleandoc


def attribute_texts(described: type) -> dict[str, str]:
    """Returns what a class and its bases say of each attribute in Google docstrings, on one line each."""
    texts: dict[str, str] = {}
    for one in reversed(described.__mro__):
        _, _, section = cleandoc(one.__doc__ or "").partition("\nAttributes:\n")
        # "    name: what it means", up to the next name, an empty line or the end
        for name, text in re.findall(r"^    (\w+): (.*?)(?=\n    \w+: |\n\n|\Z)", section, re.S | re.M):
            texts[name] = " ".join(text.replace("``", "`").split())
    return texts
