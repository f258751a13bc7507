"""BLEnD in real runs of both harnesses and in their report, with models whose numbers are worked out by hand."""

from __future__ import annotations

import csv
import json
import shutil
import sys

import pytest
from support.in_process import run_lm_eval
from support.written_runs import samples_of, write_lm_eval, write_lmms_eval

from culture_tasks.benchmarks.blend import official
from culture_tasks.benchmarks.blend.questions import REGIONS
from culture_tasks.cli.main import main
from culture_tasks.errors import MissingExtraError

pytestmark = pytest.mark.slow

KINDS = ["lm_eval", "chat"]

# South Korea: coffee 4 votes, milk 1; football 3, taekwondo 2; March 5.
SAID = {"Toy-01": "답: 우유입니다.", "Toy-02": "Football.", "Toy-03": "사과"}
# Two of three are hits. Their weights are 1/4 and 3/3, and their mean over the three questions is 5/12.
NATIVE = {"sem_b_South Korea": 2 / 3, "sem_w_South Korea": 5 / 12, "sem_b_China": 1 / 3, "sem_b_Iran": 0.0}
# "우유" is no English answer.
ENGLISH = {"sem_b_South Korea": 1 / 3, "sem_w_South Korea": 1 / 3}
WORDINGS = ["blend", "blend_pers", "blend_en_pers"]
TASKS = [*WORDINGS, "blend_en", "blend_mcq"]


def run(script, tasks):
    """Runs tasks in lm-eval and returns the results."""
    from support.scripted_models import ScriptedLM

    return run_lm_eval(ScriptedLM(script), tasks, bootstrap_iters=0)


def agrees(results, task, expected):
    reported = {name: results["results"][task][f"{name},none"] for name in expected}
    assert reported == {name: pytest.approx(value) for name, value in expected.items()}


@pytest.fixture
def china(fixture_data, tmp_path, monkeypatch):
    """A data folder with the files of China alone, which are then all that is asked."""
    for path in (fixture_data / "blend").rglob("China_*"):
        copy = tmp_path / path.relative_to(fixture_data)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))


def say(doc):
    """Answers in South Korea, and once in China, but knows one question everywhere where ``blend_en`` asks it."""
    if "choices" in doc:
        return f"The answer is {doc['answer']}." if doc["question_id"] == "Toy-01" else "Any of them."
    if doc["prompt_name"] == "inst_4.en.v1" and doc["region"] not in ("UK", "US"):
        return doc["annotations"][0]["en_answers"][0] if doc["question_id"] == "Toy-01" else "?"
    if doc["region"] == "China":  # soy milk 3 votes, tea 1
        return "茶" if doc["question_id"] == "Toy-01" else "?"
    return SAID[doc["question_id"]] if doc["region"] == "South Korea" else "?"


