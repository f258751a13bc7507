"""One folder per insertion method, whose ``__init__`` has the method's label and imports nothing."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def folders() -> tuple[str, ...]:
    """Returns the names of the methods of this package."""
    return tuple(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def labels() -> dict[str, str]:
    """Returns the label of each method, as papers write it, by its name."""
    return {name: str(importlib.import_module(f"{__name__}.{name}").LABEL) for name in folders()}
