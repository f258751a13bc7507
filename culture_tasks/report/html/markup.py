"""HTML that can't be injected into: text is escaped unless it was made by these functions."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from culture_tasks.text import storable

if TYPE_CHECKING:
    from collections.abc import Iterable

_VOID = frozenset({"br", "img", "input", "link", "meta"})

Content = str | None
Attribute = str | int | float | bool | None


class Markup(str):
    """Finished HTML. Any other string is text."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """Returns text as HTML, with what HTML can't carry (NUL, half of a surrogate pair) as U+FFFD."""
    return text if isinstance(text, Markup) else Markup(html.escape(storable(text), quote=True))


def joined(parts: Iterable[Content]) -> Markup:
    """Returns one piece of HTML from several; text among them is escaped."""
    return Markup("".join(escaped(part) for part in parts if part is not None))


def tag(name: str, *content: Content, **attributes: Attribute) -> Markup:
    """Returns an element.

    Args:
        name: Its name.
        content: What is in it, in order: text, which is escaped, or HTML; None is left out.
        attributes: Its attributes. An underscore at the end is dropped (``class_``), others are hyphens
            (``aria_sort``). True gives an attribute without a value; False and None leave it out.
    """
    opened = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    if name in _VOID:
        return Markup(f"<{opened}>")
    return Markup(f"<{opened}>{joined(content)}</{name}>")


def name_of(text: str) -> Markup:
    """Returns a name from data, set apart from the direction of the text around it."""
    return tag("bdi", text, dir="auto")


def paragraph(text: str, **attributes: Attribute) -> Markup:
    """Returns a paragraph of text from data, in the direction of its own script."""
    return tag("p", text, dir="auto", **attributes)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'
