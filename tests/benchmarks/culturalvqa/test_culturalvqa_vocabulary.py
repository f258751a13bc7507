"""The 11 countries and 5 facets, in the spellings that data may have."""

import pytest
from support.papers import printed

from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS, country_of, facet_of


def test_there_are_eleven_countries_and_five_facets():
    countries, facets = (
        printed("culturalvqa", listed).strip().replace("and ", "").split(", ") for listed in ("countries", "facets")
    )
    assert {country_of(name) for name in countries} == set(COUNTRIES)
    assert {facet_of(name) for name in facets} == set(FACETS)
    assert (len(COUNTRIES), len(FACETS)) == (11, 5)


@pytest.mark.parametrize("country", COUNTRIES)
def test_case_space_and_underscores_of_a_country_do_not_matter(country):
    assert country_of(country) == country_of(f" {country.upper()}_ ") == country_of(country.title()) == country


@pytest.mark.parametrize(
    ("text", "country"),
    [
        ("U.S.A.", "usa"),
        ("US", "usa"),
        ("United States", "usa"),
        ("united_states_of_america", "usa"),
        ("Türkiye", "turkey"),
        ("TÜRKİYE", "turkey"),
        ("Brasil", "brazil"),
        ("People's Republic of China", "china"),
        ("Islamic Republic of Iran", "iran"),
    ],
)
def test_other_names_of_countries(text, country):
    assert country_of(text) == country


@pytest.mark.parametrize("text", ["", "Peru", "Indiana", "China, India", "Niger", "中国", "usa canada"])
def test_what_is_none_of_the_eleven_is_none(text):
    assert country_of(text) is None


@pytest.mark.parametrize(
    ("text", "facet"),
    [
        ("Drink", "drinks"),
        ("beverages", "drinks"),
        ("Clothes", "clothing"),
        ("FOOD", "food"),
        ("ritual", "rituals"),
        ("Tradition", "traditions"),
        ("traditions_and_customs", "traditions"),
        ("", None),
        ("music", None),
        ("seafood", None),
    ],
)
def test_a_facet_is_known_by_its_stem(text, facet):
    assert facet_of(text) == facet
