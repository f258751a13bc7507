"""The insertion methods: each folder of :mod:`culture_tasks.insertion.methods` is one, and so is each entry point.

A folder needs ``method.py`` with the method's class, and an ``__init__.py`` with its ``LABEL``. Another package names
its class in the entry-point group ``culture_tasks.insertion_methods``, under the method's name. Nothing else has to be
edited to add one; a method that breaks the rules is reported when it is used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from culture_tasks.docstrings import attribute_texts
from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion import methods
from culture_tasks.insertion.core.insertion_method import InsertionMethod

ENTRY_POINTS = "culture_tasks.insertion_methods"
"""The entry-point group of methods from other packages."""

_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def method_names() -> tuple[str, ...]:
    """Returns the names of all methods, without importing any."""
    return tuple(sorted({*methods.folders(), *(point.name for point in entry_points(group=ENTRY_POINTS))}))


def method_class(name: str) -> type[InsertionMethod]:
    """Returns the class of a method."""
    points = [point for point in entry_points(group=ENTRY_POINTS) if point.name == name]
    places = [*(["culture_tasks"] if name in methods.folders() else []), *(point.value for point in points)]
    if not places:
        names = method_names()
        raise SettingsError(
            f"insertion: unknown method {name!r}.{nearest(name, names)} Expected one of {', '.join(names)}."
        )
    if len(places) > 1:
        raise CultureTasksError(f"insertion: several methods are called {name!r}: {', '.join(places)}. Uninstall one.")
    if points:
        place, advice = f"{places[0]} (entry point of {ENTRY_POINTS})", "Correct that package, or uninstall it."
        try:
            method = points[0].load()
        except Exception as error:  # another package's code may fail in any way
            raise CultureTasksError(f"insertion: {place} can't be imported ({error}). {advice}") from error
    else:
        place, advice = f"methods/{name}/method.py", "Correct it."
        contents = vars(importlib.import_module(f"{methods.__name__}.{name}.method")).values()
        method = next((value for value in contents if getattr(value, "name", None) == name), None)
    if not (isinstance(method, type) and issubclass(method, InsertionMethod) and getattr(method, "name", "") == name):
        raise CultureTasksError(
            f"insertion: {place} has no subclass of InsertionMethod with the name {name!r}. {advice}"
        )
    missing = [part for part in ("config_class", "needs_state", "answers_version") if not hasattr(method, part)]
    missing += sorted(method.__abstractmethods__)
    if missing:
        raise CultureTasksError(f"insertion: {place} lacks {', '.join(missing)}. {advice}")
    return method


def summary(method: type[InsertionMethod]) -> str:
    """Returns what a method does, in a sentence: the first line of its module's docstring, or of the class's."""
    return (sys.modules[method.__module__].__doc__ or method.__doc__ or "").strip().partition("\n")[0]


def options_of(method: type[InsertionMethod]) -> list[dict[str, Any]]:
    """Returns the options of a method: name, default, meaning, and the kind of value, as ``integer, at least 1``."""
    config = method.config_class
    meanings, schema = attribute_texts(config), config.model_json_schema()
    return [
        {
            "name": name,
            "kind": _kind(schema["properties"][name]),
            "default": None if field.is_required() else field.get_default(call_default_factory=True),
            "meaning": meanings.get(name, ""),
        }
        for name, field in config.model_fields.items()
    ]


def _kind(schema: Mapping[str, Any]) -> str:
    """Returns in words what a JSON schema allows."""
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = str(schema.get("const", schema.get("type", "any")))
    bounds = [f"{words} {schema[bound]:g}" for bound, words in _BOUNDS.items() if bound in schema]
    return ", ".join((kind, *bounds)).replace("null", "none")
