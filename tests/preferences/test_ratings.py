"""Rated rows of people and results that a judge has graded: what is read of them, and what can't be used."""

from __future__ import annotations

import datasets
import pytest
from support.rated_data import CARE_JUDGE, care_sample, row, rows_of, write_model, write_rows
from support.sample_files import write_run

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError
from culture_tasks.preferences.ratings import ResultSelection, read_ratings
from culture_tasks.settings import Settings


def read(*paths, rating=None, data=None, **options):
    selection = ResultSelection(**{"test_questions": True} | options)
    return read_ratings([str(path) for path in paths], rating, selection, Settings(data=data))


@pytest.fixture
def write(tmp_path):
    return lambda *rows, name="rated.jsonl": write_rows(tmp_path / name, rows)


def refused(*paths, **options):
    with pytest.raises(DataError) as caught:
        read(*paths, **options)
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
    assert second.answers[0].writer == "gemma"
    assert rated.rated_by == {"kind": "people", "name": "people", "judges": [], "scale": (1.0, 10.0)}
    (source,) = rated.sources
    assert (source["kind"], source["name"], source["responses"]) == ("rows", "rated.jsonl", 4)
    one = write(row("q", "a", 3), row("q", "b", 5), name="one.jsonl")
    other = write(row("Q?", "c", 7), name="other.jsonl")
    assert [text for text, _ in answers(read(one, other, one))] == ["a", "b", "c"]


def test_ratings_of_an_older_revision_and_of_another_column_need_not_be_on_the_rubrics_scale(write):
    rows = [row("q", "a", 3) | {"mapo": -1.5, "rating": 2}, row("q", "b", 9) | {"mapo": -0.25, "rating": 1}]
    rated = read(write(*rows), rating="mapo")
    assert answers(rated) == [("a", -1.5), ("b", -0.25)]
    assert rated.rated_by == {"kind": "column", "name": "mapo", "judges": [], "scale": None}
    assert "no row has a rating in the column 'mappo'. Did you mean 'mapo'?" in refused(write(*rows), rating="mappo")
    rated = read(write({"question": "q", "answer": "r", "response": "s", "rating": "7"}))
    assert (answers(rated), rated.rated_by["kind"]) == ([("s", 7.0)], "people")


def test_equal_texts_count_once_with_the_mean_of_their_ratings_and_what_is_left_out_is_counted(write):
    """0.1 + 0.1 + 0.1 is more than 0.3, and would make a pair of a tie."""
    rated = read(write(row("q", "a", 3), row("q", " a ", 6), row("q", "b", 5)))
    assert answers(rated) == [("a", 4.5), ("b", 5.0)]
    assert rated.left_out["repeated_texts"] == 1
    rows = [row("q", text, None) | {"mapo": 0.1} for text in ("a", "a", "a", "b")]
    assert answers(read(write(*rows), rating="mapo")) == [("a", 0.1), ("b", 0.1)]
    # Blank responses, rows without a rating, and of a question in two categories the one with fewer responses.
    failed = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] Error code: 503"
    rows = [row("q", "a", 3), row("q", " ", 1), row("q", "b", None), row("q", failed, 9), row("q", "d", 4)]
    rated = read(write(*rows, row("q", "e", 3, cul_type="Opinion")))
    assert answers(rated) == [("a", 3), ("d", 4)]
    names = ("blank_responses", "unrated_responses", "graded_by_another_rubric")
    assert [rated.left_out[name] for name in names] == [1, 2, 1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([*rows_of(700), row("q", "b", 11)], "row 2101, field 'human_rating': found 11. Expected a number from 1 to"),
        ([row("q", "b", 5, cul_type="Socal norms")], "row 1, field 'category'"),
        ([row("q", "a", 3), row("q", "b", 2, rubric="lave")], "has the scale (1.0, 2.0), and "),
        ([row("q", "b", 5, colour="red")], "unknown column 'colour'"),
        ([row("q", "a", None)], "no row has a rating in the column 'human_rating'"),
    ],
)
def test_a_row_that_cant_be_used_is_named(write, rows, said):
    path = write(*rows)
    assert str(path) in refused(path)
    assert said in refused(path)


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
    assert "geyang627/CAR: no such file or folder. Did you mean 'geyang627/CARE'?" in refused("geyang627/CAR")


def models(*paths, **options):
    return sorted(source["model"] for source in read(*paths, **options).sources)


@pytest.fixture
def two_models(tmp_path):
    write_model(tmp_path, "gemma", [9, 2, 5])
    write_model(tmp_path, "qwen", [3, 8, None])
    return tmp_path


