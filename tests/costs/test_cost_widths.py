"""``culture-tasks cost --width``: questions for an interval of a given width, hand-worked, and what it refuses."""

from __future__ import annotations

import json

import pytest
from support.sample_files import care_sample, write_run

from culture_tasks.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore")
PAPERS_JUDGE = ("--judge", "openai:gpt-4o")


@pytest.fixture(autouse=True)
def environment(monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", "off")


def write_ratings(folder, ratings, stamp="20260101_000000", model="toy/model"):
    return write_run(folder, model, {"care_zh": [care_sample(n, rating) for n, rating in enumerate(ratings)]}, stamp)


def widths(capsys, folder, width, *arguments):
    assert main(["cost", "--results", str(folder), "--width", str(width), *PAPERS_JUDGE, *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_runs_own_variance_says_how_many_questions_are_enough(tmp_path, capsys):
    write_ratings(tmp_path, [4.0, 6.0] * 5)
    # The variance of the ratings is 10 / 9; 1 point of 100 of the scale from 1 to 10 is 0.09. The task has 10
    # questions: with 4, the width is 1.96 * sqrt(10 / 9 * (1 / 4 - 1 / 10)) = 0.800, 8.9 points; with 5, 7.3; 6, 5.9.
    for width, needed in ((9, 4), (8, 5), (7, 6), (0.001, 10)):
        [estimate] = widths(capsys, tmp_path, width)
        assert (estimate["task"], estimate["needed"]) == ("care_zh", needed)
    assert estimate["questions"] == {"low": 10, "high": 10}
    # The interval of all ten is 2.262 (t with 9 degrees) * sqrt(10 / 9 / 10) = 0.754 to each side: 8.38 points.
    assert estimate["interval"]["low"] == pytest.approx(8.378, abs=0.001)


def test_money_is_the_judges_share_and_the_table_says_what_it_means(tmp_path, capsys):
    write_ratings(tmp_path, [4.0, 6.0] * 5)
    [estimate] = widths(capsys, tmp_path, 8)
    assert main(["cost", "--tasks", "care_zh", *PAPERS_JUDGE, "--json"]) == 0
    [of_all] = json.loads(capsys.readouterr().out)["tasks"]
    assert estimate["money"]["high"] == pytest.approx(of_all["money"]["high"] / 2)
    assert main(["cost", "--results", str(tmp_path), "--width", "8", "--judge", "lexical"]) == 0
    printed = capsys.readouterr().out
    assert ("| care_zh | 10 | ±8.4 | 5 | - |" in printed, "Set CULTURE_SUBSET" in printed) == (True, True)
