"""The manifest of preference data: which items of tests are among the training data of a model."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from culture_tasks.errors import DataError
from culture_tasks.plain_files import read_plain
from culture_tasks.text import tokens

FILE_NAME = "manifest.json"
FORMAT: Literal[1] = 1
"""Version of the layout; raised with every change that an older reader would misread."""


class Manifest(BaseModel, extra="ignore", frozen=True):
    """What results need to know of a manifest, which says more about the data.

    Attributes:
        tested_items: Items of tests among the training data, by task.
        own_data: Whether tests were read from the user's own data rather than from the benchmark's release.
    """

    format: Literal[1]
    tested_items: Mapping[str, tuple[str, ...]]
    own_data: bool

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Reads a manifest, or that of a folder; a DataError says that it is missing, broken, or of a later version."""
        file = path / FILE_NAME if path.is_dir() else path
        try:
            return cls.model_validate_json(read_plain(file))
        except OSError as error:
            problem = f"can't be read ({error.strerror})"
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = ", ".join(filter(None, ("not a manifest", ".".join(map(str, first["loc"])), first["msg"])))
        raise DataError(
            f"{file}: {problem}. Expected the manifest, format {FORMAT}, of a folder that `culture-tasks preferences "
            "build` wrote."
        )


@lru_cache(maxsize=1_000)  # the rows of a question mostly follow each other
def question_fingerprint(question: str) -> str:
    """Returns the identity of a question: the same without case, punctuation, width and Arabic diacritics."""
    normalised = " ".join(tokens(question)) or unicodedata.normalize("NFKC", question).strip()
    return hashlib.sha256(normalised.encode("utf-8", "replace")).hexdigest()[:16]
