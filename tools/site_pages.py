"""What MkDocs calls: CONTRIBUTING.md and CHANGELOG.md become pages of the site, and docstrings are made readable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([^`]+)`")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages: a page for the beginning of CONTRIBUTING.md, and one for each of the recipes after it."""
    files.append(File.generated(config, "changelog.md", content=(ROOT / "CHANGELOG.md").read_text("utf-8")))
    beginning, where, *recipes = _SECTION.split((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    contents = "\n## Recipes\n\n"
    for recipe in recipes:
        title, text = recipe.removeprefix("## ").split("\n", 1)
        name = "-".join(re.findall(r"\w+", title.lower())) + ".md"
        contents += f"- [{title}]({name})\n"
        files.append(
            File.generated(config, f"contributing/{name}", content=f"# {title}\n{_with_links_from_docs(text)}")
        )
    front = _with_links_from_docs(beginning + where) + contents
    files.append(File.generated(config, "contributing/index.md", content=front))
    return files


class Docstrings(griffe.Extension):
    """Docstrings without roles, such as ``:func:``, whose examples are code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrites the docstring of an object."""
        if obj.docstring:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE)


def _with_links_from_docs(text: str) -> str:
    return text.replace("](docs/", "](../").replace("](CHANGELOG.md)", "](../changelog.md)")
