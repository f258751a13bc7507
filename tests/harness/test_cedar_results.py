"""CEDAR's records, hooks and data sets, without a run."""

from __future__ import annotations

import pytest
from support.cedar_data import row, rows, write_folder
from support.steps import steps

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES
from culture_tasks.benchmarks.cedar.prompts import render
from culture_tasks.errors import SettingsError
from culture_tasks.harness import cedar, cedar_loading, lm_eval, lmms_eval  # noqa: F401
from culture_tasks.harness.lm_eval import cedar as lm_hooks
from culture_tasks.harness.lmms_eval import cedar as lmms_hooks
from culture_tasks.harness.loading import load_for_evaluation


@pytest.fixture
def load(monkeypatch):
    """Writes data, and loads a data set of them as the harnesses do."""

    def load(folder, name, content=None, *, images=False):
        monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(folder, content, images=images)))
        return load_for_evaluation(name)

    return load


def test_languages_take_turns(load, tmp_path):
    data = load(tmp_path, "cedar_text")
    assert data["language"] == [*LANGUAGES, *LANGUAGES, "zh"]
    assert data["id"] == ["1"] * 7 + ["2"] * 7 + ["3"]
    assert load(tmp_path, "cedar_text_zh")["id"] == ["1", "2", "3"]


def test_images_stay_with_their_questions(load, tmp_path):
    data = load(tmp_path, "cedar_multimodal", images=True)
    assert [doc["image"].getpixel((0, 0))[0] for doc in data] == [0] * 7 + [20] * 7 + [40]


def test_some_minority_labels_give_every_document_the_metric(load, tmp_path):
    content = rows()
    content["es"][1]["minority_label"] = "dolor"
    data = load(tmp_path, "cedar_text", content)
    assert set(data["minority"]) == {"none", "pain"}
    found = [cedar.results(doc, ["pain"], pooled=True)["top2_macro_f1"] for doc in data]
    assert found.count(("sadness", "pain", "pain")) == 1
    assert found.count(("happiness", "pain", None)) == 7
    # One true positive of pain, 14 false ones: F1 2/16. happiness 7, sadness 5, embarrassment and fear missed: 0.
    assert cedar.top2(found) == pytest.approx(2 / 16 / 5)


def test_every_document_has_every_metric(load, tmp_path, monkeypatch):
    data = load(tmp_path, "cedar_text")
    keys = {tuple(cedar.results(doc, ["joy?"], pooled=True)) for doc in data}
    listed = [metric["metric"] for metric in cedar.pooled_metrics() if metric["metric"] != "top2_macro_f1"]
    assert keys == {tuple(cedar.results(data[0], ["happiness"], pooled=True))}
    assert sorted(next(iter(keys))) == sorted(listed)
    monkeypatch.setenv("CULTURE_TASKS_LANGUAGES", "en")
    data = load(tmp_path, "cedar_text")
    assert {tuple(cedar.results(doc, ["joy?"], pooled=True)) for doc in data} == keys


def test_a_record_says_all_that_a_later_reading_needs(load, tmp_path):
    doc = load(tmp_path, "cedar_text_prompt_ar_data_en")[1]
    record = cedar.results(doc, [["<think>…</think> **حزن**\ud800"]], pooled=False)["acc"]
    assert record["response"] == "<think>…</think> **حزن**\ufffd"
    expected = {"benchmark": "cedar", "modality": "text", "language": "en", "prompt_language": "ar", "id": "2"}
    expected |= {"gold": "sadness", "prediction": "sadness", "score": 1.0, "supported": True}
    expected |= {"narrative": "N en 2.", "question": "Q en 2?", "prompt": "text_ar.v1"}
    assert expected.items() <= record.items()
    assert len(record["prompt_sha256"]) == 64


def test_without_a_response_nothing_is_read(load, tmp_path):
    doc = load(tmp_path, "cedar_text_en")[0]
    for responses in ([None], [""], [[""]]):
        assert cedar.results(doc, responses, pooled=False)["unparsed"] == ("en", "happiness", None)


