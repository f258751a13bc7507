"""The bundled data are our own."""

import hashlib
import json
from pathlib import Path

import make_crosscult_fixtures

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
