"""Drawing responses for people: at random within cultures, without a word on judge and model."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter

import pytest
from support.checked_runs import samples, write_care
from support.sample_files import vqa_samples, write_run

from culture_tasks.cli.main import main

SIZES = {"zh": 60, "ar": 30, "ja": 12}


def draw(folder, number, *options, sheet="sheet"):
    runs = str(folder / "runs")
    return main(["spotcheck", "draw", runs, "-n", str(number), "-o", str(folder / sheet), *map(str, options)])


def drawn(folder, number, *options):
    sheet = f"sheet{number}{len(options)}"
    assert draw(folder, number, *options, sheet=sheet) == 0
    return folder / sheet


def design(sheet):
    return json.loads((sheet / "spotcheck.json").read_text())


def lines(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def runs(tmp_path):
    write_care(tmp_path / "runs", SIZES)
    return tmp_path


def test_strata_have_their_shares_and_a_larger_draw_by_the_same_seed_holds_the_smaller_one_in_its_order(runs):
    found = design(drawn(runs, 34))
    strata = [(one["culture"], one["size"], one["drawn"]) for each in found["populations"] for one in each["strata"]]
    # 34 of 102 by size are 20, 10 and 4; each has five at least, so that 19 + 10 + 5 are left.
    assert sorted(strata) == [("ar", 30, 10), ("ja", 12, 5), ("zh", 60, 19)]
    assert Counter(row["culture"] for row in found["rows"]) == {"zh": 19, "ar": 10, "ja": 5}
    whole, larger, other = (
        [row["row"] for row in design(drawn(runs, *arguments))["rows"]]
        for arguments in ((5_000,), (60,), (34, "--seed", "7"))
    )
    smaller = [row["row"] for row in found["rows"]]
    assert [row for row in larger if row in smaller] == smaller
    assert (len(set(smaller)), len(larger), len(whole)) == (34, 60, sum(SIZES.values()))
    assert set(other) != set(smaller)


def test_the_sheet_says_nothing_of_judge_and_model(runs):
    sheet = drawn(runs, 20)
    for name in ("sheet.csv", "sheet.html"):
        text = (sheet / name).read_text(encoding="utf-8")
        assert not re.search(r"toy|judge-1|care_|zh-\d|score", text.replace("instructions, as the judge", "")), name
    assert "rated by" not in (sheet / "sheet.html").read_text(encoding="utf-8")
    first = lines(sheet / "sheet.csv")[0]
    assert (first["rating"], first["lowest"], first["highest"]) == ("", "1", "10")
    assert {line["culture"] for line in lines(sheet / "sheet.csv")} == set(SIZES)


def test_responses_that_two_judges_graded_are_drawn_once_and_repeated_responses_one_by_one(runs, tmp_path):
    write_care(runs / "runs", SIZES, "20260102_000000", "20260101_000000_results.json", judge="judge-2", bias=-1.0)
    assert len(design(drawn(runs, 30))["populations"]) == 3
    own = samples({"zh": 20})
    for each in own["care_zh"]:
        run = each["care_rating"]["runs"][0]
        each["care_rating"] |= {"runs": [run, run | {"response": "又一次"}], "outcomes": {"scored": 2}}
    write_run(tmp_path / "repeated" / "runs", "toy/model", own)
    found = design(drawn(tmp_path / "repeated", 40))
    assert Counter(row["run"] for row in found["rows"]) == {0: 20, 1: 20}


def test_hostile_texts_are_text_and_reasoning_is_not_shown(tmp_path):
    hostile = '=HYPERLINK("http://evil","x")</script><img src=x onerror=alert(1)>\u202e{{ 7*7 }}\x00'
    write_care(tmp_path / "runs", {"zh": 10}, response=f"<think>secret thoughts</think>{hostile}")
    sheet = drawn(tmp_path, 10)
    page = (sheet / "sheet.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page
    assert "{{ 7*7 }}" in page
    assert "secret" not in page
    assert all(line["response"].startswith("'=HYPERLINK") for line in lines(sheet / "sheet.csv"))


def test_raters_share_some_and_divide_the_others(runs):
    sheet = drawn(runs, 30, "--raters", "3", "--shared", "6")
    own = [[line["row"] for line in lines(sheet / f"sheet_{rater}.csv")] for rater in (1, 2, 3)]
    rows = [row["row"] for row in design(sheet)["rows"]]
    assert all(each[:6] == rows[:6] and len(each) == 14 for each in own)
    assert sorted(row for each in own for row in each[6:]) == sorted(rows[6:])
    assert {line["rater"] for line in lines(sheet / "sheet_2.csv")} == {"rater 2"}
    together = drawn(runs, 30, "--raters", "2")
    assert [len(lines(together / f"sheet_{rater}.csv")) for rater in (1, 2)] == [30, 30]


def test_images_are_shown_or_missed(tmp_path, capsys):
    from PIL import Image

    own = vqa_samples([1.0, 0.0] * 10, image="feast")
    for number, each in enumerate(own):
        each["lave"]["runs"] = [{"response": f"tea {number}", "outcome": "scored", "rating": 2.0}]
    write_run(tmp_path / "runs", "toy/model", {"culturalvqa": own})
    sheet = drawn(tmp_path, 20)
    assert "draw with --images DIR" in capsys.readouterr().out
    assert "Image: <bdi>feast</bdi>" in (sheet / "sheet.html").read_text(encoding="utf-8")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    assert draw(tmp_path, 20, "--images", pictures, sheet="without") == 1
    assert "20 of the images aren't there, or can't be read, such as 'feast'" in capsys.readouterr().err
    Image.new("RGB", (1200, 600), "red").save(pictures / "feast.png")
    assert draw(tmp_path, 20, "--images", pictures, sheet="with") == 0
    assert (tmp_path / "with" / "sheet.html").read_text(encoding="utf-8").count("data:image/jpeg;base64,") == 20


def test_what_cannot_be_drawn_is_refused_and_a_sheet_is_never_overwritten(runs, capsys):
    for number, options, said in (
        (14, [], r"-n 14 is too few for 3 strata .* which need 5 each\. Choose at least -n 15"),
        (20, ["--tasks", "care_zn"], r"--tasks 'care_zn' fits no judged task\. Did you mean 'care_zh'"),
        (20, ["--images", "nowhere"], "no such folder"),
    ):
        assert draw(runs, number, *options) == 1
        assert re.search(said, capsys.readouterr().err)
    assert draw(runs, 20) == 0
    before = (runs / "sheet" / "sheet.csv").read_bytes()
    assert draw(runs, 30) == 1
    assert "has the sheet of another draw" in capsys.readouterr().err
    assert (runs / "sheet" / "sheet.csv").read_bytes() == before


def test_results_without_judged_responses_are_named(tmp_path, capsys):
    write_run(tmp_path / "runs", "toy/model", {"mmlu": [{"doc_id": 0, "acc": 1.0}]})
    assert draw(tmp_path, 9) == 1
    assert "no responses that a judge grades" in capsys.readouterr().err
