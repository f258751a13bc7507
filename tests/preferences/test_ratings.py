"""Rows that people have rated: what is read of them."""

from __future__ import annotations

import datasets
import pytest
from support.rated_data import row, rows_of, write_rows

from culture_tasks.data.reading import DataReading
from culture_tasks.preferences.ratings import read_ratings
from culture_tasks.settings import Settings


def read(*paths, data=None):
    return read_ratings([str(path) for path in paths], Settings(data=data))


@pytest.fixture
def write(tmp_path):
    return lambda *rows, name="rated.jsonl": write_rows(tmp_path / name, rows)


def answers(rated):
    return [(answer.text, answer.rating) for answer in rated.questions[0].answers]


def test_rows_in_cares_layout(write):
    path = write(
        row("在中国怎么送礼？", "用双手", 9),
        row("在中国怎么送礼", "扔过去", 2, source="GPT-4o"),
        row("在中国怎么送礼？", "the answer to 在中国怎么送礼？", 10),
        row("كيف تحيي؟", "السلام", 8, cul_type="Opinion", associated_culture="Foreign (French)", model="gemma"),
    )
    rated = read(path)
    first, second = rated.questions
    assert (first.text, first.references) == ("在中国怎么送礼？", ("the answer to 在中国怎么送礼？",))
    assert (first.language, first.category, first.culture) == ("zh", "norms", "native")
    assert (second.language, second.category, second.culture) == ("ar", "opinion", "foreign")
    assert first.answers == [
        ("用双手", 9.0, "LLM"),
        ("扔过去", 2.0, "GPT-4o"),
        ("the answer to 在中国怎么送礼？", 10.0, "people"),
    ]
    assert second.answers[0].writer == "gemma"
    assert rated.rated_by == {"kind": "people", "name": "people", "judges": [], "scale": (1.0, 10.0)}
    (source,) = rated.sources
    assert (source["kind"], source["name"], source["responses"]) == ("rows", "rated.jsonl", 4)
    one = write(row("q", "a", 3), row("q", "b", 5), name="one.jsonl")
    other = write(row("Q?", "c", 7), name="other.jsonl")
    assert [text for text, _ in answers(read(one, other, one))] == ["a", "b", "c"]


def test_an_older_revision_calls_the_ratings_otherwise(write):
    rated = read(write({"question": "q", "answer": "r", "response": "s", "rating": "7"}))
    assert (answers(rated), rated.rated_by["kind"]) == ([("s", 7.0)], "people")
    assert answers(read(write(row("q", "a", 3) | {"rating": 2}))) == [("a", 3.0)]  # the newer one counts


def test_equal_texts_count_once_with_the_mean_of_their_ratings_and_what_is_left_out_is_counted(write):
    """1.1 + 1.1 + 1.1 is more than 3.3, and would make a pair of a tie."""
    rated = read(write(row("q", "a", 3), row("q", " a ", 6), row("q", "b", 5)))
    assert answers(rated) == [("a", 4.5), ("b", 5.0)]
    assert rated.left_out["repeated_texts"] == 1
    assert answers(read(write(*(row("q", text, 1.1) for text in ("a", "a", "a", "b"))))) == [("a", 1.1), ("b", 1.1)]
    # Blank responses, rows without a rating, and of a question in two categories the one with fewer responses.
    failed = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] Error code: 503"
    rows = [row("q", "a", 3), row("q", " ", 1), row("q", "b", None), row("q", failed, 9), row("q", "d", 4)]
    rated = read(write(*rows, row("q", "e", 3, cul_type="Opinion")))
    assert answers(rated) == [("a", 3), ("d", 4)]
    names = ("blank_responses", "unrated_responses", "graded_by_another_rubric")
    assert [rated.left_out[name] for name in names] == [1, 2, 1]


def test_cares_rows_come_from_the_data_folder_or_the_hub(tmp_path, monkeypatch):
    (tmp_path / "care_ratings").mkdir()
    write_rows(tmp_path / "care_ratings" / "train.jsonl", rows_of(2))
    assert len(read("care", data=tmp_path).questions) == len(read("geyang627/CARE", data=tmp_path).questions) == 2
    monkeypatch.setattr(
        "culture_tasks.data.tables.load_split", lambda *_: (datasets.Dataset.from_list(rows_of(1200)), DataReading())
    )
    rated = read("geyang627/CARE")
    assert len(rated.questions) == 1200
    assert [(source["name"], source["responses"]) for source in rated.sources] == [("geyang627/CARE", 3600)]
