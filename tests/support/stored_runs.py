"""Runs of both harnesses over the bundled data, stored as the harnesses write them, for tests that read result files.

``make stored-runs`` writes them anew; ``tests/harness/test_stored_runs.py`` says whether they still are what the
harnesses write. Times, versions and the place of the checkout are the same in each.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from culture_tasks.judges.rubric.verdicts import JudgeItem, Verdict

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "tests" / "fixtures" / "runs"
TEXT_TASKS = ("care", "culturalvqa_blind", "cedar_text")
IMAGE_TASKS = ("culturalvqa", "cedar_multimodal", "crosscult_single")
UNGRADED = {
    "lm_eval": ("care", "culturalvqa_blind", "cedar_text_zh"),
    "lmms_eval": (
        *("care", "cedar_text_zh", "blend_en", "cvqa_en", "normad_rule", "culturalbench_easy"),
        "worldcuisines_dish",
    ),
}
EMOTIONS = ("anger", "fear", "happiness", "sadness", "surprise", "relief", "amusement")
SETTLED: dict[str, Any] = {
    "date": "20260101_000000",
    "git_hash": "0",
    "git_branch": "main",
    "lmms_eval_version": "0",
    "model_source": "toy",
    "start_time": 0.0,
    "end_time": 1.5,
}
"""Entries of a result file that tell one run from the next."""


def chance(*texts: str) -> float:
    """A number from 0 to 1 that only depends on the texts."""
    return int(hashlib.sha256("|".join(texts).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def graded(item: JudgeItem) -> Verdict:
    """Grades by luck, on the scale of the benchmark that the item must be of; some replies can't be read."""
    luck = chance(item.question, item.response)
    if luck > 0.97:
        return Verdict("unparsable", completion="hm", error="no rating")
    low, high = (0, 10) if item.language else (1, 2) if item.question.isascii() else (1, 10)
    return Verdict("scored", float(round(low + (high - low) * luck)), rationale="by luck")


def answer(model: str) -> Callable[[str, int], str]:
    """A script for a model: an emotion's name, with the model's own luck, so that every benchmark can use it."""
    return lambda prompt, _: EMOTIONS[int(chance(model, prompt) * 6.99)]


def write(folder: Path) -> None:
    """Writes all runs: two text models in lm-eval and one image model in lmms-eval by one judge, and ungraded ones."""
    from support.scripted_judge import ScriptedJudge, install
    from support.written_runs import at, write_lm_eval, write_lmms_eval

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(ROOT / "examples" / "data"))
        patch.setenv("CULTURE_JUDGE", "none")
        first = write_lm_eval(
            folder / "ungraded" / "lm_eval", UNGRADED["lm_eval"], lambda prompt, _: f"to {prompt[-20:]}"
        )
        at(first, "2026-01-01T00-00-00.000000", 1767225600.0)
        write_lmms_eval(folder / "ungraded" / "lmms_eval", UNGRADED["lmms_eval"])
        patch.setenv("CULTURE_JUDGE", "openai:scripted")
        install(patch, ScriptedJudge(graded))
        for number, model in enumerate(("toy/weak", "toy/strong"), start=1):
            path = write_lm_eval(folder / "graded", TEXT_TASKS, answer(model), model)
            at(path, f"2026-01-0{number}T00-00-00.000000", 1767225600.0 + 86400 * number)
        write_lmms_eval(folder / "graded", IMAGE_TASKS, "toy/seeing")
    for path in folder.rglob("*.json*"):
        text = path.read_text(encoding="utf-8").replace(str(ROOT), "/culture-tasks")
        path.write_text(_settled(text) if path.suffix == ".json" else text, encoding="utf-8")


def _settled(text: str) -> str:
    content = json.loads(text)
    known = {name: value for name, value in SETTLED.items() if name in content}
    if isinstance(content["date"], float):  # which support.written_runs.at has set
        del known["date"]
    return json.dumps(content | known, ensure_ascii=False) + "\n"


def copy(run: str, folder: Path, tasks: Collection[str] = ()) -> Path:
    """Copies a stored run, or these tasks and groups of it, and returns its result file."""
    shutil.copytree(RUNS / run, folder, dirs_exist_ok=True)
    [path] = folder.rglob("*results*.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    names = {*tasks, *(member for task in tasks for member in content["group_subtasks"].get(task, ()))}
    known = content["configs"].keys() | content["group_subtasks"].keys()
    for other in known - names if tasks else ():
        for entry in content.values():
            if isinstance(entry, dict):
                entry.pop(other, None)
        for samples in (*path.parent.glob(f"*samples_{other}.jsonl"), *path.parent.glob(f"samples_{other}_20*")):
            samples.unlink()
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


if __name__ == "__main__":
    shutil.rmtree(RUNS, ignore_errors=True)
    write(RUNS)
