import pytest

from culture_tasks.benchmarks.care.categories import CATEGORIES, RELEASED_NAMES, category_of, rubric_for
from culture_tasks.errors import DataError


def test_a_category_is_known_by_its_own_and_its_released_name_and_by_variants_of_the_spelling():
    variants = {"social-norm": "norms", "C. sense": "commonsense", " opinions ": "opinion", "entity": "entities"}
    for category in CATEGORIES:
        released = RELEASED_NAMES[category]
        variants |= dict.fromkeys((category, released, released.upper().replace(" ", "_")), category)
    assert {text: category_of(text) for text in variants} == variants


@pytest.mark.parametrize("text", ["", "cultural", "social", "Nationwide", "文化", "norms and commonsense", "Literacie"])
def test_anything_else_is_refused_with_what_is_allowed_and_a_near_miss(text):
    with pytest.raises(DataError, match="Allowed are 'Cultural entities'") as caught:
        category_of(text)
    assert ("Did you mean 'Literacy'" in str(caught.value)) == (text == "Literacie")


def test_rubrics_follow_the_figures_of_the_paper():
    assert {category: rubric_for(category).source.split(", ")[-1] for category in CATEGORIES} == {
        "entities": "Figure 11",
        "opinion": "Figure 11",
        "norms": "Figure 12",
        "commonsense": "Figure 12",
        "literacy": "Figure 13",
    }
