"""Few-shot examples: our tasks have none, and a user's variant has none without their images."""

from __future__ import annotations

import pytest
from support.in_process import run_lm_eval, run_lmms_eval, variant
from support.lmms_models import ChatEcho
from support.scripted_lm import ScriptedLM

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import SettingsError
from culture_tasks.harness.loading import load_for_evaluation

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def lm():
    return ScriptedLM(lambda prompt, _: "x")


def test_our_tasks_are_asked_without_examples(lm):
    tasks, chat = ["care", "culturalvqa"], ChatEcho()  # a group of one document each ends too
    run_lm_eval(lm, tasks, limit=1, num_fewshot=2)
    run_lmms_eval(chat, tasks, limit=1, num_fewshot=2)
    declared = []
    for task in ("care_ar", "care_ja", "care_zh", "culturalvqa"):
        prompt = task_named(task).prompt(load_for_evaluation(task)[0])
        declared.append([part for part in prompt.parts if isinstance(part, str)])
    for shown in (lm.prompts, [one.text for one in chat.seen]):
        assert sorted(text.removeprefix("<image>\n") for text in shown) == sorted(map("\n".join, declared))


def test_lm_eval_is_not_asked_with_examples_without_their_images(lm, tmp_path):
    for written, option in ((2, None), (3, 2)):
        tasks = variant(tmp_path, "lm_eval", "culturalvqa", num_fewshot=written)
        with pytest.raises(SettingsError, match=r"^variant: num_fewshot=2, .*num_fewshot: 0"):
            run_lm_eval(lm, tasks, include=tmp_path, limit=1, num_fewshot=option)
    assert lm.prompts == []
    run_lm_eval(lm, tasks, include=tmp_path, limit=1, num_fewshot=0)  # a command that asks for none has none
    assert lm.prompts[0].count("<image>") == 1


def test_a_question_is_not_among_its_own_examples(lm, tmp_path):
    tasks = variant(tmp_path, "lm_eval", "culturalvqa_blind", num_fewshot=4)
    results = run_lm_eval(lm, tasks, include=tmp_path)
    for sample in results["samples"]["variant"]:
        assert sample["arguments"][0][0].count(sample["doc"]["question"]) == 1


def test_lmms_eval_has_no_examples_for_our_tasks(tmp_path):
    echo = ChatEcho()
    with pytest.raises(SettingsError, match=r"^variant: num_fewshot=2, .*num_fewshot: 0"):
        run_lmms_eval(echo, variant(tmp_path, "lmms_eval", "care_zh", num_fewshot=2), include=tmp_path, limit=1)
    assert echo.seen == []
