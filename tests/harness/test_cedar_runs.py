"""CEDAR's records and prompts, and its real runs, with models whose metrics are worked out by hand."""

from __future__ import annotations

import math
from itertools import product

import pytest
from support.cedar_data import row, said, write_folder
from support.scripted_models import run_scripted

from culture_tasks.benchmarks.cedar.documents import prompt_file
from culture_tasks.benchmarks.cedar.labels import LANGUAGES, PAIRS
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.harness.lm_eval import task as lm
from culture_tasks.harness.lmms_eval import task as lmms
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.records import scorer_of

# Of 15 replies 8 are right: ar 1 of 2, en 2 of 2, es 2 of 2, hi 1 of 2, ja 0 of 2, sw 0 of 2, zh 2 of 3; hi 1 and sw 2
# are unparsed. Gold: happiness 7, sadness 6, embarrassment 1, fear 1. Predicted: happiness 6 (ar 2, en, es, hi, zh),
# sadness 3 (en, es, zh), anger 2 (ja), surprise 1 (zh).
POOLED = {
    "acc": 8 / 15,
    # Of scene 1, 5 of 7 are right, of scene 2, 3 of 7, of scene 3, 0 of 1. The scenes' sums of residuals, times 15: 19,
    # -11, -8. By CR2, the square of each is over the share of the items that aren't of its scene: 8/15, 8/15, 14/15.
    "acc_stderr": math.sqrt(15 / 8 * (19**2 + 11**2) + 15 / 14 * 8**2) / 15 / 15,
    "acc_ar": 0.5,
    "acc_ar_stderr": 0.5,  # sqrt(1/2 · 1/2 / 1)
    "acc_en": 1.0,
    "acc_en_stderr": 0.0,
    "acc_es": 1.0,
    "acc_hi": 0.5,
    "acc_ja": 0.0,
    "acc_sw": 0.0,
    "acc_zh": 2 / 3,
    "acc_zh_stderr": 1 / 3,  # sqrt(2/3 · 1/3 / 2)
    "acc_avg": 11 / 21,  # (1/2 + 1 + 1 + 1/2 + 0 + 0 + 2/3) / 7
    # The scenes' sums of residuals, each over its language's size and 7, times 126: 11, -7, -4.
    "acc_avg_stderr": math.sqrt(15 / 8 * (11**2 + 7**2) + 15 / 14 * 4**2) / 126,
    "unparsed": 0.2,
    # Of 7, 7 and 1: 1 - 7/5, 2 - 7/5, 0 - 1/5.
    "unparsed_stderr": math.sqrt(15 / 8 * (2**2 + 3**2) + 15 / 14 * 1**2) / 5 / 15,
    "gepp_happiness": 6 / 7,
    "gepp_sadness": 1 / 2,
    "gepp_embarrassment": 0.0,
    "gepp_fear": 0.0,
    "gepp_anger": math.nan,
    "gepp_surprise": math.nan,
    "gepp_anger_stderr": "N/A",
    "grqb_q1": 0.0,  # 6 happiness + 1 surprise - 7
    "grqb_q2": 1 / 15,  # 2 anger - 1 fear
    "grqb_q3": -4 / 15,  # 3 sadness - 6 sadness - 1 embarrassment
    "grqb_q4": 0.0,
}
# The mean is 11/21; the squares of the deviations, times 441: ar and hi 0.5² each, en and es 10² each, ja and sw
# 11² each, zh 3². Their sum over 441 and 6.
POOLED["acc_var"] = (2 * 0.5**2 + 2 * 10**2 + 2 * 11**2 + 3**2) / 441 / 6

# Of ar, en, es and hi alone: 6 of 8 right, 1 unparsed. Gold: happiness 4, sadness 4. Predicted: happiness 5, sadness 2.
OF_FOUR = {
    "acc": 0.75,
    "acc_stderr": 0.25,  # of scene 1, 4 of 4 are right, of scene 2, 2 of 4
    "acc_var": 0.25 / 3,  # four deviations of 1/4, over 3
    "unparsed": 0.125,
    "gepp_happiness": 1.25,
    "gepp_fear": math.nan,
    "grqb_q3": -0.25,
}
# zh alone: gold happiness, sadness, fear; predicted happiness, sadness, surprise.
OF_CHINESE = {
    "acc": 2 / 3,
    "acc_stderr": 1 / 3,
    "unparsed": 0.0,
    "lsepp_happiness": 1.0,
    "lsepp_fear": 0.0,
    "lsepp_surprise": math.nan,
    "lsrqb_q1": 1 / 3,
    "lsrqb_q2": -1 / 3,
    "lsrqb_q3": 0.0,
}


def reported(results, task):
    """Returns a task's metrics, lmms-eval's own columns aside."""
    found = {name.removesuffix(",none"): value for name, value in results["results"][task].items() if "," in name}
    found = {name.replace("_stderr,none", "_stderr"): value for name, value in found.items()}
    return {name: value for name, value in found.items() if not name.endswith(("_clt", "_clustered"))}


def agrees(found, expected):
    """An undefined standard error is NaN in our functions, and "N/A" in a harness's row."""
    numbers = {name: math.nan if found[name] == "N/A" else found[name] for name in expected}
    wanted = {name: math.nan if value == "N/A" else value for name, value in expected.items()}
    assert numbers == pytest.approx(wanted, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = write_folder(write_folder(tmp_path), images=True)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(folder))
    return folder


