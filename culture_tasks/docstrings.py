"""The texts on attributes in the docstrings of this project's classes, for help texts and the docs."""

from __future__ import annotations

import re
from inspect import cleandoc


def attribute_texts(cls: type) -> dict[str, str]:
    """Returns the text on each attribute in the Google docstrings of a class and its bases, on one line each."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        _, _, section = cleandoc(base.__doc__ or "").partition("\nAttributes:\n")
        # "    name: what it means", up to the next name, an empty line or the end
        for name, text in re.findall(r"^    (\w+): (.*?)(?=\n    \w+: |\n\n|\Z)", section, re.S | re.M):
            texts[name] = " ".join(text.replace("``", "`").split())
    return texts
