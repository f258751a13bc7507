"""Places by their codes: names in plain English, parts of countries, and what no code is given to."""

import subprocess
import sys

import pytest

from culture_tasks.vocabulary import Language, Place, countries, language, place, places


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("NP", Place("NP", "Nepal", "NP")),
        ("KR", Place("KR", "South Korea", "KR")),
        ("RU", Place("RU", "Russia", "RU")),
        ("TW", Place("TW", "Taiwan", "TW")),
        ("IN-AS", Place("IN-AS", "Assam", "IN")),
        ("ID-JB", Place("ID-JB", "West Java", "ID")),
        ("arab", Place("arab", "Arab countries", "")),
    ],
)
def test_a_place_has_a_plain_name_and_its_country(code, expected):
    assert place(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("zh", Language("zh", "zho", "Hans", "Chinese")),
        ("sw", Language("sw", "swa", "", "Swahili")),
        ("yue", Language("yue", "yue", "Hant", "Cantonese")),
    ],
)
def test_a_language_has_three_letters_and_a_script_where_there_are_several(code, expected):
    assert language(code) == expected
    with pytest.raises(KeyError):
        language(f"x{code}x")


@pytest.mark.parametrize("code", ["", "XX", "NPL", "IN-XX", "Nepal"])
def test_what_is_no_code_has_no_place(code):
    with pytest.raises(KeyError):
        place(code)


def test_names_of_countries_are_found_in_any_spelling():
    groups = ["united_states_of_america", "usa", "US", "UK", "Turkey", "türkiye", "palestinian_territories", "Vietnam"]
    assert list(places(groups).values()) == ["US", "US", "US", "GB", "TR", "TR", "PS", "VN"]


def test_a_group_that_is_no_country_needs_a_code():
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


def test_tasks_and_commands_are_known_without_the_tables_of_codes():
    code = """
import sys
from culture_tasks.benchmarks.registry import entries
from culture_tasks.cli.main import build_parser
import culture_tasks.harness.lmms_eval.plugin
entries(), build_parser()
print("pycountry" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
