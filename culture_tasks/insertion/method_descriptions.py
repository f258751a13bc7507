"""What a user has to know of an insertion method before using it: its options, and what it needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from culture_tasks.docstrings import attribute_texts
from culture_tasks.insertion.insertion_method import InsertionMethod
from culture_tasks.insertion.method_registry import method_class

_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a method.

    Attributes:
        name: Its name.
        kind: Which values it takes, in words, such as ``integer, at least 1``.
        default: Its default.
        meaning: What it does.
    """

    name: str
    kind: str
    default: Any
    meaning: str


@dataclass(frozen=True, slots=True)
class MethodDescription:
    """A method.

    Attributes:
        name: Its name.
        about: What it does, in a sentence.
        package: The package that it comes from.
        needs_state: Whether it is fitted first, which is when its options are chosen.
        edits_weights: Whether it changes the weights of the model.
        other_models: Options that name models which it loads beside the model.
        options: Its options.
    """

    name: str
    about: str
    package: str
    needs_state: bool
    edits_weights: bool
    other_models: tuple[str, ...]
    options: tuple[Option, ...]


def described(name: str) -> MethodDescription:
    """Describes a method.

    Raises:
        SettingsError: If there is no such method.
        CultureTasksError: If it breaks the rules.
    """
    method = method_class(name)
    return MethodDescription(
        name=name,
        about=_first_line(sys.modules[method.__module__].__doc__) or _first_line(method.__doc__),
        package=method.__module__.partition(".")[0],
        needs_state=method.needs_state,
        edits_weights=method.edits_weights,
        other_models=method.other_models,
        options=tuple(_options(method)),
    )


def _options(method: type[InsertionMethod]) -> Iterator[Option]:
    meanings = attribute_texts(method.config_class)
    schema = method.config_class.model_json_schema()
    for name, field in method.config_class.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        yield Option(name, _kind(schema["properties"][name]), default, meanings.get(name, ""))


def _kind(schema: Mapping[str, Any]) -> str:
    """Returns in words what a JSON schema allows."""
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = str(schema.get("const", schema.get("type", "any")))
    bounds = [f"{words} {schema[bound]:g}" for bound, words in _BOUNDS.items() if bound in schema]
    return ", ".join((kind, *bounds)).replace("null", "none")


def _first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]
