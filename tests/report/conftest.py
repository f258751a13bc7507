"""Result folders of both harnesses, written by real runs with models and a judge that follow scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scripted_judge import ScriptedJudge, install
from support.toy_report import chance, hostile_report, toy_report
from support.written_runs import at, write_lm_eval, write_lmms_eval

from culture_tasks.judges.rubric.verdicts import Verdict
from culture_tasks.report.model import Report

ROOT = Path(__file__).resolve().parents[2]
TEXT_TASKS = ("care", "culturalvqa_blind", "cedar_text")
IMAGE_TASKS = ("culturalvqa", "cedar_multimodal", "crosscult_single")


def graded(item) -> Verdict:
    """Grades by luck, on the scale of the benchmark that the item must be of; some replies can't be read."""
    luck = chance(item.question, item.response)
    if luck > 0.97:
        return Verdict("unparsable", completion="hm", error="no rating")
    low, high = (0, 10) if item.language else (1, 2) if item.question.isascii() else (1, 10)
    return Verdict("scored", float(round(low + (high - low) * luck)), rationale="by luck")


def answer(model: str):
    """A script for a model: an emotion's name, with the model's own luck, so that every benchmark can use it."""
    emotions = ("anger", "fear", "happiness", "sadness", "surprise", "relief", "amusement")
    return lambda prompt, _: f"{emotions[int(chance(model, prompt) * 6.99)]}"


@pytest.fixture(scope="session")
def results(tmp_path_factory) -> Path:
    """Two text models in lm-eval and one image model in lmms-eval, graded by one judge."""
    folder = tmp_path_factory.mktemp("runs") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_JUDGE", "openai:scripted")
        patch.setenv("CULTURE_TASKS_DATA", str(ROOT / "examples" / "data"))
        install(patch, ScriptedJudge(graded))
        for number, model in enumerate(("toy/weak", "toy/strong"), start=1):
            path = write_lm_eval(folder, TEXT_TASKS, answer(model), model)
            at(path, f"2026-01-0{number}T00-00-00.000000", 1767225600.0 + 86400 * number)
        write_lmms_eval(folder, IMAGE_TASKS, "toy/seeing")
    return folder


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Report:
    """Of four models, which were written by hand."""
    return toy_report(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Path:
    """The folder of a report in which every text is hostile."""
    return hostile_report(tmp_path_factory.mktemp("hostile"))
