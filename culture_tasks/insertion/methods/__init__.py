"""One folder per insertion method, whose ``__init__`` says what tables call it and imports nothing.

``LABEL`` is the method's label. ``ROW`` is the place of its row in the papers' tables; a method without one isn't among
the papers' methods.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def folders() -> tuple[str, ...]:
    """Returns the names of the methods of this package."""
    return tuple(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


@cache
def labels() -> dict[str, str]:
    """Returns the label of each method, as papers write it, by its name."""
    return {name: str(importlib.import_module(f"{__name__}.{name}").LABEL) for name in folders()}


@cache
def paper_rows() -> tuple[str, ...]:
    """Returns the methods of the papers' tables, in the order of their rows."""
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in folders()}
    rows = {name: int(module.ROW) for name, module in modules.items() if hasattr(module, "ROW")}
    return tuple(sorted(rows, key=lambda name: rows[name]))
