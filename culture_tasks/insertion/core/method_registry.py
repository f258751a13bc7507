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
from culture_tasks.insertion.core.weight_method import WeightMethod

ENTRY_POINTS = "culture_tasks.insertion_methods"
"""The entry-point group of methods from other packages."""

_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def method_names() -> tuple[str, ...]:
    """Returns the names of all methods, without importing any."""
    return tuple(sorted({*methods.folders(), *(point.name for point in entry_points(group=ENTRY_POINTS))}))


def method_class(name: str) -> type[InsertionMethod]:
    """Returns the class of a method."""
    places = {point.value: point for point in entry_points(group=ENTRY_POINTS) if point.name == name}
    if name in methods.folders():
        value = f"{methods.__name__}.{name}.method"
        contents = vars(importlib.import_module(value)).values()
        method = next((found for found in contents if getattr(found, "name", None) == name), None)
    elif not places:
        names = method_names()
        raise SettingsError(
            f"insertion: unknown method {name!r}.{nearest(name, names)} Expected one of {', '.join(names)}."
        )
    else:
        value, point = next(iter(places.items()))
        try:
            method = point.load()
        except Exception as error:  # another package's code may fail in any way
            raise CultureTasksError(
                f"insertion: {value} can't be imported ({error}). Correct that package, or uninstall it."
            ) from error
    if len({value, *places}) > 1:
        raise CultureTasksError(f"insertion: several methods are called {name!r}: {', '.join(places)}. Uninstall one.")
    if not (isinstance(method, type) and issubclass(method, InsertionMethod) and getattr(method, "name", "") == name):
        raise CultureTasksError(f"insertion: {value} is no subclass of InsertionMethod with the name {name!r}.")
    missing = [part for part in ("config_class", "needs_state", "answers_version") if not hasattr(method, part)]
    missing += sorted(method.__abstractmethods__)
    if missing:
        raise CultureTasksError(f"insertion: {value} lacks {', '.join(missing)}.")
    return method


def described(name: str) -> dict[str, Any]:
    """Returns a method's summary, needs and options; of one that breaks the rules, what is wrong."""
    try:
        method = method_class(name)
    except CultureTasksError as error:  # one package's method mustn't hide the others
        return {"name": name, "problem": str(error)}
    about = sys.modules[method.__module__].__doc__ or method.__doc__ or ""
    config = method.config_class
    meanings, schema = attribute_texts(config), config.model_json_schema()
    return {
        "name": name,
        "about": about.strip().partition("\n")[0],
        "package": method.__module__.partition(".")[0],
        "needs_state": method.needs_state,
        "edits_weights": issubclass(method, WeightMethod),
        "other_models": method.other_models,
        "options": [
            {
                "name": option,
                "kind": _kind(schema["properties"][option]),
                "default": None if field.is_required() else field.get_default(call_default_factory=True),
                "meaning": meanings.get(option, ""),
            }
            for option, field in config.model_fields.items()
        ],
    }


def _kind(schema: Mapping[str, Any]) -> str:
    """Returns in words what a JSON schema allows."""
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = str(schema.get("const", schema.get("type", "any")))
    bounds = [f"{words} {schema[bound]:g}" for bound, words in _BOUNDS.items() if bound in schema]
    return ", ".join((kind, *bounds)).replace("null", "none")
