"""A user's own data: rows of another culture than their task's are refused, and none is taken for the release."""

from __future__ import annotations

import hashlib
import json

import pytest
from support import cedar_data
from support.crosscult_cases import rows as raw_rows
from support.crosscult_cases import write_folder

from culture_tasks.benchmarks.registry import benchmarks, task_named
from culture_tasks.data import tables
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

CARE = {
    "answer": "米饭",
    "culture_type": "Cultural entities",
    "associated_culture": "Native (Chinese)",
    "geographic_scope": "Nationwide",
}


def put(folder, name, rows):
    (folder / name).parent.mkdir()
    (folder / name).write_text(json.dumps(rows), encoding="utf-8")


def write_care(folder, count=3, **other):
    """Writes Chinese questions, the last one with other values."""
    rows = [{"question": f"问题 {number}？", **CARE} for number in range(count)]
    put(folder, "care/Chinese-test.json", [*rows[:-1], rows[-1] | other])


def write_culturalvqa(folder, country="Germany"):
    countries = ("China", "China", country)
    rows = [{"question": f"{at}?", "all_answers": ["a"], "country": one} for at, one in enumerate(countries)]
    put(folder, "culturalvqa/test.json", rows)


def write_cedar(folder, language="ar"):
    content = cedar_data.rows()
    content["ar"] = [content["ar"][0], cedar_data.row(2, language, "fear")]
    cedar_data.write_folder(folder, content)


def write_blend(folder, country="China"):
    choice = {"prompt": "Which?", "choices": '{"A": "tea", "B": "coffee"}', "answer_idx": "A"}
    countries = ("China", "UK", country)
    rows = [{"MCQID": f"m{at}", "ID": f"q{at}", "country": one, **choice} for at, one in enumerate(countries)]
    put(folder, "blend/mc_questions_file.json", rows)


def read(task, folder, **chosen):
    """Returns the documents of a task, and how its data differ from the release, by file."""
    settings = Settings(data=folder, **chosen)
    documents = task_named(task).data.load(settings)
    return documents.rows, documents.reading.differences


CONTRADICTIONS = [
    ("care_zh", write_care, {"associated_culture": "Native (Korean)"}, "row 3", "associated_culture"),
    ("culturalvqa_blind", write_culturalvqa, {"country": "Japan"}, "row 3", "country"),
    ("cedar_text_ar", write_cedar, {"language": "es"}, "row 2", "answer"),
    ("blend_mcq", write_blend, {"country": "Japan"}, "row 3", "country"),
]


@pytest.mark.parametrize(("task", "write", "other", "row", "field"), CONTRADICTIONS)
def test_a_row_of_another_culture_is_refused_unless_the_user_allows_it(tmp_path, task, write, other, row, field):
    write(tmp_path, **other)
    with pytest.raises(DataError, match=rf"{row}, field '{field}': found .*CULTURE_TASKS_OTHER_CULTURES=allow"):
        read(task, tmp_path)
    report = benchmarks()[task.partition("_")[0]].check(Settings(data=tmp_path))
    assert [problem for problem in report.problems if f"{row}, field '{field}'" in problem]
    _, own = read(task, tmp_path, other_cultures="allow")
    assert "1 row of another culture" in next(iter(own.values()))


@pytest.mark.parametrize(
    ("task", "write", "rows"),
    [
        ("care_zh", lambda folder: write_care(folder, 10), "10 rows, and the release has 150"),
        ("culturalvqa_blind", write_culturalvqa, "3 rows, and the release has 2,378"),
        ("cedar_text_ar", write_cedar, "2 rows, and the release has 1,166"),
        ("blend_mcq", write_blend, "3 rows, and the release has 1,000 or more"),
        ("crosscult_diagnostic", lambda folder: write_folder(folder, raw_rows()), "12 rows, and the release has 9,800"),
    ],
)
def test_data_of_another_size_than_the_release_are_the_user_s_own(tmp_path, task, write, rows):
    write(tmp_path)
    for _ in range(2):  # what is kept in memory is noted too
        _, own = read(task, tmp_path)
        assert list(own.values()) == [rows]


@pytest.mark.parametrize(("known", "differs"), [(20, []), (19, ["other questions than the release"])])
def test_questions_tell_data_of_the_release_s_size_from_the_release(tmp_path, monkeypatch, known, differs):
    digests = frozenset(hashlib.sha256(f"问题 {number}？".encode()).hexdigest()[:16] for number in range(known))
    monkeypatch.setattr(tables, "released_questions", lambda: digests)
    write_care(tmp_path, 150)
    assert list(read("care_zh", tmp_path)[1].values()) == differs


def test_the_bundled_data_are_no_release_in_any_task(fixture_data):
    for name in ("care_en_ja", "culturalvqa", "cedar_multimodal", "blend", "blend_mcq"):
        assert read(name, fixture_data)[1], name
