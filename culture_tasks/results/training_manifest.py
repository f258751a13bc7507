"""``manifest.json``: the sources of a folder of preference data, and so the training data of a model."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from culture_tasks.errors import DataError
from culture_tasks.plain_files import read_plain
from culture_tasks.text import tokens

FILE_NAME = "manifest.json"
FORMAT: Literal[1] = 1
"""Version of the layout; raised with every change that an older reader would misread."""


class _ManifestPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrainingSource(_ManifestPart):
    """Where responses came from: a table of rated rows, or the results of a model on a task.

    Attributes:
        name: Name of the file or Hub data set, without its folder.
        fingerprint: Hash of the questions, responses and ratings that were read.
        responses: Number of rated responses that were read.
        model: The model that answered; empty for rows, which have several, as is ``task``.
    """

    kind: Literal["rows", "results"]
    name: str
    fingerprint: str
    responses: int
    model: str = ""
    task: str = ""


class RatingOrigin(_ManifestPart):
    """Who rated the responses: people, a judge, or another column of the rows.

    Attributes:
        name: ``people``, the judge as ``backend:model``, or the column's name.
        judges: The judge's identity with each rubric, as its records say it; empty unless a judge rated.
        scale: Lowest and highest rating; None where the data don't say.
    """

    kind: Literal["people", "judge", "column"]
    name: str
    judges: tuple[Mapping[str, Any], ...] = ()
    scale: tuple[float, float] | None = None


class NearDuplicate(_ManifestPart):
    """A question to train on, by its fingerprint, that is much like an item of a test.

    The similarity is the share of their words and pairs of words that both have, 1 being all.
    """

    question: str
    task: str
    item: str
    similarity: float


class Rule(_ManifestPart):
    """How pairs were made of ratings.

    Attributes:
        pairs: ``paper``: best against worst, one pair per question; ``all``: every two responses with different
            ratings.
        min_gap: Smallest difference of ratings in a pair.
        languages: Languages kept; empty means all, as for ``categories``.
        culture: Which questions were drawn, in equal numbers (CARE, section 4.5); None means all.
        fraction: Share of the training questions that was kept; smaller ones are part of larger ones.
        dev: Share of the questions that was set apart for development.
        hold_out: Tasks whose questions were left out.
        test_questions: Whether questions of tests were kept, as the user asked.
        plain: Whether rows hold text, rather than messages.
    """

    pairs: Literal["paper", "all"] = "paper"
    min_gap: float = 0.0
    languages: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    culture: Literal["native", "foreign", "mixed"] | None = None
    fraction: float = 1.0
    dev: float = 0.1
    hold_out: tuple[str, ...] = ()
    test_questions: bool = False
    plain: bool = False


class Manifest(_ManifestPart):
    """The sources of a folder of preference data.

    Attributes:
        commits: The commit of each data set that was read from the Hub, of tests too.
        seed: Seed of every draw.
        counts: Numbers of questions, responses, pairs and rows that were left out, by name.
        files: SHA-256 of each data file, by its path in the folder.
        items: Fingerprints of the questions to train on (see :func:`question_fingerprint`).
        dev_items: Fingerprints of the questions for development.
        tested_items: Items of tests among both, by task; empty unless the user asked for test questions.
        own_data: Whether tests were read from the user's own data rather than from the benchmark's release.
        near_duplicates: Questions among both that were kept, with the nearest item of each test.
    """

    format: Literal[1] = FORMAT
    sources: tuple[TrainingSource, ...]
    commits: Mapping[str, str] = Field(default_factory=dict)
    rated_by: RatingOrigin
    rule: Rule
    seed: int
    counts: Mapping[str, int]
    files: Mapping[str, str] = Field(default_factory=dict)
    items: tuple[str, ...]
    dev_items: tuple[str, ...] = ()
    tested_items: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    own_data: bool = False
    near_duplicates: tuple[NearDuplicate, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Reads a manifest, or that of a folder; a DataError says that it is missing, broken, or of a later version."""
        file = path / FILE_NAME if path.is_dir() else path
        try:
            return cls.model_validate_json(read_plain(file))
        except OSError as error:
            raise DataError(
                f"{file}: can't be read ({error.strerror}). Name a folder that `culture-tasks preferences build` wrote."
            ) from None
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            field = ".".join(map(str, problem["loc"]))
            if field == "format" and problem["type"] != "missing":
                raise DataError(
                    f"{file}: has the format {problem['input']!r:.40}; this version reads {FORMAT}. "
                    "Use the version of culture-tasks that wrote it."
                ) from None
            where = f", field {field!r}" if field else ""
            raise DataError(
                f"{file}{where}: not a manifest of `culture-tasks preferences build` ({problem['msg']}). "
                "The file is damaged, or not ours."
            ) from None

    def as_json(self) -> str:
        """Returns the file's text: the same for the same content."""
        return self.model_dump_json(indent=1) + "\n"


def normalised(question: str) -> str:
    """Returns a question without case, punctuation, width and Arabic diacritics."""
    return " ".join(tokens(question)) or unicodedata.normalize("NFKC", question).strip()


@lru_cache(maxsize=1_000)  # the rows of a question mostly follow each other
def question_fingerprint(question: str) -> str:
    """Returns the identity of a question: the first 16 digits of the SHA-256 of :func:`normalised`."""
    return hashlib.sha256(normalised(question).encode("utf-8", "replace")).hexdigest()[:16]
