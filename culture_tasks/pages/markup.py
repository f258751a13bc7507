"""Markup of pages that ask nothing of the network: every text is escaped, and a policy lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

from culture_tasks.text import inert

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


_PARAGRAPHS = str.maketrans(dict.fromkeys("\x1c\x1d\x1e\x85\u2028\u2029", "\n"))
"""Separators at which browsers let the direction of a name in ``<bdi>`` reach the text after it."""


def as_markup(text: str) -> Markup:
    """Returns text that is HTML, or a style, a script or JSON of ours, and so isn't escaped again."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - callers pass what templates or this package made


def templates_of(package: str, folder: str = "templates") -> Environment:
    """Returns the environment of a package's templates, which escapes texts and refuses names that it doesn't know.

    Characters that HTML can't carry, NUL and halves of surrogate pairs, become U+FFFD; separators of paragraphs become
    line breaks; other controls and marks of direction are left out.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: inert(value.translate(_PARAGRAPHS)) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def content_security_policy(style: str, script: str) -> str:
    """Returns the policy of a page with this style and this script, and nothing else that runs or loads."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def asset(package: str, name: str) -> str:
    """Returns a text file of a package, such as a style or a script."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