def test_two_models_make_the_responses_of_a_question(two_models):
    rated = read(two_models / "gemma", two_models / "qwen")
    assert [question.text for question in rated.questions] == [f"怎么做zh-{number}？" for number in range(3)]
    answers = [(each.text, each.rating, each.writer) for each in rated.questions[0].answers]
    assert answers == [("gemma的回答0", 9.0, "gemma"), ("qwen的回答0", 3.0, "qwen")]
    assert [len(question.answers) for question in rated.questions] == [2, 2, 1]
    assert rated.left_out["unscored_verdicts"] == 1
    first = rated.questions[0]
    assert (first.references, first.language, first.category) == (("答案zh-0",), "zh", "norms")
    assert first.culture == "native"
    judged = {"kind": "judge", "name": "openai:gpt-4o", "judges": [CARE_JUDGE], "scale": (1.0, 10.0)}
    assert rated.rated_by == judged
    sources = [(each["model"], each["task"], each["responses"]) for each in rated.sources]
    assert sources == [("gemma", "care_zh", 3), ("qwen", "care_zh", 2)]
    assert rated.test_items[first.fingerprint] == {("care_zh", "zh-0")}
    said = refused(two_models, test_questions=False)  # unless the user knows
    assert "care_zh is a test, by which a model that is trained on its questions can't be tested any more" in said
    assert "--train-on-test" in said


def test_reasoning_is_cut_off_and_the_same_response_graded_twice_counts_once(tmp_path):
    config = {"model": "hf", "model_args": "pretrained=base,peft=/somewhere/dpo-zh"}
    write_run(tmp_path, "a", {"care_zh": [care_sample("zh-1", "<think>hm</think>\n用双手", 9.0)]}, config=config)
    write_run(tmp_path, "a", {"care_zh": [care_sample("zh-1", "用双手", 7.0)]}, stamp="20260102_000000")
    assert read(tmp_path).questions[0].answers == [("用双手", 8.0, "a + dpo-zh")]


def test_verdicts_count_of_one_judge_by_one_prompt_and_of_the_tasks_that_are_named(two_models, tmp_path):
    path = write_rows(tmp_path / "rated.jsonl", [row("q", "a", 3)])
    assert "has the rater openai:gpt-4o, and" in refused(path, two_models / "gemma")
    others = {
        "mini": CARE_JUDGE | {"model": "gpt-4o-mini"},
        "prompt": CARE_JUDGE | {"prompt_sha256": "c" * 64},
        "warm": CARE_JUDGE | {"sampling": {"temperature": 1.0}},
        "waiting": CARE_JUDGE | {"backend": "none", "model": "none", "prompt": "", "prompt_sha256": ""},
        "overlap": CARE_JUDGE | {"backend": "lexical", "model": "token_f1"},
    }
    for name, judge in others.items():
        write_model(tmp_path / "others", name, [None, None] if name == "waiting" else [9, 2], judge=judge)
    beside = {name: (two_models / "gemma", tmp_path / "others" / name) for name in others}
    assert "has the rater openai:gpt-4o-mini, and" in refused(*beside["mini"])
    for name, value in (
        ("prompt", f"prompt sha256 of openai:gpt-4o with care_norms_commonsense {'c' * 64}"),
        ("warm", "sampling of"),
    ):
        assert f"has the {value}" in refused(*beside[name])
    assert models(*beside["mini"], judge="openai:gpt-4o-mini") == ["mini"]
    assert models(*beside["waiting"]) == models(*beside["overlap"]) == ["gemma"]
    assert models(*beside["overlap"], judge="lexical") == ["overlap"]
    said = refused(*beside["mini"], judge="openai:gpt-4-o")
    assert "2 samples graded by openai:gpt-4o-mini. Expected" in said
    own = care_sample("1", "好", 9.0)["record"]
    del own["judge"]
    other = write_run(tmp_path / "ungraded", "a", {"cedar_text": [{"record": own}]})
    assert "samples of cedar_text, which no judge grades" in refused(other)
    write_model(two_models, "llama", [1, 2], task="care_greedy_zh")
    results = [two_models / name for name in ("gemma", "qwen", "llama")]
    assert models(*results, tasks=("care_greedy_zh",)) == ["llama"]
    assert models(*results, tasks=("care_z*",)) == ["gemma", "qwen"]
    assert "found no samples. Expected" in refused(*results, tasks=("care_zhh",))


def test_images_and_what_the_authors_forbid_are_refused_whatever_the_user_says(tmp_path):
    write_run(tmp_path, "a", {"sayings": [care_sample("zh-1", "好", 9.0, image="1.png")]})
    assert "sayings shows images, and only text can be trained on here" in refused(tmp_path)
    write_run(tmp_path / "b", "a", {"culturalvqa": [care_sample("zh-1", "好", 9.0)]})
    assert "culturalvqa shows images" in refused(tmp_path / "b")
    forbidding = [benchmark for benchmark in benchmarks().values() if benchmark.not_for_training]
    assert forbidding
    for benchmark in forbidding:
        judged = care_sample("1", "好", 9.0, benchmark=benchmark.name)
        said = refused(write_run(tmp_path / benchmark.name, "a", {"sayings": [judged]}))
        assert f"which may not be trained on: {benchmark.not_for_training}." in said


def test_results_without_their_samples_are_named(tmp_path):
    write_model(tmp_path, "gemma", [9, 2])
    next(tmp_path.rglob("*.jsonl")).unlink()
    assert "found no samples. Expected samples, logged with --log_samples" in refused(tmp_path)
