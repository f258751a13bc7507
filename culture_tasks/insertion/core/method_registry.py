"""The insertion methods: each folder of :mod:`culture_tasks.insertion.methods` is one, and so is each entry point.

A folder needs ``method.py`` with the method's class, and an ``__init__.py`` with its ``LABEL``. Another package names
its class in the entry-point group ``culture_tasks.insertion_methods``, under the method's name.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.metadata import entry_points

from culture_tasks.docstrings import attribute_texts
from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion import methods
from culture_tasks.insertion.core.insertion_method import InsertionMethod

ENTRY_POINTS = "culture_tasks.insertion_methods"
"""The entry-point group of methods from other packages."""


def method_names() -> tuple[str, ...]:
    """Returns the names of all methods, without importing any."""
    return tuple(sorted({*methods.folders(), *entry_points(group=ENTRY_POINTS).names}))


def method_class(name: str) -> type[InsertionMethod]:
    """Returns the class of a method."""
    if name in methods.folders():
        contents = vars(importlib.import_module(f"{methods.__name__}.{name}.method")).values()
        ours: type[InsertionMethod] = next(found for found in contents if getattr(found, "name", None) == name)
        return ours
    points = list(entry_points(group=ENTRY_POINTS, name=name))
    if not points:
        names = method_names()
        raise SettingsError(
            f"insertion: unknown method {name!r}.{nearest(name, names)} Expected one of {', '.join(names)}."
        )
    try:
        method: type[InsertionMethod] = points[0].load()
        missing = [part for part in ("config_class", "needs_state", "answers_version") if not hasattr(method, part)]
        missing += sorted(method.__abstractmethods__)
        if not issubclass(method, InsertionMethod) or method.name != name or missing:
            raise TypeError(f"expected a subclass of InsertionMethod called {name!r}; missing: {', '.join(missing)}")
    except Exception as error:  # another package's code may fail in any way
        raise CultureTasksError(
            f"insertion: {points[0].value} can't be used ({error}). Correct that package, or uninstall it."
        ) from error
    return method


def described(name: str) -> str:
    """Returns a method's summary, needs and options as text; of one that breaks the rules, what is wrong."""
    try:
        method = method_class(name)
    except CultureTasksError as error:  # one package's method mustn't hide the others
        return f"{name}\n  Can't be used: {error}"
    about = sys.modules[method.__module__].__doc__ or method.__doc__ or ""
    package, fields = method.__module__.partition(".")[0], method.config_class.model_fields
    meanings = attribute_texts(method.config_class)
    lines = [
        name if package == __package__.partition(".")[0] else f"{name} ({package})",
        f"  {about.strip().partition(chr(10))[0]}",
        f"  Needs a state: culture-tasks insertion fit --method {name} … --set OPTION=VALUE"
        if method.needs_state
        else "  Needs no state." + (" Options are model arguments: OPTION=VALUE." if fields else ""),
    ]
    for option, field in fields.items():
        default = "" if field.is_required() or field.default is None else f"={field.default}"
        kind = inspect.formatannotation(field.annotation)
        lines.append(f"    {option}{default} ({kind}): {meanings.get(option, '')}")
    return "\n".join(lines)
