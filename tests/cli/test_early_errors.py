"""Errors of ours come before a model is loaded, as one message and a status that isn't 0."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from lm_eval.config.evaluate_config import EvaluatorConfig
from lm_eval.tasks import TaskManager
from support.in_process import variant

from culture_tasks.benchmarks.registry import task_folder, task_named
from culture_tasks.cli import lm_eval as command
from culture_tasks.errors import (
    DataError,
    ImagesNotShownError,
    JudgeNotConfiguredError,
    SettingsError,
)
from culture_tasks.harness import extending, loading
from culture_tasks.harness.lmms_eval import plugin


@pytest.fixture
def loads(monkeypatch, fixture_data):
    """The tasks whose documents are read, in order; the toy data are there, and text overlap grades."""
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    read = []

    def counted(name):
        def load(settings):
            read.append(name)
            return task.data.load(settings)

        task = task_named(name)
        return replace(task, data=replace(task.data, load=load))

    monkeypatch.setattr(loading, "task_named", counted)
    return read


def process_tasks(tasks, folder=None, model="local-chat-completions", **options):
    """What lm-eval's command does with --tasks before it loads a model, in the version of `culture-tasks lm-eval`."""
    config = EvaluatorConfig(tasks=tasks, model=model, include_path=None, metadata={}, model_args={}, **options)
    with pytest.MonkeyPatch.context() as patch:
        folders = [str(task_folder("lm_eval")), *([str(folder)] if folder else [])]
        original = TaskManager.__init__
        patch.setattr(
            TaskManager,
            "__init__",
            lambda self, **kwargs: original(self, **{**kwargs, "include_defaults": False, "include_path": folders}),
        )
        return config, command._with_checks(EvaluatorConfig.process_tasks)(config)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ("care,culturalvqa", ["care_ar", "care_ja", "care_zh", "culturalvqa"]),
        (["care_ja", "culturalvqa_blind,care_ja"], ["care_ja", "culturalvqa_blind"]),
        ("group_of_the_user", ["care_zh", "culturalvqa_blind", "care_ar"]),
        ("{folder}/variant_of_the_user.yaml", ["care_zh"]),
        ("task_of_the_user", []),
    ],
)
def test_what_lm_eval_was_asked_for_is_loaded_once_before_the_model(loads, tmp_path, tasks, expected):
    variant = f"include: {task_folder('lm_eval') / 'care' / 'care_zh.yaml'}\ntask: variant_of_the_user\nrepeats: 3\n"
    (tmp_path / "variant_of_the_user.yaml").write_text(variant)
    (tmp_path / "task_of_the_user.yaml").write_text("task: task_of_the_user\ndataset_path: json\n")
    inner = {"group": "inner", "task": ["culturalvqa_blind", {"task": "care_ar", "num_fewshot": 0}]}
    group = {"group": "group_of_the_user", "task": ["variant_of_the_user", "task_of_the_user", inner]}
    (tmp_path / "group_of_the_user.yaml").write_text(yaml.safe_dump(group))
    given = tasks.format(folder=tmp_path) if isinstance(tasks, str) else tasks
    config, manager = process_tasks(given, tmp_path)
    assert loads == expected
    if expected:
        manager.load(config.tasks if given != "group_of_the_user" else ["variant_of_the_user"])
    assert loads == expected


def test_data_or_a_judge_that_can_t_be_used_stop_lm_eval_before_the_model(loads, monkeypatch, tmp_path):
    with pytest.raises(SettingsError, match=r"no task or group caree\. Did you mean 'care'\?"):
        process_tasks(["care_zh", "caree"])
    monkeypatch.delenv("CULTURE_JUDGE")
    with pytest.raises(JudgeNotConfiguredError):
        process_tasks("care_zh")
    loads.clear()
    process_tasks("care_zh", predict_only=True, output_path="out")  # a prediction needs no judge
    assert loads == ["care_zh"]
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="nowhere"):
        process_tasks("care_zh")


def test_a_model_that_a_harness_would_load_as_judge_stops_a_run_of_either_before_the_model(loads, manager, monkeypatch):
    from lmms_eval import evaluator

    monkeypatch.setenv("CULTURE_JUDGE", "lm_eval:hf,pretrained=x,token=hf_secret")
    advice = r"CULTURE_JUDGE=none for the run, then `culture-tasks rejudge RESULTS --judge lm_eval:…`\.$"
    with pytest.raises(SettingsError, match=rf"^CULTURE_JUDGE=lm_eval:….*{advice}"):
        process_tasks("care_zh")
    names = manager.match_tasks(["care_zh"])
    with pytest.raises(SystemExit, match=rf"^culture-tasks: error: CULTURE_JUDGE=lm_eval:….*{advice}"):
        evaluator.simple_evaluate(model="not_there", tasks=names)
    process_tasks("culturalbench_easy")  # needs no judge