def test_every_metric_is_the_one_worked_out_by_hand(harness, data):
    matrix = "cedar_multimodal_matrix"
    model, results = run_scripted(harness, said, ["cedar_text", "cedar_text_zh", "cedar_multimodal", matrix])
    found = reported(results, "cedar_text")
    agrees(found, POOLED)
    agrees(reported(results, "cedar_multimodal"), POOLED)
    agrees(reported(results, "cedar_text_zh"), OF_CHINESE)
    unknown = {f"{name}_stderr" for name, value in found.items() if value != value}
    assert {name for name, value in found.items() if value == "N/A"} == {"acc_var_stderr", *unknown}
    assert not {name for name in found if name.startswith("top2")}  # the data have no minority labels

    # The replies to a pair are those in its data language, so its numbers are, too.
    numbers = reported(results, matrix)
    values = {name: value for name, value in OF_CHINESE.items() if "_stderr" not in name}
    for pair in (pair for pair, languages in PAIRS.items() if languages[1] == "zh"):
        agrees({name: numbers[f"{name}_{pair}"] for name in values}, values)
    for sample in results["samples"][matrix]:
        groups = sample["record"]["groups"]
        assert PAIRS[groups["pair"]] == (groups["prompt_language"], groups["language"])

    # Images reach the model, and prompts are in the language of the pair.
    if harness == "lm_eval":
        asked = [(args[0], args[2]["visual"]) for args in model.seen if args[0].startswith("<image>\n")]
    else:
        asked = [(one.text, one.images) for one in model.seen if one.images]
    shown = [images for text, images in asked if "Soma picha na swali" in text and "Q zh" in text]
    assert [image.getpixel((0, 0)) for (image,) in shown] == [(20 * number, 99, 7) for number in range(3)]


def test_languages_that_a_model_does_not_support_stay_out_of_the_pooled_metrics(harness, data, monkeypatch):
    monkeypatch.setenv("CULTURE_TASKS_LANGUAGES", "en, es,hi,ar")
    model, results = run_scripted(harness, said, ["cedar_text", "cedar_text_zh"])
    found = reported(results, "cedar_text")
    agrees(found, OF_FOUR)
    assert not {"acc_ja", "acc_sw", "acc_zh"} & found.keys()
    agrees(reported(results, "cedar_text_zh"), OF_CHINESE)
    records = [sample["record"] for sample in results["samples"]["cedar_text"]]
    assert len(model.seen) == len(records) + 3 == 15 + 3  # all are asked and logged
    assert {record["groups"]["language"] for record in records if "score" not in record} == {"ja", "sw", "zh"}


def languages_of(doc):
    return doc["prompt_language"], doc["language"]


def test_languages_take_turns_and_images_stay_with_their_questions(data):
    text = load_for_evaluation("cedar_text")
    assert text["language"] == [*LANGUAGES, *LANGUAGES, "zh"]
    assert text["id"] == ["1"] * 7 + ["2"] * 7 + ["3"]
    assert load_for_evaluation("cedar_text_zh")["id"] == ["1", "2", "3"]
    matrix = load_for_evaluation("cedar_multimodal_matrix")
    assert list(map(languages_of, matrix))[:49] == list(product(LANGUAGES, LANGUAGES))
    assert [doc["image"].getpixel((0, 0))[0] for doc in matrix] == [0] * 49 + [20] * 49 + [40] * 7


def test_a_record_says_all_that_a_later_reading_needs(data):
    matrix = load_for_evaluation("cedar_text_matrix")
    [doc] = (doc for doc in matrix if (doc["id"], *languages_of(doc)) == ("2", "ar", "en"))
    record = scorer_of("cedar_text_matrix")(doc, [["<think>…</think> **حزن**\ud800"]])
    read = {"response": "<think>…</think> **حزن**\ufffd", "outcome": "scored", "label": "sadness"}
    groups = {"language": "en", "prompt_language": "ar", "pair": "prompt_ar_data_en", "supported": "True"}
    groups |= {"gold": "sadness", "prediction": "sadness"}
    expected = {"benchmark": "cedar", "metric": "acc", "item": "ar en 2", "cluster": "text 2", "groups": groups}
    expected |= {"score": 1.0, "runs": [read], "outcomes": {"scored": 1}, "references": ["sadness"]}
    expected |= {"question": "N en 2.\nQ en 2?", "prompt": "text_ar.v1", "facts": {"modality": "text"}}
    assert expected.items() <= record.items()
    assert record["scale"]["times"] == 100.0  # a share in the harness, percent in the paper
    assert len(record["prompt_sha256"]) == 64
    for responses in ([""], [[""]]):
        assert scorer_of("cedar_text_en")(doc, responses)["inputs"]["unparsed"] == ("en", "sadness", None)


def test_a_failed_run_leaves_the_replies_of_the_other_runs_where_they_are(data):
    doc = load_for_evaluation("cedar_text_en")[0]
    record = scorer_of("cedar_text_en")(doc, ["joy", "[LMMS_EVAL_BUDGET_EXCEEDED]", "anger"])
    assert [run.get("label") for run in record["runs"]] == ["happiness", None, "anger"]
    assert record["outcomes"] == {"scored": 2, "failed": 1}


def test_a_scene_goes_before_its_question_and_a_tag_in_the_data_is_no_place_for_it(data):
    content = {"hi": [row(1, "hi", "awe") | {"narrative": "They write <image> on a wall."}, row(2, "hi", "awe")]}
    write_folder(data, content, images=True)
    written, doc = load_for_evaluation("cedar_multimodal_hi")
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
