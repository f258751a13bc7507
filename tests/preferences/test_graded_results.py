"""Result folders as a source: several models, one judge, no unscored verdict, and what may not be trained on."""

from __future__ import annotations

import pytest
from support.rated_data import CARE_JUDGE, care_sample, row, write_model, write_rows
from support.sample_files import write_run

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.errors import DataError
from culture_tasks.preferences.rating_sources import Taken, gather
from culture_tasks.settings import Settings


def read(*paths, **taken):
    taken = {"test_questions": True} | taken
    return gather([str(path) for path in paths], Taken(**taken), None, Settings())


def models(*paths, **taken):
    return sorted(source.model for source in read(*paths, **taken).sources)


def refused(*paths, **taken):
    with pytest.raises(DataError) as caught:
        read(*paths, **taken)
    return str(caught.value)


@pytest.fixture
def two_models(tmp_path):
    write_model(tmp_path, "gemma", [9, 2, 5])
    write_model(tmp_path, "qwen", [3, 8, None])
    return tmp_path


def test_two_models_make_the_responses_of_a_question(two_models):
    rated = read(two_models / "gemma", two_models / "qwen")
    assert [question.text for question in rated.questions] == [f"怎么做zh-{number}？" for number in range(3)]
    answers = [(each.text, each.rating, each.by) for each in rated.questions[0].answers]
    assert answers == [("gemma的回答0", 9.0, "gemma"), ("qwen的回答0", 3.0, "qwen")]
    assert [len(question.answers) for question in rated.questions] == [2, 2, 1]
    assert rated.left_out["unscored_verdicts"] == 1
    first = rated.questions[0]
    assert (first.references, first.language, first.category) == (("答案zh-0",), "zh", "norms")
    assert first.culture == "native"
    assert (rated.rated_by.name, rated.rated_by.scale) == ("openai:gpt-4o", (1.0, 10.0))
    assert rated.rated_by.judges == (CARE_JUDGE,)
    sources = [(each.model, each.task, each.responses) for each in rated.sources]
    assert sources == [("gemma", "care_zh", 3), ("qwen", "care_zh", 2)]
    assert rated.test_items[first.fingerprint] == {("care_zh", "zh-0")}
    said = refused(two_models, test_questions=False)  # unless the user knows
    assert "care_zh is a test. A model that is trained on its questions can't be tested by them any more" in said
    assert "--train-on-test" in said


def test_reasoning_is_cut_off_and_the_same_response_graded_twice_counts_once(tmp_path):
    config = {"model": "hf", "model_args": "pretrained=base,peft=/somewhere/dpo-zh"}
    write_run(tmp_path, "a", {"care_zh": [care_sample("zh-1", "<think>hm</think>\n用双手", 9.0)]}, config=config)
    write_run(tmp_path, "a", {"care_zh": [care_sample("zh-1", "用双手", 7.0)]}, stamp="20260102_000000")
    assert read(tmp_path).questions[0].answers == [("用双手", 8.0, "a + dpo-zh")]


@pytest.mark.parametrize(("field", "value"), [("prompt_sha256", "c" * 64), ("sampling", {"temperature": 1.0})])
def test_verdicts_of_one_judge_with_another_prompt_or_settings_dont_go_together(tmp_path, field, value):
    write_model(tmp_path, "gemma", [9, 2])
    write_model(tmp_path, "qwen", [3, 8], judge=CARE_JUDGE | {field: value})
    said = refused(tmp_path)
    assert f"was graded by openai:gpt-4o with another {field.replace('_', ' ')} than" in said


def test_of_two_judges_one_is_chosen_and_people_dont_go_with_a_judge(tmp_path):
    write_model(tmp_path, "gemma", [9, 2])
    write_model(tmp_path, "qwen", [3, 8], judge=CARE_JUDGE | {"model": "gpt-4o-mini"})
    assert "Ratings of two raters can't be compared inside a pair" in refused(tmp_path)
    assert models(tmp_path, judge="openai:gpt-4o-mini") == ["qwen"]
    said = refused(tmp_path, judge="openai:gpt-4-o")
    assert "no verdict of openai:gpt-4-o. Did you mean 'openai:gpt-4o'?" in said
    path = write_rows(tmp_path / "rated.jsonl", [row("q", "a", 3)])
    assert "rated.jsonl was rated by people" in refused(path, tmp_path / "gemma")


