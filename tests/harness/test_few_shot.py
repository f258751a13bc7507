"""Few-shot examples: our tasks have none, and a user's variant has none without their images."""

from __future__ import annotations

import pytest
from support.in_process import variant
from support.scripted_models import run_scripted

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import SettingsError
from culture_tasks.harness.loading import load_for_evaluation

pytestmark = pytest.mark.filterwarnings("ignore")


def test_our_tasks_are_asked_without_examples(harness):
    tasks = ["care", "culturalvqa"]  # a group of one document each ends too
    model, _ = run_scripted(harness, str, tasks, limit=1, num_fewshot=2)
    declared = []
    for task in ("care_ar", "care_ja", "care_zh", "culturalvqa"):
        prompt = task_named(task).prompt(load_for_evaluation(task)[0])
        declared.append("\n".join(part for part in prompt.parts if isinstance(part, str)))
    shown = [seen[0] if harness == "lm_eval" else seen.text for seen in model.seen]
    assert sorted(text.removeprefix("<image>\n") for text in shown) == sorted(declared)


@pytest.mark.parametrize(
    ("harness", "task", "written", "options"),
    [
        ("lm_eval", "culturalvqa", 2, {}),  # it would show the examples without their images
        ("lm_eval", "culturalvqa", 3, {"num_fewshot": 2}),
        ("lmms_eval", "care_zh", 2, {}),  # it would show none
    ],
)
def test_examples_that_would_not_be_shown_are_refused(harness, task, written, options, tmp_path):
    tasks = variant(tmp_path, harness, task, num_fewshot=written)
    with pytest.raises(SettingsError, match=r"^variant: num_fewshot=2, .*num_fewshot: 0"):
        run_scripted(harness, str, tasks, include=tmp_path, limit=1, **options)


def test_a_question_is_not_among_its_own_examples(tmp_path):
    tasks = variant(tmp_path, "lm_eval", "culturalvqa_blind", num_fewshot=4)
    _, results = run_scripted("lm_eval", str, tasks, include=tmp_path)
    for sample in results["samples"]["variant"]:
        assert sample["arguments"][0][0].count(sample["doc"]["question"]) == 1
