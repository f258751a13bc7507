"""One vocabulary of places and languages, in which the groups of all benchmarks can be put together.

A place is a country of ISO 3166-1, a part of one of ISO 3166-2, or an entry of this module where neither has it. A
language is one of ISO 639-3. The codes and names of ISO are in a library that takes a while to load, so nothing but
reports needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

_OWN_PLACES = {"arab": "Arab countries"}
"""Places that ISO 3166 doesn't have, by a code of our own."""

_NAMES = {
    "CD": "Democratic Republic of the Congo",
    "FM": "Micronesia",
    "GB-WLS": "Wales",
    "ID-JB": "West Java",
    "MO": "Macau",
    "PS": "Palestine",
    "RU": "Russia",
    "TR": "Turkey",
    "VA": "Vatican City",
}
"""Names of places where the name of ISO 3166 isn't the usual one in English."""

_CODES = {
    **{name: code for code, name in _NAMES.items()},
    "England": "GB-ENG",
    "Macedonia": "MK",
    "Palestinian Territories": "PS",
    "Scotland": "GB-SCT",
    "Timor Leste": "TL",
    "UK": "GB",
}
"""Codes of the names that ISO 3166 doesn't have, or not for a country."""


class Place(NamedTuple):
    """A country, a part of one, or a group of countries that a benchmark asks about as one."""

    code: str  # ISO 3166-1 alpha-2 (``NP``), ISO 3166-2 (``IN-AS``), or a code of this module in small letters
    name: str  # in English
    country: str  # the code of its country; empty for a group of countries


@cache
def place(code: str) -> Place:
    """Returns a place by its code; one that no place has is a KeyError."""
    import pycountry

    if code in _OWN_PLACES:
        return Place(code, _OWN_PLACES[code], "")
    if country := pycountry.countries.get(alpha_2=code):
        code = country.alpha_2
        return Place(code, _NAMES.get(code) or str(getattr(country, "common_name", country.name)), code)
    if part := pycountry.subdivisions.get(code=code):  # type: ignore[no-untyped-call]
        return Place(part.code, _NAMES.get(part.code, part.name), part.country_code)
    raise KeyError(code)


def places(groups: Iterable[str], group_codes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the code of the place of each group: its own code, or that of a country by its name in English.

    Names are in any case, with spaces or underscores; a group without a code that is no such name is a LookupError.
    """
    import pycountry

    ours = {name.lower(): code for name, code in _CODES.items()}
    codes = dict(group_codes or {})
    for group in groups:
        if group not in codes:
            name = group.replace("_", " ").lower()
            codes[group] = ours.get(name) or pycountry.countries.lookup(name).alpha_2
    return codes


def countries() -> dict[str, str]:
    """Returns the codes of all countries by each of their names in English, and of the parts that this module names."""
    import pycountry

    kinds = ("name", "common_name", "official_name")
    spellings = ((getattr(country, kind, ""), country.alpha_2) for country in pycountry.countries for kind in kinds)
    return {**{name: code for name, code in spellings if name}, **_CODES}


_LANGUAGES = {
    "el": "Greek",
    "fil": "Filipino",
    "ms": "Malay",
    "nan": "Min Nan Chinese",
    "sw": "Swahili",
    "yue": "Cantonese",
}
"""Names of languages where the name of ISO 639-3 isn't the usual one in English."""


class Language(NamedTuple):
    """A language in which tasks ask."""

    code: str  # as tasks name it: ISO 639-1 where that has it, else ISO 639-3
    iso_639_3: str
    name: str  # in English


@cache
def language(code: str) -> Language:
    """Returns a language by its code of two or three letters; one that no language has is a KeyError."""
    import pycountry

    entry = pycountry.languages.get(alpha_2=code) if len(code) == 2 else pycountry.languages.get(alpha_3=code)
    if entry is None:
        raise KeyError(code)
    name = _LANGUAGES.get(code) or entry.name.partition(" (")[0]
    return Language(code, entry.alpha_3, name)