@pytest.mark.parametrize(("value", "said"), [("en,fr", "unknown language 'fr'"), ("EN", "'EN'"), (",", "no language")])
def test_an_unknown_supported_language_stops_before_inference(load, tmp_path, monkeypatch, value, said):
    monkeypatch.setenv("CULTURE_TASKS_LANGUAGES", value)
    with pytest.raises(SettingsError, match=f"CULTURE_TASKS_LANGUAGES: .*{said}"):
        load(tmp_path, "cedar_text_en")


def test_metrics_of_no_documents_are_nan():
    for metric in (*cedar.pooled_metrics(), *cedar.language_metrics()):
        value = metric["aggregation"]([])
        assert value != value, metric["metric"]
        assert metric["aggregation"]([None, None] if metric["metric"] != "acc" else []) != value


def test_twice_the_records_are_aggregated_in_no_more_than_twice_the_work():
    def aggregate(count):
        triples = [(LANGUAGES[n % 7], EMOTIONS[n % 14], EMOTIONS[n % 13]) for n in range(count)]
        records = [dict(zip(("language", "gold", "prediction"), each, strict=True), score=0.0) for each in triples]
        for metric in cedar.pooled_metrics():
            if metric["metric"] != "top2_macro_f1":
                metric["aggregation"](records if metric["metric"] == "acc" else triples)

    aggregate(1)  # what is loaded but once
    assert steps(aggregate, 4_000) <= 2.1 * steps(aggregate, 2_000)


@pytest.mark.parametrize("hooks", [lm_hooks, lmms_hooks])
def test_a_hook_that_is_not_there_is_an_attribute_error(hooks):
    for name in ("dataset_", "docs_", "__path__", "prompt"):
        with pytest.raises(AttributeError, match="has no attribute"):
            getattr(hooks, name)


@pytest.mark.parametrize("prompt", LANGUAGES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_pair_asks_about_one_language_in_another(load, tmp_path, prompt, language):
    doc = load(tmp_path, f"cedar_text_prompt_{prompt}_data_{language}", {language: [row(1, language, "awe")]})[0]
    asked = render(prompt, "text", f"N {language} 1.", f"Q {language} 1?")
    assert lm_hooks.text(doc) == lmms_hooks.text(doc) == asked
    assert lmms_hooks.messages(doc) == [{"role": "user", "content": [{"type": "text", "text": asked}]}]
    assert lmms_hooks.visuals(doc) == []
    assert lm_hooks.target(doc) == lmms_hooks.target(doc) == "awe"


def test_a_scene_goes_before_its_question(load, tmp_path):
    doc = load(tmp_path, "cedar_multimodal_hi", images=True)[1]
    asked = render("hi", "multimodal", "N hi 2.", "Q hi 2?")
    (message,) = lmms_hooks.messages(doc)
    scene, text = message["content"]
    assert (scene["type"], scene["url"].mode, scene["url"].getpixel((0, 0))) == ("image", "RGB", (20, 99, 7))
    assert text == {"type": "text", "text": asked}
    assert lm_hooks.text(doc) == f"<image>\n{asked}"
    (image,) = lm_hooks.image(doc)
    assert image.getpixel((0, 0)) == (20, 99, 7)


def test_an_image_tag_in_the_data_is_no_place_for_an_image(load, tmp_path):
    content = {"en": [row(1, "en", "awe") | {"narrative": "They write <image> on a wall."}]}
    doc = load(tmp_path, "cedar_multimodal_en", content, images=True)[0]
    assert lm_hooks.text(doc).count("<image>") == 1
    assert "They write < image > on a wall." in lm_hooks.text(doc)
    assert "They write <image> on a wall." in lmms_hooks.text(doc)


def test_data_sets_are_all_pairs_all_languages_and_each():
    assert len(cedar_loading.DATASETS) == 2 * (1 + 7 + 49)
