"""Rows of benchmarks of choices that can't be used are named: the bundled data with another first row."""

from __future__ import annotations

import json
import shutil

import pytest

from culture_tasks.benchmarks.registry import task_named
from culture_tasks.data.files import read_file
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

FILES = {
    "normad": "normad.csv",
    "cvqa": "test.jsonl",
    "culturalbench_easy": "easy.jsonl",
    "culturalbench_hard": "hard.jsonl",
}


@pytest.fixture
def loaded(fixture_data, tmp_path):
    """Returns what loads a task from a copy of its bundled data whose first row has other values."""

    def load(task, **changes):
        name = next(name for start, name in FILES.items() if task.startswith(start))
        folder = shutil.copytree(fixture_data / task.partition("_")[0], tmp_path / task.partition("_")[0])
        first, *rows = read_file(folder / name).rows
        (folder / name).unlink()
        text = "".join(json.dumps(row) + "\n" for row in (first | changes, *rows))
        (folder / name).with_suffix(".jsonl").write_text(text, encoding="utf-8")
        return task_named(task).data.load(Settings(data=tmp_path)).rows

    return load


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("normad_rule", {"Gold Label": "maybe"}, "row 1, field 'label': found 'maybe'"),
        ("normad_rule", {"Rule-of-Thumb": ""}, "row 1, field 'Rule-of-Thumb': found nothing. normad_rule shows it"),
        ("normad_rule", {"Country": "japon"}, "field 'country': found 'japon'. Did you mean"),
        ("cvqa", {"Label": 4}, "row 1, field 'label': found 4"),
        ("cvqa", {"Options": ["a", "b"]}, "row 1, field 'options'"),
        ("cvqa", {"Options": "a, b"}, "Expected texts in brackets"),
        ("cvqa", {"Subset": "Tamil"}, "row 1, field 'subset': found 'Tamil'"),
        ("cvqa", {"image": "gone.png"}, "no file 'gone.png'"),
        ("culturalbench_easy", {"country": "Atlantis"}, "found 'Atlantis'. Expected one of Argentina"),
        ("culturalbench_hard", {"answer": "maybe"}, "row 1, field 'answer': found 'maybe'"),
        (
            "culturalbench_hard",
            {"prompt_question": "?"},
            "row 1, field 'question_idx': '0' has 4 rows, 1 of them true, with 2 wordings",
        ),
        ("culturalbench_hard", {"answer": False}, "'0' has 4 rows, 0 of them true, with 1 wordings"),
        (
            "culturalbench_hard",
            {
                "question_idx": 1,
                "prompt_question": "What do people in Japan usually do at the door of a home?",
                "country": "Japan",
            },
            "'1' has 5 rows, 2 of them true, with 1 wordings or countries. Expected at most 4",
        ),
    ],
)
def test_a_bad_row_is_named(loaded, task, changes, message):
    with pytest.raises(DataError, match=r"\.jsonl") as error:
        loaded(task, **changes)
    assert message in str(error.value)


def test_a_story_without_a_norm_is_no_obstacle_where_none_is_shown(loaded):
    assert len(loaded("normad_none", **{"Rule-of-Thumb": "", "Value": ""})) == 6


def test_options_that_an_older_revision_of_cvqa_prints_are_read(loaded):
    rows = loaded("cvqa", Options="['a', 'b', 'c', 'd']")
    assert (len(rows), rows[0]["options"]) == (4, ["a", "b", "c", "d"])
