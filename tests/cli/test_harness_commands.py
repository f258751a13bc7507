"""``culture-tasks include-path`` and ``culture-tasks lm-eval``, which passes everything on."""

from __future__ import annotations

import sys
from pathlib import Path

import lm_eval.__main__
import pytest
from lm_eval.config.evaluate_config import EvaluatorConfig
from lm_eval.tasks import TaskManager
from lm_eval.tasks._index import TaskIndex

from culture_tasks.benchmarks.interface import HARNESSES
from culture_tasks.benchmarks.registry import task_folder
from culture_tasks.cli import lm_eval as command
from culture_tasks.cli.main import main


@pytest.mark.parametrize("harness", HARNESSES)
def test_the_include_path_is_one_line_that_names_the_folder_of_task_files(capsys, harness):
    assert main(["include-path", harness]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert Path(line) == task_folder(harness)
    assert Path(line).is_absolute()
    assert list(Path(line).glob("care/care.yaml"))


@pytest.fixture
def passed_on(monkeypatch):
    """Stands in for lm-eval's command; gives the arguments that it got and the folders that it reads."""
    seen = {}

    def run(*arguments, folders=()):
        def cli_evaluate():
            seen["arguments"] = list(sys.argv)
            TaskIndex.build(list(folders))

        monkeypatch.setattr(lm_eval.__main__, "cli_evaluate", cli_evaluate)
        assert main(["lm-eval", *arguments]) == 0
        return seen

    monkeypatch.setattr(TaskIndex, "build", staticmethod(lambda paths: seen.update(folders=paths)))
    return run


def test_every_argument_is_passed_on_as_it_is_and_lm_eval_is_left_as_it_was(passed_on):
    def state():
        return TaskIndex.build, EvaluatorConfig.process_tasks, sys.argv

    before = state()
    for words in ("--help", "run --model hf --limit 2 -v --model_args=pretrained=x,dtype=float32 -- -x"):
        assert passed_on(*words.split())["arguments"] == ["lm_eval", *words.split()]
        assert all(after is was for after, was in zip(state(), before, strict=True))


def test_our_folder_stands_beside_the_user_s_once_and_the_real_task_manager_takes_both(
    passed_on, tmp_path, monkeypatch
):
    ours = task_folder("lm_eval")
    for given in ([], [Path("mine"), Path("more")]):
        assert passed_on("run", folders=given)["folders"] == [*given, ours]
        found_by_entry_point = [ours.resolve(), *given]
        assert passed_on("run", folders=found_by_entry_point)["folders"] == found_by_entry_point
    monkeypatch.undo()
    (tmp_path / "mine.yaml").write_text("task: task_of_the_user\n")
    monkeypatch.setattr(TaskIndex, "build", command._with_our_folders(TaskIndex.build))
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    assert {"care", "culturalvqa", "task_of_the_user"} <= set(manager.all_tasks)
