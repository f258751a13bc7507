"""WorldCuisines' scores: the authors' predictions give their published values, and single replies what they say."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from culture_tasks.benchmarks.choices import read_choice
from culture_tasks.benchmarks.worldcuisines.benchmark import (
    AUTHORS,
    DUAL,
    LANGUAGES,
    SINGLE,
    TYPES,
    UNPARSED,
    authors_choice,
    score_choice,
    score_open,
)

PREDICTIONS = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "worldcuisines" / "predictions.json").read_text(encoding="utf-8")
)["models"]

CHOICE = {
    "id": "0-en",
    "language": "en",
    "type": "dish",
    "prompt": "What is this?\n1. Naan\n2. Pita\n3. Roti\n4. Pita\n\nPrint only the answer with a single answer id "
    "(1,2,3,4,5).",
    "answer": "2",
    "dish": "7",
    "country": "Nepal",
    "image_id": "https://example.org/pita.jpg",
    "data": "0",
}
OPEN = {**CHOICE, "answer": "Brot", "english": "Bread", "references": ["Brot", "Bread", "Roti"]}


def rounded(read, model):
    """Returns the values of the paper's tables: rounded for each language, over languages and over types."""
    by_type = {}
    for kind in TYPES:
        right = {code: [*PREDICTIONS[model]["digits"][kind.name].get(code, (0, 0))] for code in LANGUAGES}
        for type_name, code, reply, label, options in PREDICTIONS[model]["rows"]:
            if type_name == kind.name:
                right[code][0] += read(reply, options) == label
                right[code][1] += 1
        assert {total for _, total in right.values()} == {100}
        by_type[kind.name] = round(fmean(round(100 * hits / total, 2) for hits, total in right.values()), 2)
    return {**by_type, "average": round(fmean(by_type.values()), 2)}


@pytest.mark.parametrize("model", PREDICTIONS)
def test_the_authors_reader_gives_the_published_values(model):
    assert rounded(lambda reply, options: authors_choice(reply), model) == PREDICTIONS[model]["published"]


@pytest.mark.parametrize(
    ("model", "average"), [("gpt-4o-2024-08-06", 81.17), ("llava-1.6-7b", 33.33), ("pangea-7b", 56.05)]
)
def test_the_other_reader_moves_them_by_what_the_page_says(model, average):
    def read(reply, options):
        number = read_choice(reply, {str(place): text for place, text in enumerate(options, start=1)})
        return None if number is None else int(number)

    assert rounded(read, model)["average"] == average


@pytest.mark.parametrize(
    ("reply", "number"),
    [("3", 3), (" 3\n", 3), ("2. Pita", 2), ("Option 4, not 1", 4), ("-1", -1), ("٣", 3), ("Pita", None), ("", None)],
)
def test_the_authors_reader_takes_a_number_or_the_first_digits(reply, number):
    assert authors_choice(reply) == number


@pytest.mark.parametrize(
    ("reply", "score", "by_authors", "unparsed"),
    [
        ("2", 1, 1, 0),
        ("2<|im_end|>", 1, 1, 0),
        ("2. Pita", 1, 1, 0),
        ("<think>It could be 3.</think>\n2", 1, 1, 0),
        ("Roti", 0, 0, 0),
        ("Naan or roti? I can't say.", 0, 0, 1),
        ("3. Naan", 0, 0, 0),
        ("3. Pita", 0, 0, 1),
        ("5", 0, 0, 1),
        pytest.param("2" * 5_000, 0, 0, 1, id="a number without end"),
    ],
)
def test_a_choice(reply, score, by_authors, unparsed):
    answered = score_choice(CHOICE, [reply])
    assert (answered.score, answered.values[AUTHORS.name], answered.values[UNPARSED.name]) == (
        score,
        by_authors,
        unparsed,
    )


def test_repeats_are_averaged_and_the_dish_is_the_cluster():
    answered = score_choice(CHOICE, ["2", "1"])
    assert (answered.score, answered.labels, answered.cluster) == (0.5, ("2", "1"), "7")
    assert answered.groups == {"language": "en", "question": "dish", "country": "Nepal"}
    assert answered.references == ("2. Pita",)


@pytest.mark.parametrize(
    ("reply", "multi", "dual", "single"),
    [("das BROT", 1, 1, 1), ("Bread.", 1, 1, 0), ("Roti", 1, 0, 0), ("Reis", 0, 0, 0), ("", 0, 0, 0)],
)
def test_an_open_answer_is_looked_for_in_the_reply(reply, multi, dual, single):
    answered = score_open(OPEN, [reply])
    assert (answered.score, answered.values[DUAL.name], answered.values[SINGLE.name]) == (multi, dual, single)
