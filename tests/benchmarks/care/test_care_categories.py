import pytest

from culture_tasks.benchmarks.care.categories import CATEGORIES, RELEASED_NAMES, category_of, rubric_for
from culture_tasks.errors import DataError


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_is_known_by_its_own_and_its_released_name(category):
    assert category_of(category) == category
    assert category_of(RELEASED_NAMES[category]) == category
    assert category_of(RELEASED_NAMES[category].upper().replace(" ", "_")) == category


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Norms", "norms"),
        ("social-norm", "norms"),
        ("C. sense", "commonsense"),
        ("Common sense", "commonsense"),
        (" opinions ", "opinion"),
        ("Cultural opinion", "opinion"),
        ("entity", "entities"),
    ],
)
def test_variants_of_the_spelling(text, category):
    assert category_of(text) == category


@pytest.mark.parametrize("text", ["", "cultural", "social", "Nationwide", "文化", "norms and commonsense"])
def test_anything_else_is_refused_with_what_is_allowed(text):
    with pytest.raises(DataError, match="Allowed are 'Cultural entities'"):
        category_of(text)


def test_a_near_miss_is_named():
    with pytest.raises(DataError, match="Did you mean 'Literacy'"):
        category_of("Literacie")


def test_rubrics_follow_the_figures_of_the_paper():
    assert {category: rubric_for(category).source.split(", ")[-1] for category in CATEGORIES} == {
        "entities": "Figure 11",
        "opinion": "Figure 11",
        "norms": "Figure 12",
        "commonsense": "Figure 12",
        "literacy": "Figure 13",
    }