def test_text_overlap_is_taken_only_when_asked_for(tmp_path):
    judge = CARE_JUDGE | {"backend": "lexical", "model": "token_f1"}
    write_model(tmp_path, "gemma", [9, 2], judge=judge, key="care_rating_lexical")
    said = refused(tmp_path)
    assert "graded by text overlap alone (lexical:token_f1), which says little of quality" in said
    assert read(tmp_path, text_overlap=True).rated_by.name == "lexical:token_f1"
    write_model(tmp_path, "qwen", [3, 8])
    assert models(tmp_path) == ["qwen"]
    assert models(tmp_path, text_overlap=True) == ["gemma"]


def test_a_run_that_waits_for_its_judge_stops_no_other_and_alone_is_refused_with_the_way_out(two_models, tmp_path):
    waiting = CARE_JUDGE | {"backend": "none", "model": "none", "prompt": "", "prompt_sha256": ""}
    write_model(two_models, "llama", [None, None], judge=waiting)
    assert models(two_models) == ["gemma", "qwen"]
    assert read(two_models).left_out["unscored_verdicts"] == 3
    said = refused(tmp_path / "llama")
    assert "no verdict is scored (2 unparsable). Grade the responses with `culture-tasks rejudge`" in said


def test_tasks_can_be_chosen_by_name_and_by_group(two_models):
    write_model(two_models, "llama", [1, 2], task="care_greedy_zh")
    assert models(two_models) == ["gemma", "llama", "qwen"]
    assert models(two_models, tasks=("care_greedy_zh",)) == ["llama"]
    assert models(two_models, tasks=("care",)) == ["gemma", "qwen"]
    assert "look for misspelt names after --task" in refused(two_models, tasks=("care_zhh",))


def test_tasks_that_show_images_are_refused(tmp_path):
    write_run(tmp_path, "a", {"sayings": [care_sample("zh-1", "好", 9.0, image="1.png")]})
    assert "sayings shows images, and the data and recipes written here are of text alone" in refused(tmp_path)
    write_run(tmp_path / "b", "a", {"culturalvqa": [care_sample("zh-1", "好", 9.0)]})
    assert "culturalvqa shows images" in refused(tmp_path / "b")


FORBIDDING = [each for each in benchmarks().values() if each.not_for_training]


@pytest.mark.parametrize("benchmark", FORBIDDING, ids=lambda each: each.name)
def test_what_the_authors_forbid_is_refused_with_the_reason_whatever_the_user_says(tmp_path, benchmark):
    said = f"which may not be trained on: {benchmark.not_for_training}."
    task = benchmark.entries()[0].name
    assert said in refused(tmp_path, tasks=(task,))
    judged = care_sample("1", "好", 9.0, benchmark=benchmark.name)
    assert said in refused(write_run(tmp_path / "judged", "a", {"sayings": [judged]}))
    own = care_sample("1", "好", 9.0, benchmark=benchmark.name)["care_rating"]
    del own["judge"]
    assert said in refused(write_run(tmp_path / "unjudged", "a", {"sayings": [{"sem_b": own}]}))


def test_tasks_without_a_judge_are_passed_over_beside_others(two_models):
    own = care_sample("1", "好", 9.0)["care_rating"]
    del own["judge"]
    write_run(two_models / "other", "a", {"cedar_text": [{"acc": own}]})
    assert len(read(two_models).sources) == 2
    assert "no judge grades cedar_text" in refused(two_models / "other")


UNKNOWN_RATING = {"runs": [{"response": "a", "outcome": "scored", "rating": 99}]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"record": 1}, "the record has layout 1; this version reads 2"),
        (UNKNOWN_RATING, "expected a rating from 1 to 10, found 99.0"),
        ({"judge": CARE_JUDGE | {"rubric": "unknown"}}, "no rubric 'unknown'"),
    ],
)
def test_a_damaged_record_is_named_and_missing_samples_too(tmp_path, changes, said):
    changed = care_sample("zh-2", "坏", 1.0)
    changed["care_rating"] |= changes
    results = write_run(tmp_path, "a", {"care_zh": [care_sample("zh-1", "好", 9.0), changed]})
    found = refused(results)
    assert said in found
    assert "line 2" in found
    next(tmp_path.glob("*.jsonl")).unlink()
    assert "no samples. Run the tasks with --log_samples" in refused(tmp_path)
