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
    """Rated responses, and the layout of files of them."""

    about: str  # what they are, for the help of a command
    source: Table[Any]
    aliases: Mapping[str, str]  # their names of columns, each with our name of the column
    known_by: frozenset[str]  # columns by which a user's file is known to be in their layout
    categories: Sequence[str]  # in the order of the paper's tables
    category_named: Callable[[str], str | None]  # None for another word; DataError for one that looks misspelt
    rubric_for: Callable[[str], Rubric]
    native_language: Callable[[str], str | None]
    """Gives the English name of the language that a culture, as a row describes it, asks in, where it tells."""
    kind_of_culture: Callable[[str], CultureKind | None]  # as a row describes the culture; None where it doesn't tell
    tests: Sequence[str]  # tasks whose questions a model that learns from rated responses mustn't have seen
    published: Sequence[PublishedAgreement]
    published_in: str  # where the paper reports these figures


class OffersHumanRatings(ABC):
    """A benchmark with responses that people have rated."""

    @abstractmethod
    def human_ratings(self) -> HumanRatings:
        """Returns the rated responses."""
