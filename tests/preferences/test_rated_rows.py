"""Rated rows: CARE's layout and a user's own, in every file type, and what can't be used."""

from __future__ import annotations

import datasets
import pytest
from support.rated_data import row, rows_of, write_rows

from culture_tasks.errors import DataError
from culture_tasks.preferences.rating_sources import Taken, gather
from culture_tasks.settings import Settings


def read(*paths, rating=None, data=None):
    return gather([str(path) for path in paths], Taken(), rating, Settings(data=data))


@pytest.fixture
def write(tmp_path):
    return lambda *rows, name="rated.jsonl": write_rows(tmp_path / name, rows)


def refused(*paths, rating=None):
    with pytest.raises(DataError) as caught:
        read(*paths, rating=rating)
    return str(caught.value)


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
    assert second.answers[0].by == "gemma"
    assert (rated.rated_by.kind, rated.rated_by.name, rated.rated_by.scale) == ("people", "people", (1.0, 10.0))
    (source,) = rated.sources
    assert (source.kind, source.name, source.responses) == ("rows", "rated.jsonl", 4)


def test_several_files_make_one_set_of_questions(write):
    one = write(row("q", "a", 3), row("q", "b", 5), name="one.jsonl")
    other = write(row("Q?", "c", 7), name="other.jsonl")
    assert [text for text, _ in answers(read(one, other, one))] == ["a", "b", "c"]


def test_ratings_of_an_older_revision_and_of_another_column_need_not_be_on_the_rubrics_scale(write):
    rows = [row("q", "a", 3) | {"mapo": -1.5, "rating": 2}, row("q", "b", 9) | {"mapo": -0.25, "rating": 1}]
    rated = read(write(*rows), rating="mapo")
    assert answers(rated) == [("a", -1.5), ("b", -0.25)]
    assert (rated.rated_by.kind, rated.rated_by.name, rated.rated_by.scale) == ("column", "mapo", None)
    rated = read(write({"question": "q", "answer": "r", "response": "s", "rating": "7"}))
    assert (answers(rated), rated.rated_by.kind) == ([("s", 7.0)], "people")


def test_equal_texts_count_once_with_the_mean_of_their_ratings_and_what_is_left_out_is_counted(write):
    """0.1 + 0.1 + 0.1 is more than 0.3, and would make a pair of a tie."""
    rated = read(write(row("q", "a", 3), row("q", " a ", 6), row("q", "b", 5)))
    assert answers(rated) == [("a", 4.5), ("b", 5.0)]
    assert rated.left_out["repeated_texts"] == 1
    rows = [row("q", text, None) | {"mapo": 0.1} for text in ("a", "a", "a", "b")]
    assert answers(read(write(*rows), rating="mapo")) == [("a", 0.1), ("b", 0.1)]
    # Blank responses, rows without a rating, and of a question in two categories the one with fewer responses.
    rows = [row("q", "a", 3), row("q", " ", 1), row("q", "b", None), row("q", "c", " "), row("q", "d", 4)]
    rated = read(write(*rows, row("q", "e", 3, cul_type="Opinion")))
    assert answers(rated) == [("a", 3), ("d", 4)]
    names = ("blank_responses", "unrated_responses", "graded_by_another_rubric")
    assert [rated.left_out[name] for name in names] == [1, 2, 1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("q", "b", 11)], "row 1, field 'human_rating': found 11. Expected a number from 1 to 10"),
        ([row("q", "b", 5, cul_type="Socal norms")], "row 1, field 'category'"),
        ([row("q", "a", 3), row("q", "b", 5, rubric="lave3")], "ratings on two scales: 1 to 10 ("),
        ([row("q", "b", 5, colour="red")], "unknown column 'colour'"),
        ([*rows_of(700), row("q", "a", "many")], "rated.jsonl, row 2101, field 'human_rating': found 'many'"),
        ([row("q", "a", None)], "no row has a rating in the column 'human_rating'"),
    ],
)
def test_a_row_that_cant_be_used_is_named(write, rows, said):
    assert said in refused(write(*rows))


def test_ratings_beyond_the_scale_of_the_others_are_on_another_scale(write):
    one = write(row("q", "a", 3), name="one.jsonl")
    other = write({"question": "p", "response": "b", "human_rating": 87}, name="other.jsonl")
    assert "other.jsonl, row 1 has the rating 87, while others are on a scale of 1 to 10" in refused(one, other)


def test_rows_without_ratings_are_refused_with_what_is_there(write):
    path = write({"question": "q", "response": "a", "score": 3})
    said = f"{path}: no column 'human_rating' with ratings. Found are question, response, score. Name the column with"
    assert said in refused(path)
    assert "no column 'scor' with ratings. Did you mean 'score'?" in refused(path, rating="scor")


def test_cares_rows_come_from_the_data_folder_or_the_hub(tmp_path, monkeypatch):
    (tmp_path / "care_ratings").mkdir()
    write_rows(tmp_path / "care_ratings" / "train.jsonl", rows_of(2))
    assert len(read("care", data=tmp_path).questions) == len(read("geyang627/CARE", data=tmp_path).questions) == 2
    monkeypatch.setattr("culture_tasks.data.sources.load_split", lambda *_: datasets.Dataset.from_list(rows_of(1200)))
    rated = read("geyang627/CARE")
    assert len(rated.questions) == 1200
    assert [(source.name, source.responses) for source in rated.sources] == [("geyang627/CARE", 3600)]
    assert "geyang627/CAR: no such file or folder. Did you mean 'geyang627/CARE'?" in refused("geyang627/CAR")
    assert "rated.jsonl: no such file" in refused("rated.jsonl")
