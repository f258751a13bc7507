"""The bundled CrossCult cases keep to the layout that the loader reads, and are drawn by the script."""

import json
from collections import Counter
from pathlib import Path

import make_crosscult_fixtures
import make_fixtures
import PIL
import pytest
from packaging.version import Version
from PIL import Image, ImageChops

HOME = Path(__file__).parents[2] / "examples" / "data" / "crosscult"
as_drawn = pytest.mark.skipif(Version(PIL.__version__) < Version("11.3"), reason="older Pillow places text elsewhere")


@pytest.fixture(scope="module")
def cases():
    return [json.loads(line) for line in (HOME / "cases.jsonl").read_text(encoding="utf-8").splitlines()]


def test_each_part_has_one_scenario_of_each_topic_with_two_cases(cases):
    assert Counter((case["split"], case["topic"]) for case in cases) == {
        (part, topic): 2 for part in {case["split"] for case in cases} for topic in {case["topic"] for case in cases}
    }
    assert len({case["scenario"] for case in cases}) == 9


def test_no_text_comes_twice(cases):
    texts = [value for case in cases for name, value in case.items() if name.startswith(("question", "answer"))]
    assert len(texts) == 18 * 6
    assert len(set(texts)) == len(texts)


@as_drawn
def test_pictures_are_what_the_script_draws(cases):
    assert {f"{name}.png" for name in make_crosscult_fixtures.PICTURES} == {case["image"] for case in cases}
    for name, picture in make_crosscult_fixtures.PICTURES.items():
        file = HOME / "images" / f"{name}.png"
        with Image.open(file) as committed:
            drawn = make_fixtures.draw(picture).convert("RGB")
            assert ImageChops.difference(committed.convert("RGB"), drawn).getbbox() is None
        assert file.stat().st_size < 5_000


def test_the_script_draws_into_a_folder(tmp_path):
    make_crosscult_fixtures.main(["--data", str(tmp_path)])
    assert len(list((tmp_path / "crosscult" / "images").iterdir())) == 18
