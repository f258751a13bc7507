"""Hooks of MkDocs: CONTRIBUTING.md and CHANGELOG.md are pages of the site, and docstrings lose their Sphinx roles."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from markdown.extensions.toc import slugify
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):(?=<code>)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages: a page for the beginning of CONTRIBUTING.md, and one for each of the recipes after it."""
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    files.append(File.generated(config, "changelog.md", content=changes))
    beginning, where, *recipes = _SECTION.split((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    files.append(File.generated(config, "contributing/index.md", content=_with_links_from_docs(beginning + where)))
    for recipe in recipes:
        title, text = recipe.removeprefix("## ").split("\n", 1)
        path = PurePosixPath("contributing") / f"{slugify(title, '-')}.md"
        files.append(File.generated(config, str(path), content=f"# {title}\n{_with_links_from_docs(text)}"))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Removes the names of roles, such as ``:func:``, before code."""
    return _ROLE.sub("", html)


def _with_links_from_docs(text: str) -> str:
    return text.replace("](docs/", "](../").replace("](CHANGELOG.md)", "](../changelog.md)")
