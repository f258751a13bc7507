"""BLEnD in real runs of both harnesses, with models whose numbers are worked out by hand."""

from __future__ import annotations

import sys

import pytest
from support.in_process import run_lm_eval, run_lmms_eval

from culture_tasks.benchmarks.blend import official
from culture_tasks.benchmarks.blend.regions import REGIONS
from culture_tasks.errors import MissingExtraError

pytestmark = pytest.mark.slow

KINDS = ["lm_eval", "chat", "simple"]

# South Korea: coffee 4 votes, milk 1; football 3, taekwondo 2; March 5.
SAID = {"Toy-01": "답: 우유입니다.", "Toy-02": "Football.", "Toy-03": "사과"}
# Two of three are hits. Their weights are 1/4 and 3/3, and their mean over the three questions is 5/12.
NATIVE = {"sem_b": 2 / 3, "sem_w": 5 / 12, "sem_b_food": 1.0, "sem_b_sport": 1.0, "sem_b_education": 0.0}
# "우유" is no English answer.
ENGLISH = {"sem_b": 1 / 3, "sem_w": 1 / 3, "sem_b_food": 0.0, "sem_b_sport": 1.0}


def run(kind, script, tasks, **options):
    """Runs tasks; returns the model and the results."""
    import support.scripted_models as models

    if kind == "lm_eval":
        model = models.ScriptedLM(script)
        return model, run_lm_eval(model, tasks, bootstrap_iters=0, **options)
    model = {"chat": models.ScriptedChat, "simple": models.ScriptedSimple}[kind](script)
    return model, run_lmms_eval(model, tasks, bootstrap_iters=0, **options)


def reported(results, task, names):
    return {name: results["results"][task][f"{name},none"] for name in names}


def agrees(found, expected):
    assert found == {name: pytest.approx(value) for name, value in expected.items()}


@pytest.fixture
def data(fixture_data, monkeypatch):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))


WORDINGS = ["blend_south_korea", "blend_pers_south_korea", "blend_en_south_korea", "blend_en_pers_south_korea"]


@pytest.fixture(scope="module", params=KINDS)
def korean_run(request, fixture_data):
    """The kind, the model and the results of a run of most tasks, with a model that answers in South Korea alone."""

    def say(doc):
        if "choices" in doc:
            return f"The answer is {doc['answer']}." if doc["question_id"] == "Toy-01" else "Any of them."
        return SAID[doc["question_id"]] if doc["region"] == "South Korea" else "?"

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        return request.param, *run(request.param, say, ["blend", *WORDINGS[1:], "blend_mcq"])


def test_short_answers_score_what_was_worked_out_by_hand(korean_run):
    kind, _, results = korean_run
    for task in WORDINGS:
        expected = ENGLISH if "_en_" in task else NATIVE
        agrees(reported(results, task, expected), expected)
        if kind == "lm_eval":  # the sample standard deviation of hits over the root of three
            assert results["results"][task]["sem_b_stderr,none"] == pytest.approx(1 / 3)


def test_the_model_is_asked_with_the_prompt_of_its_region(korean_run):
    _, model, _ = korean_run
    shown = "\n===\n".join(str(each) for each in model.seen)
    assert "질문에 몇 단어로 답하세요." in shown
    assert "You are a person from South Korea who is trying to explain" in shown
    assert "What do people in South Korea often drink in the morning?" in shown


def test_in_the_group_every_region_weighs_the_same(korean_run):
    _, _, results = korean_run
    assert {f"blend_{region.slug}" for region in REGIONS} <= set(results["results"])
    agrees(reported(results, "blend", ("sem_b", "sem_w")), {"sem_b": 2 / 3 / 16, "sem_w": 5 / 12 / 16})


def test_a_logged_sample_says_what_was_found(korean_run):
    _, _, results = korean_run
    records = [sample["sem_b"] for sample in results["samples"]["blend_south_korea"]]
    assert [record["score"] for record in records] == [1.0, 1.0, 0.0]
    assert [record["runs"][0]["label"] for record in records] == ["우유", "football", ""]
    assert [record["values"]["sem_w"] for record in records] == [0.25, 1.0, 0.0]
    first = records[0]
    assert first["groups"] == {"region": "South Korea", "topic": "food", "language": "ko"}
    assert (first["item"], first["cluster"]) == ("south_korea-Toy-01", "Toy-01")
    assert first["references"] == ["커피", "coffee", "우유", "milk"]
    assert first["prompt"] == "inst_4.south_korea"
    assert "judge" not in first


@pytest.mark.parametrize("kind", ["lm_eval", "chat"])
@pytest.mark.usefixtures("data")
def test_regions_that_share_questions_know_no_more_than_one(kind):
    def knows_one_question(doc):
        votes = doc["annotations"][0]
        return (votes["answers"] or votes["en_answers"])[0] if doc["question_id"] == "Toy-01" else "?"

    _, results = run(kind, knows_one_question, ["blend"])
    for metric in ("sem_b", "sem_w"):
        assert results["results"]["blend"][f"{metric},none"] == pytest.approx(1 / 3)
        # as of one region: the sample standard deviation of 1, 0 and 0 over the root of three
        assert results["results"]["blend"][f"{metric}_stderr,none"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["lm_eval", "chat"])
@pytest.mark.usefixtures("data")
def test_the_paper_s_matcher_has_metrics_of_its_own_beside_the_default_ones(kind, monkeypatch):
    monkeypatch.setattr(official, "_LEMMATISERS", {"zh": lambda: str.split, "en": lambda: str.split})
    # China: soy milk 3 votes, tea 1; table tennis; September. The default rule takes characters in any order.
    said = {"Toy-01": "浆豆", "Toy-02": "tennis table", "Toy-03": "?"}
    _, results = run(kind, lambda doc: said[doc["question_id"]], ["blend_official_china"])
    names = ("sem_b_official", "sem_w_official", "sem_b", "sem_w")
    agrees(
        reported(results, "blend_official_china", names), dict(zip(names, (1 / 3, 1 / 3, 2 / 3, 2 / 3), strict=True))
    )


@pytest.mark.usefixtures("data")
def test_a_matcher_that_is_not_installed_stops_the_run_before_the_model_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingExtraError, match=r"for Chinese needs the package 'jieba'.*culture-tasks\[blend\]"):
        run("lm_eval", lambda doc: pytest.fail("asked"), ["blend_official_china"])
