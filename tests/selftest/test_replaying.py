"""Published predictions that are scored again, from a made-up copy of a benchmark's repository."""

from __future__ import annotations

import json

import pytest

from culture_tasks.benchmarks.worldcuisines import predictions
from culture_tasks.benchmarks.worldcuisines.documents import TYPES
from culture_tasks.cli.main import main
from culture_tasks.errors import DataError
from culture_tasks.results.loaded_runs import Names
from culture_tasks.results.loaded_runs import load as load_runs
from culture_tasks.selftest.replaying import replays_of

OPTIONS = "1. Naan\n2. Pita\n\nPrint only the answer with a single answer id (1,2,3,4,5)."
FILES = {part: [each for each in TYPES if each.config == part] for part in ("task1", "task2")}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def question(each, lang):
    return {
        "qa_id": f"9{each.code}",
        "lang": lang,
        "food_id": "7",
        "prompt_type": each.code,
        "multi_choice_prompt": f"What is it?\n{OPTIONS}",
        "open_ended_prompt": "What is it?\n\nPrint only the answer.",
        "image_url": f"https://example.org/{each.code}.jpg",
        "answer": "Pita",
        "multi_choice_answer": 2,
    }


@pytest.fixture
def copy(tmp_path):
    """A repository in which GPT-4o is right in English, in Hokkien (whose code is NaN there) only where it is 1a."""
    for part, types in FILES.items():
        for lang in ("en", "nan"):
            rows = [question(each, lang) for each in types]
            unasked = {**question(types[0], lang), "qa_id": "1"}
            write(
                tmp_path / predictions._QUESTIONS / f"large_eval_{part}" / f"{lang}_large_eval_{part}.jsonl",
                [*rows, unasked],
            )
        for short, right, wrong in (("mc", "2", "1"), ("oe", "It is pita.", "Naan")):
            path = tmp_path / predictions._RESULTS / f"{part}_{short}_gpt-4o-2024-08-06_pred_small.jsonl"
            asked = [(each, code) for each in types for code in ("en", float("nan"))]
            replies = [right if code == "en" or each.name == "dish" else wrong for each, code in asked]
            rows = [
                {"qa_id": int(f"9{each.code}"), "lang": code, "prediction": reply}
                for (each, code), reply in zip(asked, replies, strict=True)
            ]
            write(path, rows)
    dishes = tmp_path / predictions._DISHES
    dishes.parent.mkdir(parents=True)
    dishes.write_text('food_id,Countries\n7,"[""Syria""]"\n', encoding="utf-8")
    return tmp_path


def test_scores_are_compared_with_the_published_ones_and_written_as_any_run_s(copy, tmp_path, monkeypatch):
    expected = {"dish": "100", "average": "62.5"}

    class Table:
        @staticmethod
        def printed(*, question, form, **_):
            return expected.get(question, "50") if form == "choices" else "12.3"

    monkeypatch.setattr(predictions, "load", lambda _: Table)
    (scratch := tmp_path / "scratch").mkdir()
    looks = replays_of(copy, tmp_path / "out", scratch)
    choices, answers = (look() for _, look in looks)
    assert [subject for subject, _ in looks] == ["GPT-4o", "GPT-4o"]
    assert (choices.state, choices.facts["worldcuisines acc_authors"]) == ("ok", {"score": 62.5, "published": "62.5"})
    assert (answers.state, answers.found.split(";")[0]) == ("fix", "worldcuisines_open has 62.50, published 12.3")
    runs = load_runs([str(tmp_path / "out")], Names()).runs
    assert {run.result.model for run in runs} == {"GPT-4o"}
    assert {run.result.task for run in runs} >= {"worldcuisines_dish", "worldcuisines_open_origin"}
    samples = next((tmp_path / "out").rglob("samples_worldcuisines_origin_*.jsonl")).read_text("utf-8").splitlines()
    record = json.loads(samples[0])["acc"]
    assert (record["groups"]["country"], record["item"]) == ("Syria", "92-en")


def test_a_question_without_a_prediction_is_named(copy, capsys):
    path = next((copy / predictions._RESULTS).glob("task2_mc_*"))
    path.write_text(path.read_text("utf-8").splitlines()[0] + "\n", encoding="utf-8")
    assert main(["selftest", "--no-judge", "--predictions", str(copy)]) == 1
    assert "fix   GPT-4o" in (printed := capsys.readouterr().out)
    assert "found no row" in printed or "found no prediction for the question 92-nan" in " ".join(printed.split())


def test_a_folder_without_predictions_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"found no predictions\. Expected a copy of a benchmark's repository"):
        replays_of(tmp_path, None, tmp_path)


def test_output_without_predictions_is_refused(capsys):
    assert main(["selftest", "--no-judge", "-o", "out"]) == 1
    assert "--output without --predictions" in capsys.readouterr().err


def test_part_of_the_questions_is_refused(copy, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_SUBSET", "2")
    assert main(["selftest", "--no-judge", "--predictions", str(copy)]) == 1
    assert "predictions are scored whole" in capsys.readouterr().err
