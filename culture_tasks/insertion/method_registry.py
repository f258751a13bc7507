"""The insertion methods: each folder of :mod:`culture_tasks.insertion.methods` is one.

A folder needs ``config.py`` and ``method.py``, and an ``__init__.py`` that names the method's class as ``METHOD``.
Nothing else has to be edited to add one; a folder that breaks these rules is reported when it is used.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from pydantic import ValidationError

from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion import methods
from culture_tasks.insertion.insertion_method import InsertionMethod, MethodConfig

FILES = ("__init__", "config", "method")
"""Modules in the folder of every method."""


def method_names() -> tuple[str, ...]:
    """Returns the names of all methods, without importing any."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(methods.__path__) if module.ispkg))


def method_class(name: str) -> type[InsertionMethod]:
    """Returns the class of a method.

    Raises:
        SettingsError: If there is no such method.
        CultureTasksError: If its folder breaks the rules.
    """
    known = method_names()
    if name not in known:
        raise SettingsError(f"insertion: unknown method {name!r}.{nearest(name, known)} Known are {', '.join(known)}.")
    found = getattr(importlib.import_module(f"{methods.__name__}.{name}"), "METHOD", None)
    problem = _problem(name, found)
    if problem:
        raise CultureTasksError(f"insertion: methods/{name} {problem}. Correct its __init__.py or method.py.")
    assert isinstance(found, type)
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
        return f"has the name {found.name!r}, not that of its folder"
    if getattr(found, "__abstractmethods__", frozenset()):
        return f"lacks {', '.join(sorted(found.__abstractmethods__))}"
    return None if issubclass(found.config_class, MethodConfig) else "has a config_class that is not a MethodConfig"


def method_config(name: str, options: Mapping[str, object]) -> MethodConfig:
    """Makes a method's options.

    Raises:
        SettingsError: If the method or an option is unknown, or a value is not allowed.
    """
    config_class = method_class(name).config_class
    try:
        return config_class.model_validate(dict(options))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        option = ".".join(str(part) for part in problem["loc"])
        hint = nearest(option, config_class.model_fields) if option not in config_class.model_fields else ""
        raise SettingsError(
            f"insertion: option {option}={problem['input']!r} of {name}: {problem['msg']}.{hint} "
            f"Known are {', '.join(config_class.model_fields) or 'none'}."
        ) from None
