"""Responses that people have rated, which a benchmark may offer: they tell whether a judge agrees with people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from culture_tasks.data.tables import Table
from culture_tasks.judges.rubric.rubrics import Rubric

Dimension = Literal["overall", "language", "category"]  # by which responses are grouped

CultureKind = Literal["native", "foreign", "general"]
"""Whose culture a question is about: that of the language's speakers, another, or none in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedAgreement:
    """Agreement that a paper reports, shown beside the user's."""

    name: str  # in JSON
    raters: str  # who rated, beside the first human rater, as a table's row says it
    dimension: Dimension
    figures: Mapping[str, Mapping[str, str]]  # statistics as printed, by group; "all" is the only group overall


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanRatings:
    """Rated responses, and the layout of files of them.

    Attributes:
        about: What they are, for the help of a command.
        aliases: Their names of columns, each with our name of the column.
        known_by: Columns by which a user's file is known to be in their layout.
        categories: Their categories, in the order of the paper's tables.
        category_named: Gives the category that a text names, or None for any other word; raises DataError for a
            word that looks like a misspelt one.
        native_language: Gives the English name of the language that a culture, as a row describes it, asks in; None
            where it doesn't tell.
        kind_of_culture: Says whose culture it is, as a row describes it; None where it doesn't tell.
        tests: Names of the tasks whose questions a model that learns from rated responses mustn't have seen.
        published_in: Where the paper reports the published figures.
    """

    about: str
    source: Table[Any]
    aliases: Mapping[str, str]
    known_by: frozenset[str]
    categories: Sequence[str]
    category_named: Callable[[str], str | None]
    rubric_for: Callable[[str], Rubric]
    native_language: Callable[[str], str | None]
    kind_of_culture: Callable[[str], CultureKind | None]
    tests: Sequence[str]
    published: Sequence[PublishedAgreement]
    published_in: str


class OffersHumanRatings(ABC):
    """A benchmark with responses that people have rated."""

    @abstractmethod
    def human_ratings(self) -> HumanRatings:
        """Returns the rated responses."""