@pytest.fixture(scope="module")
def runs(tmp_path_factory, fixture_data):
    """The folder with the results of most tasks in both harnesses, and the models by kind."""
    from support.scripted_models import ScriptedChat, ScriptedLM

    output, models = tmp_path_factory.mktemp("runs"), {"lm_eval": ScriptedLM(say), "chat": ScriptedChat(say)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        write_lm_eval(output / "lm_eval", TASKS, None, "lm", models["lm_eval"], bootstrap_iters=0)
        write_lmms_eval(output / "chat", TASKS, "chat", lmms=models["chat"], bootstrap_iters=0)
    return output, models


@pytest.fixture(params=KINDS)
def korean_run(request, runs):
    """The kind, the model and the results of a run."""
    output, models = runs
    [path] = (path for path in (output / request.param).rglob("*.json") if "results" in path.name)
    return request.param, models[request.param], json.loads(path.read_text(encoding="utf-8"))


def test_short_answers_score_what_was_worked_out_by_hand(korean_run):
    kind, model, results = korean_run
    for task in WORDINGS:
        agrees(results, task, ENGLISH if "_en_" in task else NATIVE)
        if kind == "lm_eval":  # the sample standard deviation of hits over the root of three
            assert results["results"][task]["sem_b_South Korea_stderr,none"] == pytest.approx(1 / 3)
    for name in ("sem_b", "sem_w"):
        assert {f"{name}_{region.label},none" for region in REGIONS} < set(results["results"]["blend"])
    agrees(results, "blend", {"sem_b": 1 / 16, "sem_w": (5 / 12 + 1 / 9) / 16})  # every region weighs the same
    agrees(results, "blend", {"sem_b_food": 2 / 16, "sem_b_sport": 1 / 16, "sem_b_education": 0.0})
    shown = "\n===\n".join(str(each) for each in model.seen)
    assert "질문에 몇 단어로 답하세요." in shown
    assert "You are a person from South Korea who is trying to explain" in shown
    assert "What do people in South Korea often drink in the morning?" in shown


@pytest.mark.parametrize("kind", KINDS)
def test_a_logged_sample_says_what_was_found(runs, kind):
    [path] = (runs[0] / kind).rglob("*results*.json")
    records = [row["record"] for row in sorted(samples_of(path, "blend"), key=lambda row: row["doc_id"])]
    records = [record for record in records if record["groups"]["region"] == "South Korea"]
    assert [record["score"] for record in records] == [1.0, 1.0, 0.0]
    assert [record["runs"][0]["label"] for record in records] == ["우유", "football", ""]
    assert [record["values"]["sem_w"] for record in records] == [0.25, 1.0, 0.0]
    first = records[0]
    assert first["groups"] == {"region": "South Korea", "topic": "food", "language": "ko"}
    assert (first["item"], first["cluster"]) == ("south_korea-Toy-01", "Toy-01")
    assert first["references"] == ["커피", "coffee", "우유", "milk"]
    assert first["prompt"] == "inst_4.south_korea"
    assert "judge" not in first


def test_regions_that_share_questions_know_no_more_than_one(korean_run):
    for metric in ("sem_b", "sem_w"):
        # as of one region: the sample standard deviation of 1, 0 and 0 over the root of three
        agrees(korean_run[2], "blend_en", {metric: 1 / 3, f"{metric}_stderr": 1 / 3})


@pytest.mark.usefixtures("china")
def test_the_paper_s_matcher_has_metrics_of_its_own_beside_the_default_ones(monkeypatch):
    monkeypatch.setattr(official, "_LEMMATISERS", {"zh": lambda: str.split, "en": lambda: str.split})
    # China: soy milk 3 votes, tea 1; table tennis; September. The default rule takes characters in any order.
    said = {"Toy-01": "浆豆", "Toy-02": "tennis table", "Toy-03": "?"}
    results = run(lambda doc: said[doc["question_id"]], ["blend_official"])
    expected = {"sem_b_official": 1 / 3, "sem_w_official": 1 / 3, "sem_b": 2 / 3, "sem_w": 2 / 3}
    agrees(results, "blend_official", expected | {f"{name}_China": value for name, value in expected.items()})
    assert "sem_b_official_Algeria,none" not in results["results"]["blend_official"]
    official._lemmatiser.cache_clear()
    official._lemmas.cache_clear()


@pytest.mark.usefixtures("china")
def test_a_matcher_that_is_not_installed_stops_the_run_before_the_model_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(MissingExtraError, match=r"for Chinese needs the package 'jieba'.*culture-tasks\[blend\]"):
        run(lambda doc: pytest.fail("asked"), ["blend_official"])


# The report


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    """The folder of a report on both."""
    output = tmp_path_factory.mktemp("report")
    assert main(["report", str(runs[0]), "-o", str(output), "--formats", "csv,markdown,png", "--published"]) == 0
    return output


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("blend_by_region", {"South Korea": 200 / 3, "All": 100 / 16}),
        ("blend_sem_w_by_region", {"South Korea": 500 / 12, "China": 100 / 9}),
        ("blend_pers_by_topic", {"Food": 200 / 16, "Sport": 100 / 16, "Education": 0}),
        ("blend_en_pers_by_region", {"South Korea": 100 / 3}),
        ("blend_mcq_by_region", {"UK": 50}),
        (
            "blend_languages",
            {"South Korea: English": 100 / 3, "South Korea: Native": 200 / 3, "South Korea: Difference": 100 / 3},
        ),
    ],
)
def test_tables_show_what_was_worked_out_by_hand_in_percent(report, table, expected):
    with (report / "csv" / f"{table}.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    for row in rows:
        assert {name: float(row[name]) for name in expected} == pytest.approx(expected, abs=0.05)


def test_care_s_published_numbers_are_shown_and_figures_are_drawn(report):
    text = (report / "report.md").read_text(encoding="utf-8")
    assert "CARE: Multilingual Human Preference Learning for Cultural Awareness, Table 16 (published)" in text
    for figure in ("blend_region", "blend_topic", "blend_acc_region", "blend_languages"):
        assert (report / "figures" / f"{figure}.png").stat().st_size > 10_000


def test_there_is_nothing_for_a_judge_to_grade(runs, capsys):
    files = {path: path.read_bytes() for path in runs[0].rglob("*") if path.is_file()}
    assert main(["rejudge", str(runs[0]), "--judge", "lexical"]) != 0
    assert "none of these runs has logged samples that a judge grades" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in runs[0].rglob("*") if path.is_file()} == files
