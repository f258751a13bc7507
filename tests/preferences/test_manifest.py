"""The manifest: read back as written, and refused with one clear message where it can't be."""

from __future__ import annotations

import json

import pytest

from culture_tasks.errors import DataError
from culture_tasks.results.training_manifest import Manifest, RatedBy, Rule, TrainingSource, question_fingerprint

MANIFEST = Manifest(
    sources=(TrainingSource(kind="rows", name="rated.jsonl", fingerprint="0" * 16, responses=4),),
    rated_by=RatedBy(kind="people", name="people", scale=(1.0, 10.0)),
    rule=Rule(languages=("zh",)),
    seed=3,
    counts={"questions": 2},
    files={"dpo/train.jsonl": "1" * 64},
    items=("a" * 16, "b" * 16),
    tested_items={"care_zh": ("zh-1",)},
)


def test_what_is_written_is_read_from_the_file_and_from_its_folder_and_anything_else_is_refused(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(MANIFEST.as_json(), encoding="utf-8")
    assert Manifest.load(path) == Manifest.load(tmp_path) == MANIFEST
    with pytest.raises(DataError, match=r"nowhere: can't be read .* Name a folder that"):
        Manifest.load(tmp_path / "nowhere")
    for text, said in (
        (json.dumps(json.loads(MANIFEST.as_json()) | {"format": 2}), "has the format 2; this version reads 1"),
        ("{", "not a manifest"),
        (MANIFEST.as_json().replace('"seed"', '"sed"'), "not a manifest"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=said):
            Manifest.load(path)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Do you tip in Cairo?", "do you  tip in ＣＡＩＲＯ", True),
        ("كَيْفَ الحال؟", "كيف الحـال", True),
        ("在中国，超市里？", "在中国超市里", True),
        ("Do you tip in Cairo?", "Do you tip in Rome?", False),
        ("?!", "!!", False),
    ],
)
def test_case_punctuation_and_width_make_no_other_question(one, other, same):
    assert (question_fingerprint(one) == question_fingerprint(other)) is same
