"""CARE's five cultural categories, their released spellings, and the rubric that grades each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, get_args

from culture_tasks.benchmarks.care.rubrics import ENTITIES_OPINION, LITERACY, NORMS_COMMONSENSE
from culture_tasks.errors import DataError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from culture_tasks.judges.rubric.rubrics import Rubric

Category = Literal["entities", "opinion", "norms", "commonsense", "literacy"]
"""A cultural category (CARE, section 3.1), named and ordered as in the paper's tables."""

CATEGORIES: tuple[Category, ...] = get_args(Category)

RELEASED_NAMES: Mapping[Category, str] = {
    "entities": "Cultural entities",
    "opinion": "Opinion",
    "norms": "Social norms",
    "commonsense": "Cultural commonsense",
    "literacy": "Literacy",
}
"""How the released data spell each category."""

_RUBRICS: Mapping[Category, Rubric] = {
    "entities": ENTITIES_OPINION,
    "opinion": ENTITIES_OPINION,
    "norms": NORMS_COMMONSENSE,
    "commonsense": NORMS_COMMONSENSE,
    "literacy": LITERACY,
}

_SPELLINGS: Mapping[str, Category] = {
    "entities": "entities",
    "entity": "entities",
    "opinion": "opinion",
    "opinions": "opinion",
    "norms": "norms",
    "norm": "norms",
    "commonsense": "commonsense",
    "csense": "commonsense",
    "literacy": "literacy",
}
# What the data put in front of some categories: "culturalentities", "socialnorms".
_QUALIFIER = re.compile(r"^(?:cultural|social)(?=.)")


def category_of(text: str) -> Category:
    """Returns the category that a text names.

    Case, spaces and punctuation don't matter, nor does a leading ``cultural`` or ``social``: ``Cultural entities``,
    ``entities`` and ``CULTURAL_ENTITIES`` are one. The paper's ``C. sense`` is ``commonsense``.

    Args:
        text: A spelling from the data or from the user.

    Raises:
        DataError: If it names none of the five.
    """
    # Letters alone: spaces, hyphens and underscores differ from release to release.
    letters = re.sub(r"[^a-z]", "", text.casefold())
    try:
        return _SPELLINGS[_QUALIFIER.sub("", letters)]
    except KeyError:
        allowed = ", ".join(repr(name) for name in RELEASED_NAMES.values())
        hint = nearest(text, [*RELEASED_NAMES.values(), *CATEGORIES])
        raise DataError(
            f"care: unknown category {text!r}.{hint} Allowed are {allowed}, or {', '.join(CATEGORIES)}."
        ) from None


def rubric_for(category: Category) -> Rubric:
    """Returns the rubric that grades this category (CARE, Appendix C.1: Figures 11-13)."""
    return _RUBRICS[category]
