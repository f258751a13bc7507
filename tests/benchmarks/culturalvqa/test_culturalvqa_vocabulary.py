"""The 11 countries and 5 facets, in the spellings that data may have."""

from support.papers import printed

from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS, country_of, facet_of


def test_there_are_eleven_countries_and_five_facets():
    countries, facets = (
        printed("culturalvqa", listed).strip().replace("and ", "").split(", ") for listed in ("countries", "facets")
    )
    assert {country_of(name) for name in countries} == set(COUNTRIES)
    assert {facet_of(name) for name in facets} == set(FACETS)
    assert (len(COUNTRIES), len(FACETS)) == (11, 5)


def test_countries_are_known_in_other_spellings_and_by_other_names():
    for country in COUNTRIES:
        assert country_of(country) == country_of(f" {country.upper()}_ ") == country_of(country.title()) == country
    others = {
        "U.S.A.": "usa",
        "united_states_of_america": "usa",
        "TÜRKİYE": "turkey",
        "Brasil": "brazil",
        "People's Republic of China": "china",
        "Islamic Republic of Iran": "iran",
    } | dict.fromkeys(["", "Peru", "Indiana", "China, India", "Niger", "中国", "usa canada"])
    assert {text: country_of(text) for text in others} == others


def test_a_facet_is_known_by_its_stem():
    facets = {
        "Drink": "drinks",
        "beverages": "drinks",
        "Clothes": "clothing",
        "ritual": "rituals",
        "traditions_and_customs": "traditions",
        "": None,
        "music": None,
        "seafood": None,
    }
    assert {text: facet_of(text) for text in facets} == facets
