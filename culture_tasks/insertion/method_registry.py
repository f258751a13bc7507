"""The insertion methods: each folder of :mod:`culture_tasks.insertion.methods` is one, and so is each entry point.

A folder needs ``config.py`` and ``method.py``, and an ``__init__.py`` that names the method's class as ``METHOD``.
Another package names its class in the entry-point group ``culture_tasks.insertion_methods``, under the method's name.
Nothing else has to be edited to add one; a method that breaks the rules is reported when it is used.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion import methods
from culture_tasks.insertion.insertion_method import InsertionMethod, MethodConfig

ENTRY_POINTS = "culture_tasks.insertion_methods"
"""The entry-point group of methods from other packages."""

FILES = ("__init__", "config", "method")
"""Modules in the folder of every method."""


def method_names() -> tuple[str, ...]:
    """Returns the names of all methods, without importing any."""
    return tuple(sorted({*_folders(), *_entry_points()}))


def method_class(name: str) -> type[InsertionMethod]:
    """Returns the class of a method.

    Raises:
        SettingsError: If there is no such method.
        CultureTasksError: If it breaks the rules, or two packages have a method of this name.
    """
    folders, others = _folders(), _entry_points().get(name, [])
    if name not in folders and not others:
        known = method_names()
        raise SettingsError(f"insertion: unknown method {name!r}.{nearest(name, known)} Known are {', '.join(known)}.")
    if len(others) + (name in folders) > 1:
        places = [*(["culture_tasks"] if name in folders else []), *(each.value for each in others)]
        raise CultureTasksError(f"insertion: several methods are called {name!r}: {', '.join(places)}. Uninstall one.")
    if others:
        place, advice = f"{others[0].value} (entry point of {ENTRY_POINTS})", "Correct that package, or uninstall it."
        try:
            found = others[0].load()
        except Exception as error:  # another package's code may fail in any way
            raise CultureTasksError(f"insertion: {place} can't be imported ({error}). {advice}") from error
    else:
        place, advice = f"methods/{name}", "Correct its __init__.py or method.py."
        found = getattr(importlib.import_module(f"{methods.__name__}.{name}"), "METHOD", None)
    problem = _problem(name, found)
    if problem:
        raise CultureTasksError(f"insertion: {place} {problem}. {advice}")
    assert isinstance(found, type)
    return found


def _folders() -> tuple[str, ...]:
    return tuple(module.name for module in pkgutil.iter_modules(methods.__path__) if module.ispkg)


def _entry_points() -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for each in entry_points(group=ENTRY_POINTS):
        found.setdefault(each.name, []).append(each)
    return found


def _problem(name: str, found: object) -> str | None:
    if not (isinstance(found, type) and issubclass(found, InsertionMethod)):
        return "has no METHOD that is a subclass of InsertionMethod"
    missing = [
        attribute
        for attribute in ("name", "config_class", "needs_state", "answers_version")
        if not hasattr(found, attribute)
    ]
    if missing:
        return f"has a class without {missing[0]!r}"
    if found.name != name:
        return f"has the name {found.name!r}, not {name!r}"
    if getattr(found, "__abstractmethods__", frozenset()):
        return f"lacks {', '.join(sorted(found.__abstractmethods__))}"
    config: type = found.config_class
    if not issubclass(config, MethodConfig):
        return "has a config_class that is not a MethodConfig"
    unknown = [option for option in found.other_models if option not in config.model_fields]
    return f"names {unknown[0]!r} in other_models, which is none of its options" if unknown else None


def method_config(name: str, options: Mapping[str, object]) -> MethodConfig:
    """Makes a method's options.

    Raises:
        SettingsError: If the method or an option is unknown, or a value is not allowed.
    """
    return method_class(name).read_config(options)
