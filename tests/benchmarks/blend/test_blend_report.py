"""Rejudge and the report on BLEnD's results of both harnesses, with numbers that are worked out by hand."""

from __future__ import annotations

import csv

import pytest
from support.written_runs import write_lm_eval, write_lmms_eval

from culture_tasks.cli.main import main

pytestmark = pytest.mark.slow

TASKS = ["blend_china", "blend_south_korea", "blend_en_south_korea", "blend_mcq_uk"]
# South Korea: coffee 4 votes, milk 1; football 3, taekwondo 2; March 5. China: tea has 1 vote, soy milk 3.
SAID = {
    "good": {"South Korea": ("커피", "축구", "삼월"), "China": ("茶", "乒乓球", "?"), "UK": "answer"},
    "poor": {"South Korea": ("milk", "?", "?"), "China": ("?", "?", "?"), "UK": "none"},
}


def script(name):
    def say(doc):
        said = SAID[name][doc["region"]]
        if "choices" in doc:
            return f'{{"answer_choice":"{doc["answer"]}"}}' if said == "answer" else "I can't choose."
        return said[int(doc["question_id"].removeprefix("Toy-")) - 1]

    return say


@pytest.fixture(scope="module")
def runs(tmp_path_factory, fixture_data):
    """Results of a good model in lm-eval and of a poor one in lmms-eval."""
    from support.scripted_models import ScriptedChat, ScriptedLM

    output = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
        write_lm_eval(output / "lm_eval", TASKS, None, "good", ScriptedLM(script("good")), bootstrap_iters=0)
        write_lmms_eval(output / "lmms_eval", TASKS, "poor", lmms=ScriptedChat(script("poor")), bootstrap_iters=0)
    return output


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    """The folder of a report on both."""
    output = tmp_path_factory.mktemp("report")
    assert main(["report", str(runs), "-o", str(output), "--formats", "csv,markdown,png", "--published"]) == 0
    return output


def column(report, table, name):
    """Returns a column of a table, by model."""
    with (report / "csv" / f"{table}.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["Model"]: float(row[name]) for row in csv.DictReader(file)}


@pytest.mark.parametrize(
    ("table", "name", "good", "poor"),
    [
        ("blend_south_korea_score_by_region", "Korean: South Korea", 100, 100 / 3),
        ("blend_south_korea_sem_w_by_region", "Korean: South Korea", 100, 100 / 12),  # a quarter of one of three
        ("blend_south_korea_by_topic", "Food", 100, 100),
        ("blend_south_korea_by_topic", "Sport", 100, 0),
        ("blend_china_score_by_region", "Chinese: China", 200 / 3, 0),
        ("blend_china_sem_w_by_region", "Chinese: China", 400 / 9, 0),  # a third and one, of three
        ("blend_en_south_korea_score_by_region", "English: South Korea", 0, 100 / 3),
        ("blend_mcq_uk_score_by_region", "English: UK", 100, 0),
        ("blend_mcq_uk_score_by_region", "Unparsed", 0, 100),
        ("blend_mcq_uk_unparsed_by_region", "English: UK", 0, 100),
        ("blend_as_in_care", "blend_china: Chinese", 200 / 3, 0),
        ("blend_languages", "South Korea: English", 0, 100 / 3),
        ("blend_languages", "South Korea: Native", 100, 100 / 3),
        ("blend_languages", "South Korea: Difference", 100, 0),
    ],
)
def test_tables_show_what_was_worked_out_by_hand_in_percent(report, table, name, good, poor):
    assert column(report, table, name) == {"good": pytest.approx(good), "poor": pytest.approx(poor)}


def test_care_s_published_numbers_stand_in_a_table_of_their_own(report):
    text = (report / "report.md").read_text(encoding="utf-8")
    assert "CARE: Multilingual Human Preference Learning for Cultural Awareness, Table 16 (published)" in text
    assert "Its own numbers therefore stand in a table of their own." in text


def test_figures_are_drawn(report):
    for figure in ("blend_regions", "blend_topics", "blend_mcq_regions", "blend_languages"):
        assert (report / "figures" / f"{figure}.png").stat().st_size > 10_000


def test_there_is_nothing_for_a_judge_to_grade(runs, capsys):
    files = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    assert main(["rejudge", str(runs), "--judge", "lexical"]) != 0
    assert "none of these runs has logged samples that a judge grades" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == files
