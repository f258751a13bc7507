"""CEDAR's records, hooks and data sets, without a run."""

from __future__ import annotations

from itertools import product

import pytest
from support.cedar_data import row, write_folder

from culture_tasks.benchmarks.cedar.documents import prompt_file
from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.harness.lm_eval import task as lm
from culture_tasks.harness.lmms_eval import task as lmms
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.records import scorer_of


@pytest.fixture
def load(monkeypatch):
    """Writes data, and loads a data set of them as the harnesses do."""

    def load(folder, name, content=None, *, images=False):
        monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(folder, content, images=images)))
        return load_for_evaluation(name)

    return load


def results(doc, responses, task="cedar_text"):
    return scorer_of(task)(doc, responses)


def languages_of(doc):
    return doc["prompt_language"], doc["language"]


def test_languages_take_turns_and_images_stay_with_their_questions(load, tmp_path):
    data = load(tmp_path, "cedar_text")
    assert data["language"] == [*LANGUAGES, *LANGUAGES, "zh"]
    assert data["id"] == ["1"] * 7 + ["2"] * 7 + ["3"]
    assert load(tmp_path, "cedar_text_zh")["id"] == ["1", "2", "3"]
    data = load(tmp_path, "cedar_multimodal", images=True)
    assert [doc["image"].getpixel((0, 0))[0] for doc in data] == [0] * 7 + [20] * 7 + [40]
    data = load(tmp_path, "cedar_multimodal_matrix", images=True)
    assert list(map(languages_of, data))[:49] == list(product(LANGUAGES, LANGUAGES))
    assert [doc["image"].getpixel((0, 0))[0] for doc in data] == [0] * 49 + [20] * 49 + [40] * 7


def test_a_record_says_all_that_a_later_reading_needs(load, tmp_path):
    [doc] = (doc for doc in load(tmp_path, "cedar_text_matrix") if (doc["id"], *languages_of(doc)) == ("2", "ar", "en"))
    record = results(doc, [["<think>…</think> **حزن**\ud800"]], "cedar_text_matrix")
    read = {"response": "<think>…</think> **حزن**\ufffd", "outcome": "scored", "label": "sadness"}
    groups = {
        "language": "en",
        "prompt_language": "ar",
        "pair": "prompt_ar_data_en",
        "gold": "sadness",
        "prediction": "sadness",
        "supported": "True",
    }
    expected = {"benchmark": "cedar", "metric": "acc", "item": "ar en 2", "cluster": "text 2", "groups": groups}
    expected |= {"score": 1.0, "runs": [read], "outcomes": {"scored": 1}, "references": ["sadness"]}
    expected |= {"question": "N en 2.\nQ en 2?", "prompt": "text_ar.v1", "facts": {"modality": "text"}}
    assert expected.items() <= record.items()
    assert record["scale"]["times"] == 100.0  # a share in the harness, percent in the paper
    assert len(record["prompt_sha256"]) == 64
    for responses in ([""], [[""]]):
        assert results(doc, responses, "cedar_text_en")["inputs"]["unparsed"] == ("en", "sadness", None)


def test_a_failed_run_leaves_the_replies_of_the_other_runs_where_they_are(load, tmp_path):
    doc = load(tmp_path, "cedar_text_en")[0]
    record = results(doc, ["joy", "[LMMS_EVAL_BUDGET_EXCEEDED]", "anger"], "cedar_text_en")
    assert [run.get("label") for run in record["runs"]] == ["happiness", None, "anger"]
    assert record["outcomes"] == {"scored": 2, "failed": 1}


def test_a_scene_goes_before_its_question_and_a_tag_in_the_data_is_no_place_for_it(load, tmp_path):
    content = {"hi": [row(1, "hi", "awe") | {"narrative": "They write <image> on a wall."}, row(2, "hi", "awe")]}
    written, doc = load(tmp_path, "cedar_multimodal_hi", content, images=True)
    asked = prompt_file("hi", "multimodal").fill({"narrative": "N hi 2.", "question": "Q hi 2?"})
    task = task_named("cedar_multimodal_hi")
    (message,) = lmms.messages(task, doc)
    scene, text = message["content"]
    assert (scene["type"], scene["url"].mode, scene["url"].getpixel((0, 0))) == ("image", "RGB", (20, 99, 7))
    assert text == {"type": "text", "text": asked}
    assert lm.text(task, doc) == f"<image>\n{asked}"
    (image,) = lm.images(task, doc)
    assert image.getpixel((0, 0)) == (20, 99, 7)
    text = lm.text(task, written)
    assert text.count("<image>") == 1
    assert "They write < image > on a wall." in text
    assert lmms.text(task, written) == text.removeprefix("<image>\n")
