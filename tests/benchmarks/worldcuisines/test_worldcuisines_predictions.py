"""The script that scores the authors' predictions, on a made-up copy of their repository."""

from __future__ import annotations

import json

import pytest
from support.scripts import speed_script

from culture_tasks.benchmarks.worldcuisines.benchmark import TYPES
from culture_tasks.results.loading import Names
from culture_tasks.results.loading import load as load_runs

OPTIONS = "1. Naan\n2. Pita\n\nPrint only the answer with a single answer id (1,2,3,4,5)."
FILES = {part: [each for each in TYPES if each.config == part] for part in ("task1", "task2")}

script = speed_script("worldcuisines_predictions")


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def question(each, lang):
    asked = {
        "prompt_type": each.code,
        "image_url": f"https://example.org/{each.code}.jpg",
        "lang": lang,
        "food_id": "7",
    }
    prompts = {
        "multi_choice_prompt": f"What is it?\n{OPTIONS}",
        "open_ended_prompt": "What is it?\n\nPrint only the a.",
    }
    return {"qa_id": f"9{each.code}", **asked, **prompts, "answer": "Pita", "multi_choice_answer": 2}


@pytest.fixture
def copy(tmp_path):
    """A repository in which GPT-4o is right in English, in Hokkien (whose code is NaN there) only where it is 1a."""
    for part, types in FILES.items():
        for lang in ("en", "nan"):
            rows = [question(each, lang) for each in types]
            unasked = {**question(types[0], lang), "qa_id": "1"}
            folder = tmp_path / script.QUESTIONS / f"large_eval_{part}"
            write(folder / f"{lang}_large_eval_{part}.jsonl", [*rows, unasked])
        for short, right, wrong in (("mc", "2", "1"), ("oe", "It is pita.", float("nan"))):
            path = tmp_path / script.RESULTS / f"{part}_{short}_gpt-4o-2024-08-06_pred_small.jsonl"
            asked = [(each, code) for each in types for code in ("en", float("nan"))]
            replies = [right if code == "en" or each.name == "dish" else wrong for each, code in asked]
            rows = [
                {"qa_id": int(f"9{each.code}"), "lang": code, "prediction": reply}
                for (each, code), reply in zip(asked, replies, strict=True)
            ]
            write(path, rows)
    dishes = tmp_path / script.DISHES
    dishes.parent.mkdir(parents=True)
    dishes.write_text('food_id,Countries\n7,"[""Syria""]"\n', encoding="utf-8")
    return tmp_path


def test_scores_are_compared_with_the_published_ones_and_written_as_any_run_s(copy, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_TASKS_DATA", "")  # which the script sets
    expected = {"dish": "100", "average": "62.5"}

    class Table:
        @staticmethod
        def printed(*, question, form, **_):
            return expected.get(question, "50") if form == "choices" else "12.3"

    monkeypatch.setattr(script, "load", lambda _: Table)
    assert script.main([str(copy), "-o", str(tmp_path / "out")]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[:4] == [
        "GPT-4o: acc_authors, 5 of 5 scores as published",
        "  worldcuisines has 62.50, published 62.5",
        "GPT-4o: contains, 0 of 5 scores as published",
        "  worldcuisines_open has 62.50, published 12.3",
    ]
    runs = load_runs([str(tmp_path / "out")], Names()).runs
    assert {run.task for run in runs} >= {"worldcuisines_dish", "worldcuisines_open_origin"}
    samples = next((tmp_path / "out").rglob("samples_worldcuisines_origin_*.jsonl")).read_text("utf-8").splitlines()
    assert json.loads(samples[0])["record"]["groups"]["country"] == "Syria"
