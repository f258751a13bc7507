"""The bundled data are our own."""

import hashlib
import json
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


def test_no_real_item_is_among_them():
    files = [json.loads(path.read_text(encoding="utf-8")) for path in DATA.rglob("*.json")]  # lists, or items by name
    items = [item for file in files for item in (file.values() if isinstance(file, dict) else file)]
    ours = {item["question"] for item in items}
    assert not {hashlib.sha256(question.encode()).hexdigest()[:16] for question in ours} & released_questions()
    assert len(released_questions()) == 3 * 40 + 7 * 10


def test_pictures_of_crosscult_are_those_of_its_cases(tmp_path):
    lines = (DATA / "crosscult" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    assert {f"{name}.png" for name in make_crosscult_fixtures.PICTURES} == {json.loads(line)["image"] for line in lines}
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
