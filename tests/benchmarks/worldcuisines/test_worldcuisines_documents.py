"""WorldCuisines' data: one file or one for each language, images from files or the knowledge base, and bad input."""

from __future__ import annotations

import io
import json
import shutil

import datasets
import pytest
from PIL import Image

from culture_tasks.benchmarks.worldcuisines.benchmark import BENCHMARK, TYPES, load
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

DISH, CONTEXT, *_ = TYPES
ADDRESS = "https://example.org/{}.jpg"


def row(number="1", lang="en", **changes):
    prompt = f"What is {number}?\n1. Naan\n2. Pita\n\nPrint only the answer with a single answer id (1,2,3,4,5)."
    return {
        "qa_id": number,
        "lang": lang,
        "food_id": "7",
        "prompt_type": "1",
        "multi_choice_prompt": prompt,
        "open_ended_prompt": f"What is {number}?\n\nPrint only the answer.",
        "image_url": ADDRESS.format(number),
        "answer": {"en": "Pita", "nan_spoken": "Pí-tah"}[lang],
        "multi_choice_answer": 2,
        **changes,
    }


def png(colour):
    content = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(content, "PNG")
    return {"bytes": content.getvalue(), "path": None}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "worldcuisines").mkdir()
    return tmp_path / "worldcuisines"


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def knowledge_base(folder, addresses, **facts):
    """Writes a knowledge base of one dish a row, with the images in turn in the first and the second column."""
    columns = {f"image{number}{part}": [] for number in (1, 2) for part in ("", "_url")}
    for place, (address, colour) in enumerate(addresses.items()):
        for number in (1, 2):
            here = number == 1 + place % 2
            columns[f"image{number}_url"].append(address if here else None)
            columns[f"image{number}"].append(png(colour) if here else None)
    features = {
        name: datasets.Value("string") if name.endswith("_url") else datasets.Image(decode=False) for name in columns
    }
    table = datasets.Dataset.from_dict(columns, datasets.Features(features))
    for name, values in facts.items():
        table = table.add_column(name, values)
    table.to_parquet(folder / "food-kb.parquet")


def loaded(folder, form="choices", question_type=DISH):
    return load("small", question_type, form, Settings(data=folder.parent))


def test_the_files_of_all_languages_are_read_with_the_images_of_the_knowledge_base(folder):
    rows = {lang: [row("1", lang), row("2", lang)] for lang in ("en", "nan_spoken")}
    for lang in rows:
        write(folder / "small_eval_task1" / f"{lang}_small_eval_task1.jsonl", rows[lang])
    knowledge_base(folder, {ADDRESS.format(9): "green", ADDRESS.format(2): "red", ADDRESS.format(1): "blue"})
    documents = loaded(folder, "open")
    assert [doc["id"] for doc in documents.rows] == ["1-en", "2-en", "1-nan_spoken", "2-nan_spoken"]
    assert documents.rows[2]["references"] == ["Pí-tah", "Pita"]
    assert documents.rows[2]["english"] == "Pita"
    colours = [image.getpixel((0, 0)) for image in documents.images["image"]]
    assert colours == [(0, 0, 255), (255, 0, 0)] * 2


@pytest.mark.parametrize(
    "claimed",
    [
        {"countries": [["Nepal"], ["Peru", "Chile"], ["Global"]]},
        {"Countries": ['["Nepal"]', '["Peru", "Chile"]', '["Global"]']},
        {},
    ],
)
def test_a_dish_of_one_country_has_it(folder, claimed):
    write(folder / "small_task1.jsonl", [row(str(number)) for number in (1, 2, 3)])
    knowledge_base(folder, {ADDRESS.format(number): "blue" for number in (1, 2, 3)}, **claimed)
    assert [doc["country"] for doc in loaded(folder).rows] == ["Nepal" if claimed else "", "", ""]


def test_countries_that_are_no_list_are_named(folder):
    write(folder / "small_task1.jsonl", [row()])
    knowledge_base(folder, {ADDRESS.format(1): "blue"}, countries=["Nepal"])
    with pytest.raises(DataError, match="worldcuisines/food-kb, row 1, field 'countries'"):
        loaded(folder)


def test_files_of_the_user_s_own_are_the_images(fixture_data):
    documents = load("small", CONTEXT, "choices", Settings(data=fixture_data))
    assert len(documents.rows) == len(documents.images) == 6
    assert documents.images["image"][0].size == (128, 96)
    assert {doc["type"] for doc in documents.rows} == {"dish_context"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**row(), "lang": "xx"}], "row 1, field 'lang': found 'xx'"),
        ([row(multi_choice_answer=3)], "field 'multi_choice_answer': found 3. Expected the number of an option"),
        ([row(prompt_type="3")], "small_task1.jsonl: found no row of type 1, Dish Name"),
        ([row(image_url=None)], "row 1, field 'image_url': found nothing"),
        ([row(), row("2")], "row 2, field 'image_url': worldcuisines/food-kb has no image 'https://example.org/2.jpg'"),
        ([row(image="../../secret.png")], "field 'image'"),
        ([row(answer=" ")], "field 'answer'"),
    ],
)
def test_bad_rows_are_named(folder, rows, message):
    write(folder / "small_task1.jsonl", rows)
    knowledge_base(folder, {ADDRESS.format(1): "blue"})
    with pytest.raises(DataError, match=r"small_task1\.jsonl") as error:
        loaded(folder)
    assert message in str(error.value)


def test_a_broken_image_is_named_with_the_first_question_that_shows_it(folder):
    write(folder / "small_task1.jsonl", [row(image="a.png"), row("2", image="b.png")])
    Image.new("RGB", (4, 4)).save(folder / "a.png")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(DataError, match=r"small_task1\.jsonl, row 2, field 'image': broken image"):
        loaded(folder)


def test_the_check_counts_and_names_what_is_wrong(folder, fixture_data):
    report = BENCHMARK.check(Settings(data=fixture_data))
    assert report.usable
    assert {count.name: count.found for count in report.counts}["large set, task1: rows"] == "27"
    shutil.copytree(fixture_data / "worldcuisines", folder, dirs_exist_ok=True)
    (folder / "images" / "tesk.png").unlink()
    write(folder / "small_task2.jsonl", [row(prompt_type="2"), row(prompt_type="2")])
    problems = "\n".join(BENCHMARK.check(Settings(data=folder.parent)).problems)
    assert "no file 'tesk.png'" in problems
    assert "small_task2.jsonl, row 2, field 'qa_id': '1 in en' is also the id of" in problems
