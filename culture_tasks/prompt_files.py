"""Versioned prompt files: a changed text is a new version, and its hash is part of cache keys and results."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

_SLOT = re.compile(r"\{([a-z_]+)\}")  # a slot of a template, such as {question}


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One prompt file: its stem, such as ``lave_user.v1``, and its wording, with slots such as ``{question}``."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Hash of the wording, in hexadecimal."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()

    def fill(self, values: Mapping[str, str]) -> str:
        """Returns the wording with each slot replaced, in one pass: a slot inside a value stays as it is.

        Raises:
            KeyError: If a slot of the file has no value.
        """
        parts = _parts(self.text).copy()
        parts[1::2] = [values[name] for name in parts[1::2]]
        return "".join(parts)


@cache
def _parts(text: str) -> list[str]:
    """Returns the wording between the slots and the names of the slots, in turn."""
    return _SLOT.split(text)


@cache
def load(package: str, name: str) -> PromptFile:
    """Loads ``prompts/<name>.txt`` of a package; the final line break of the file is not part of the wording.

    Raises:
        FileNotFoundError: If there is no such prompt.
    """
    file = resources.files(package) / "prompts" / f"{name}.txt"
    return PromptFile(name, file.read_text(encoding="utf-8").removesuffix("\n"))
