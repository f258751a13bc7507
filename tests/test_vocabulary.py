"""Places by their codes: names in plain English, parts of countries, and what no code is given to."""

import pytest

from culture_tasks.vocabulary import countries, language, place, places

PLACES = {
    "NP": ("NP", "Nepal", "NP"),
    "KR": ("KR", "South Korea", "KR"),
    "RU": ("RU", "Russia", "RU"),
    "TW": ("TW", "Taiwan", "TW"),
    "IN-AS": ("IN-AS", "Assam", "IN"),
    "ID-JB": ("ID-JB", "West Java", "ID"),
    "arab": ("arab", "Arab countries", ""),
}
LANGUAGES = {
    "zh": ("zh", "zho", "Chinese"),
    "sw": ("sw", "swa", "Swahili"),
    "yue": ("yue", "yue", "Cantonese"),
}


def test_places_and_languages_have_plain_names_and_what_is_no_code_has_none():
    assert {code: place(code) for code in PLACES} == PLACES
    assert {code: language(code) for code in LANGUAGES} == LANGUAGES
    for found, codes in ((place, ("", "XX", "NPL", "IN-XX", "Nepal")), (language, ("xzhx", "xyuex"))):
        for code in codes:
            with pytest.raises(KeyError):
                found(code)


def test_names_of_countries_are_found_in_any_spelling_and_another_group_needs_a_code():
    groups = ["united_states_of_america", "usa", "US", "UK", "Turkey", "türkiye", "palestinian_territories", "Vietnam"]
    assert list(places(groups).values()) == ["US", "US", "US", "GB", "TR", "TR", "PS", "VN"]
    assert places(["Nepal", "Assam"], {"Assam": "IN-AS"}) == {"Assam": "IN-AS", "Nepal": "NP"}
    with pytest.raises(LookupError):
        places(["Assam"])


def test_every_country_is_found_by_each_of_its_names():
    codes = countries()
    names = {"Vietnam": "VN", "Viet Nam": "VN", "Russia": "RU", "Russian Federation": "RU", "Czech Republic": "CZ"}
    assert names.items() <= codes.items()
    assert "Korea" not in codes
    assert all(place(code).code == code for code in codes.values())
    assert {code for code in codes.values() if place(code).country != code} == {"GB-ENG", "GB-SCT", "GB-WLS", "ID-JB"}
