"""``culture-tasks plan``: numbers of questions by assumption and by earlier results, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.written_runs import write_lm_eval

from culture_tasks.cli.main import main
from culture_tasks.metrics.subsets import Components, SamplingFrame, half_width
from culture_tasks.results.run_files import GRADED_FROM

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def toy_data(monkeypatch):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(Path(__file__).resolve().parents[2] / "examples" / "data"))


def planned(capsys, *arguments):
    assert main(["plan", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_without_results_the_width_is_that_of_answers_half_of_which_are_right(capsys):
    [plan] = planned(capsys, "--tasks", "normad_rule", "--width", "35")
    n, of = plan["for_width"], plan["documents"]
    at_most_half_right = Components(0.0, 50.0**2)
    widths = [half_width(at_most_half_right, SamplingFrame(of, 1 / k - 1 / of), k) for k in (n - 1, n)]
    assert (of, plan["models"]) == (6, 0)
    assert widths[0] > 35 >= widths[1]
    assert plan["for_difference"] is None
    assert plan["money"] == {"low": 0.0, "high": 0.0}


def test_earlier_results_give_the_variance_and_how_two_models_differ(capsys, tmp_path):
    for model, words in (("one", ("Yes", "No")), ("two", ("No", "Neither"))):
        write_lm_eval(tmp_path, ["normad_rule"], lambda prompt, _, words=words: words[len(prompt) % 2], model=model)
    arguments = ("--tasks", "normad_rule", "--difference", "90", "--power", "0.5")
    [plan] = planned(capsys, *arguments, "--results", str(tmp_path))
    assert plan["models"] == 2
    scores = [
        [json.loads(line)["acc"]["score"] for line in path.read_text("utf-8").splitlines()]
        for path in sorted(tmp_path.rglob("samples_*.jsonl"))
    ]
    spread = np.var(100 * (np.array(scores[0]) - np.array(scores[1])), ddof=1)
    enough = [n for n in range(1, 7) if 1.96 * np.sqrt(spread / n) <= 90]
    assert plan["for_difference"] == (max(enough[0], 2) if enough else None)


def test_results_that_do_not_tell_how_scores_vary_are_left_out(capsys, tmp_path):
    arguments = ("--tasks", "normad_rule", "--difference", "90", "--width", "35")
    [assumed] = planned(capsys, *arguments)
    write_lm_eval(tmp_path / "alike", ["normad_rule"], lambda *_: "none of them", model="alike")
    [alike] = planned(capsys, *arguments, "--results", str(tmp_path))
    assert alike | {"seconds": None} == assumed
    for number in range(2):  # one model twice: no difference of two models
        words = ("Yes", "No")[:: 1 - 2 * number]
        write_lm_eval(tmp_path / str(number), ["normad_rule"], lambda prompt, _, by=words: by[len(prompt) % 2])
    twice = ("--results", str(tmp_path / "0"), str(tmp_path / "1"))
    [plan] = planned(capsys, *arguments, *twice)
    assert (plan["models"], plan["pairs"]) == (2, 0)
    assert main(["plan", *arguments, *twice]) == 0
    assert "Two models' scores are taken to correlate by 0.5" in capsys.readouterr().out


def test_earlier_results_give_the_time_from_the_fastest_to_the_slowest_model(capsys, tmp_path):
    tasks = ("normad_rule", "normad_value")
    for model, seconds, ran in (("fast", 60, tasks), ("slow", 900, tasks[:1]), ("graded again", 9999, tasks[:1])):
        path = write_lm_eval(tmp_path / model, ran, lambda *_: "Yes", model=model)
        data = json.loads(path.read_text("utf-8")) | {"total_evaluation_time_seconds": str(seconds)}
        if model == "graded again":
            data["config"][GRADED_FROM] = "results_of_another_run.json"
        path.write_text(json.dumps(data), "utf-8")
    arguments = ("--tasks", "normad_rule,normad_value", "--width", "0.001", "--results", str(tmp_path))
    times = {plan["task"]: plan["seconds"] for plan in planned(capsys, *arguments)}
    # 60 seconds for the twelve documents of both tasks, 900 for the six of one: by document 5 and 150.
    assert times == {"normad_rule": {"low": 30.0, "high": 900.0}, "normad_value": {"low": 30.0, "high": 30.0}}
    assert main(["plan", *arguments]) == 0
    assert "| 30 s to 15 min |" in capsys.readouterr().out


def test_a_judge_costs_its_share_and_the_table_says_what_it_assumes(capsys):
    whole = planned(capsys, "--tasks", "care_zh", "--width", "0.001", "--judge", "openai:gpt-4o")[0]
    part = planned(capsys, "--tasks", "care_zh", "--width", "1.5", "--judge", "openai:gpt-4o")[0]
    assert whole["for_width"] == 10
    assert part["money"]["high"] == pytest.approx(whole["money"]["high"] * part["for_width"] / 10)
    [unreachable] = planned(
        capsys, "--tasks", "care_zh", "--width", "1.5", "--difference", "0.001", "--judge", "openai:gpt-4o"
    )
    assert unreachable["for_difference"] is None
    assert unreachable["money"] == whole["money"]
    assert main(["plan", "--tasks", "care_zh", "--width", "1.5"]) == 0
    shown = capsys.readouterr().out
    assert "| care_zh | assumed | 10 | 10 |" in shown
    assert "Set CULTURE_SUBSET" in shown
    assert "a quarter of their scale" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "care_zh"], "neither --width nor --difference"),
        (["--tasks", "cara_zh", "--width", "1"], "no task 'cara_zh'"),
    ],
)
def test_what_can_not_be_planned_is_one_message(arguments, message, capsys):
    assert main(["plan", *arguments]) == 1
    assert message in capsys.readouterr().err
