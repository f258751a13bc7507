"""The bundled data keep to the released layouts, and are our own."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import make_crosscult_fixtures
import make_fixtures
import PIL
import pytest
from packaging.version import Version
from PIL import Image, ImageChops

from culture_tasks.data.tables import released_questions

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "data"
RELEASED = ROOT / "tests" / "fixtures" / "released"
LANGUAGES = ("arabic", "chinese", "english", "hindi", "japanese", "spanish", "swahili")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def layout(benchmark):
    return read(RELEASED / "layout.json")[benchmark]


def test_the_data_keep_to_the_released_layouts_and_cover_their_categories():
    released = layout("care")
    for language in ("Arabic", "Chinese", "Japanese"):
        items = read(DATA / "care" / f"{language}-test.json")
        assert list(Counter(item["culture_type"] for item in items).values()) == [2] * 5
        assert all(item.keys() == {*released["fields"], "question_en", "answer_en"} for item in items)
        for field, values in released["values"].items():
            assert {item[field] for item in items} <= set(values)
    items = read_lines(DATA / "culturalvqa" / "test.jsonl")
    assert list(Counter(item["country"] for item in items).values()) == [2] * 11
    assert {item["facet"] for item in items} == {"clothing", "drink", "food", "rituals", "traditions"}
    for pattern, count in (("multilingual/{}_inq_sample.json", 4), ("text/{}_nq.json", 6)):
        for language in LANGUAGES:
            items = read(DATA / "cedar" / pattern.format(language))
            assert [item["id"] for item in items] == list(range(1, count + 1))
            assert {tuple(item) for item in items} == {tuple(layout("cedar")["fields"])}


def test_no_real_item_is_among_them():
    files = [read(path) for path in DATA.rglob("*.json")]  # lists of items, or items by name
    items = [item for file in files for item in (file.values() if isinstance(file, dict) else file)]
    ours = {item["question"] for item in items}
    assert not {hashlib.sha256(question.encode()).hexdigest()[:16] for question in ours} & released_questions()
    assert len(released_questions()) == 3 * 40 + 7 * 10


def test_crosscult_has_one_scenario_of_each_topic_in_each_part_and_no_text_twice(tmp_path):
    cases = read_lines(DATA / "crosscult" / "cases.jsonl")
    assert Counter((case["split"], case["topic"]) for case in cases) == {
        (part, topic): 2 for part in {case["split"] for case in cases} for topic in {case["topic"] for case in cases}
    }
    assert len({case["scenario"] for case in cases}) == 9
    texts = [value for case in cases for name, value in case.items() if name.startswith(("question", "answer"))]
    assert len(texts) == len(set(texts)) == 18 * 6
    assert {f"{name}.png" for name in make_crosscult_fixtures.PICTURES} == {case["image"] for case in cases}
    make_crosscult_fixtures.main(["--data", str(tmp_path)])
    assert len(list((tmp_path / "crosscult" / "images").iterdir())) == 18


@pytest.mark.parametrize(
    ("pictures", "folder"),
    [
        (make_fixtures.CULTURALVQA, "culturalvqa"),
        (make_fixtures.CEDAR, "cedar"),
        (make_crosscult_fixtures.PICTURES, "crosscult"),
    ],
)
@pytest.mark.skipif(Version(PIL.__version__) < Version("11.3"), reason="older Pillow places text elsewhere")
def test_pictures_are_what_the_script_draws(pictures, folder):
    files = {path.stem: path for path in (DATA / folder / "images").iterdir()}
    assert files.keys() == pictures.keys()
    for name, picture in pictures.items():
        with Image.open(files[name]) as committed:
            drawn = make_fixtures.draw(picture).convert("RGB")
            assert ImageChops.difference(committed.convert("RGB"), drawn).getbbox() is None
        assert files[name].stat().st_size < 5_000
