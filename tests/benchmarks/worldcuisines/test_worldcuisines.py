"""WorldCuisines: images of files and the knowledge base, published values from the authors' predictions, replies."""

from __future__ import annotations

import io
import json
from pathlib import Path
from statistics import fmean

import datasets
import pytest
from PIL import Image

from culture_tasks.benchmarks.choice_reader import read_choice
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.benchmarks.worldcuisines.benchmark import (
    AUTHORS,
    DUAL,
    LANGUAGES,
    SINGLE,
    TYPES,
    UNPARSED,
    authors_choice,
)
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

ADDRESS = "https://example.org/{}.jpg"
OPTIONS = "\n1. Naan\n2. Pita\n3. Roti\n4. Pita\n\nPrint only the answer with a single answer id (1,2,3,4,5)."


def row(number="1", lang="en", **changes):
    return {
        "qa_id": number,
        "lang": lang,
        "food_id": "7",
        "prompt_type": "1",
        "multi_choice_prompt": f"What is {number}?{OPTIONS}",
        "open_ended_prompt": f"What is {number}?\n\nPrint only the answer.",
        "image_url": ADDRESS.format(number),
        "answer": {"en": "Pita", "nan_spoken": "Pí-tah"}[lang],
        "multi_choice_answer": 2,
        **changes,
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "worldcuisines").mkdir()
    return tmp_path / "worldcuisines"


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def knowledge_base(folder, *numbers, **facts):
    """Writes a knowledge base of one dish a row, with images in turn in the first and the second column."""
    columns = {f"image{number}{part}": [] for number in (1, 2) for part in ("", "_url")}
    for place, dish in enumerate(numbers):
        content = io.BytesIO()
        Image.new("RGB", (4, 4), (dish, 0, 0)).save(content, "PNG")
        for number in (1, 2):
            here = number == 1 + place % 2
            columns[f"image{number}_url"].append(ADDRESS.format(dish) if here else None)
            columns[f"image{number}"].append({"bytes": content.getvalue(), "path": None} if here else None)
    features = {name: datasets.Value("string") if "url" in name else datasets.Image(decode=False) for name in columns}
    table = datasets.Dataset.from_dict(columns, datasets.Features(features))
    for name, values in facts.items():
        table = table.add_column(name, values)
    table.to_parquet(folder / "food-kb.parquet")


def loaded(folder, task="worldcuisines_dish"):
    return task_named(task).data.load(Settings(data=folder.parent))


@pytest.mark.parametrize("column", ["countries", "Countries"])
def test_the_files_of_all_languages_are_read_with_images_and_countries_of_the_knowledge_base(folder, column):
    for lang in ("en", "nan_spoken"):
        rows = row("1", lang), row("2", lang), row("3", lang)
        write(folder / "small_eval_task1" / f"{lang}_small_eval_task1.jsonl", *rows)
    knowledge_base(folder, 9, 2, 1, 3, **{column: ['["Peru"]', '["Peru", "Chile"]', '["Nepal"]', '["Global"]']})
    documents = loaded(folder, "worldcuisines_open_dish")
    assert [doc["id"] for doc in documents.rows] == ["1-en", "2-en", "3-en"] + [f"{n}-nan_spoken" for n in (1, 2, 3)]
    assert (documents.rows[3]["references"], documents.rows[3]["english"]) == (["Pí-tah", "Pita"], "Pita")
    assert [image.getpixel((0, 0))[0] for image in documents.images["image"]] == [1, 2, 3] * 2
    assert [doc["country"] for doc in documents.rows] == ["Nepal", "", ""] * 2  # of one country alone


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(prompt_type="3")], "small_task1.jsonl: found no row of type 1, Dish Name"),
        ([row(image_url=None)], "row 1, field 'image_url': found nothing"),
        ([row(), row("2")], "row 2, field 'image_url': worldcuisines/food-kb has no image 'https://example.org/2.jpg'"),
        ([row(image="a.png"), row("2", image="b.png")], "row 2, field 'image': broken image"),
        ([row()], "worldcuisines/food-kb, row 1, field 'countries'"),
    ],
)
def test_what_cannot_be_used_is_named(folder, rows, message):
    write(folder / "small_task1.jsonl", *rows)
    knowledge_base(folder, 1, countries=["Nepal" if "countries" in message else '["Nepal"]'])
    Image.new("RGB", (4, 4)).save(folder / "a.png")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(DataError) as error:
        loaded(folder)
    assert message in str(error.value)


# Scores

FIXTURES = Path(__file__).parents[2] / "fixtures" / "worldcuisines"
PREDICTIONS = json.loads((FIXTURES / "predictions.json").read_text(encoding="utf-8"))["models"]


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


MODELS = {"gpt-4o-2024-08-06": 81.17, "llava-1.6-7b": 33.33, "pangea-7b": 56.05}


@pytest.mark.parametrize("model", MODELS)
def test_the_authors_reader_gives_the_published_values_and_ours_what_the_page_says(model):
    def read(reply, options):
        number = read_choice(reply, {str(place): text for place, text in enumerate(options, start=1)})
        return None if number is None else int(number)

    assert rounded(lambda reply, _: authors_choice(reply), model) == PREDICTIONS[model]["published"]
    assert rounded(read, model)["average"] == MODELS[model]


CHOICE = {
    "id": "0-en",
    "language": "en",
    "type": "dish",
    "prompt": f"What is this?{OPTIONS}",
    "answer": "2",
    "dish": "7",
    "country": "Nepal",
    "image_id": "https://example.org/pita.jpg",
    "data": "0",
}


@pytest.mark.parametrize(
    ("reply", "score", "by_authors", "unparsed"),
    [
        ("2. Pita", 1, 1, 0),
        ("<think>It could be 3.</think>\n2", 1, 1, 0),
        ("Roti", 0, 0, 0),
        ("Option 2, not 1", 1, 1, 0),
        ("Naan or roti? I can't say.", 0, 0, 1),
        ("3. Pita", 0, 0, 1),
        ("5", 0, 0, 1),
        ("٢", 1, 1, 0),
        ("", 0, 0, 1),
        pytest.param("2" * 5_000, 0, 0, 1, id="a number without end"),
    ],
)
def test_a_choice(reply, score, by_authors, unparsed):
    answered = task_named("worldcuisines_dish").score(CHOICE, [reply])
    assert (answered.score, answered.values) == (score, {AUTHORS.name: by_authors, UNPARSED.name: unparsed})
    assert (answered.cluster, answered.references) == ("7", ("2. Pita",))
    assert answered.groups == {"language": "en", "question": "dish", "country": "Nepal"}
    assert task_named("worldcuisines_dish").score(CHOICE, [reply, "1"]).score == score / 2


@pytest.mark.parametrize(
    ("reply", "multi", "dual", "single"),
    [("das BROT", 1, 1, 1), ("Bread.", 1, 1, 0), ("Roti", 1, 0, 0), ("Reis", 0, 0, 0), ("", 0, 0, 0)],
)
def test_an_open_answer_is_looked_for_in_the_reply(reply, multi, dual, single):
    doc = {**CHOICE, "answer": "Brot", "english": "Bread", "references": ["Brot", "Bread", "Roti"]}
    answered = task_named("worldcuisines_open_dish").score(doc, [reply])
    assert (answered.score, answered.values[DUAL.name], answered.values[SINGLE.name]) == (multi, dual, single)
