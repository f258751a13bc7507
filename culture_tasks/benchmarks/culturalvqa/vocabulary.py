"""The countries and facets of CulturalVQA, and how data may spell them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

Country = Literal[
    "brazil", "canada", "china", "ethiopia", "germany", "india", "iran", "nigeria", "rwanda", "turkey", "usa"
]
"""The 11 countries (Appendix A)."""

COUNTRIES: tuple[Country, ...] = get_args(Country)

Facet = Literal["clothing", "drinks", "food", "rituals", "traditions"]
"""The 5 facets (abstract and section 5)."""

FACETS: tuple[Facet, ...] = get_args(Facet)

_COUNTRY_SPELLINGS: Mapping[str, Country] = {
    "us": "usa",
    "unitedstates": "usa",
    "unitedstatesofamerica": "usa",
    "america": "usa",
    "turkiye": "turkey",
    "türkiye": "turkey",
    "brasil": "brazil",
    "prchina": "china",
    "peoplesrepublicofchina": "china",
    "islamicrepublicofiran": "iran",
}
_FACET_STEMS: Mapping[str, Facet] = {
    "cloth": "clothing",
    "drink": "drinks",
    "beverage": "drinks",
    "food": "food",
    "ritual": "rituals",
    "tradition": "traditions",
}


def _letters(text: str) -> str:
    """Returns the letters and digits of a text alone: ``United States`` is ``unitedstates``."""
    return re.sub(r"[\W_]", "", text.casefold())


def country_of(text: str) -> Country | None:
    """Returns the country that a text names, or None if it is none of the 11."""
    letters = _letters(text)
    if letters in _COUNTRY_SPELLINGS:
        return _COUNTRY_SPELLINGS[letters]
    return next((country for country in COUNTRIES if letters == country), None)


def facet_of(text: str) -> Facet | None:
    """Returns the facet that a text names by its stem (``Drink``, ``drinks``), or None if it is none of the 5."""
    letters = _letters(text)
    return next((facet for stem, facet in _FACET_STEMS.items() if letters.startswith(stem)), None)