def test_tasks_with_images_are_refused_before_a_model_that_can_not_see_them_is_loaded(loads, tmp_path):
    tasks = variant(tmp_path, "lm_eval", "culturalvqa", num_fewshot=2)
    with pytest.raises(SettingsError, match="variant: num_fewshot=3"):  # examples come without their images
        process_tasks(tasks, tmp_path, num_fewshot=3)
    with pytest.raises(ImagesNotShownError, match=r"'hf' takes no images.*hf-multimodal"):
        process_tasks("care_zh,culturalvqa", model="hf")
    assert loads == []
    process_tasks(tasks, tmp_path, num_fewshot=0)
    process_tasks("cedar_text_en", model="hf")


def test_a_second_run_and_changed_settings_read_the_data_again(loads, monkeypatch):
    for _ in range(2):
        loading.load_ahead(["care_zh"])
        loading.load_for_evaluation("care_zh")
    assert loads == ["care_zh", "care_zh"]
    monkeypatch.setenv("CULTURE_JUDGE", "none")
    loading.load_for_evaluation("care_zh")
    assert loads == ["care_zh"] * 3


@pytest.fixture
def manager():
    import lmms_eval.models  # noqa: F401 - loads the plug-in
    from lmms_eval.tasks import TaskManager

    return TaskManager(include_defaults=False)


def test_lmms_eval_s_command_loads_data_once_and_ends_with_an_error_of_ours(loads, manager, monkeypatch, tmp_path):

    from lmms_eval import evaluator

    names = manager.match_tasks(["care", "culturalvqa_blind"])
    assert loads == ["care_ar", "care_ja", "care_zh", "culturalvqa_blind"]
    manager.load_task_or_group(names)
    assert len(loads) == 4
    monkeypatch.setattr(extending, "find_spec", lambda package: None)
    with pytest.raises(SystemExit, match=r"^culture-tasks: error: --model vllm needs the package 'vllm'"):
        evaluator.simple_evaluate(model="vllm", tasks=manager.match_tasks(["care_zh"]))
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr(plugin, "_in_a_command", False)
    with pytest.raises(DataError, match="nowhere"):  # in a program
        manager.load_task_or_group(["care_zh"])
    with pytest.raises(SystemExit, match=r"^culture-tasks: error: CULTURE_TASKS_DATA=.*nowhere.*"):
        manager.match_tasks(["care_zh"])
    with pytest.raises(SystemExit, match="nowhere"):
        manager.load_task_or_group(["care_zh"])


PREDICTS_THEN_GRADES = """
import runpy, sys
output = sys.argv[1]
for options in (["--predict_only", "--limit", "1"], []):
    sys.argv = ["lmms_eval", "--model", "echo_chat", "--tasks", "care_zh", "--output_path", output, *options]
    runpy.run_module("support.run_lmms_eval", run_name="__main__")
"""
TESTS = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_command_without_a_judge_ends_with_one_message_and_status_1_unless_it_only_predicts(fixture_data, tmp_path):
    variables = {"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
    variables |= {"CULTURE_TASKS_DATA": str(fixture_data), "ACCELERATE_USE_CPU": "true"}
    call = [sys.executable, "-c", PREDICTS_THEN_GRADES, str(tmp_path)]
    done = subprocess.run(call, env=os.environ | variables, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1, done.stderr[-3000:]
    assert "Traceback" not in done.stdout + done.stderr
    [line] = [line for line in done.stderr.splitlines() if "culture-tasks: error: " in line]
    assert "CULTURE_JUDGE=openai:<model>" in line
    assert line in done.stderr.splitlines()[-2:]  # where two runs are one process, the first has its say at the end
    assert len(list(tmp_path.rglob("*samples*care_zh*"))) == 1


def test_a_setting_that_hides_our_tasks_ends_lmms_evals_command_with_one_message(monkeypatch):
    def entries():
        raise SettingsError("settings: unknown environment variable")

    monkeypatch.setattr(plugin, "entries", entries)
    monkeypatch.setattr(plugin, "_in_a_command", False)
    assert plugin._with_our_tasks(lambda self: {"mmmu": {}})(None) == {"mmmu": {}}
    with pytest.raises(SystemExit, match=r"^culture-tasks: error: settings: unknown environment variable$"):
        plugin._with_data_loaded_ahead(lambda self, names: names)(None, ["mmmu"])
