"""Drawing responses for people, at random and blind; ratings that come back: what they correct, and what is refused."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter

import numpy as np
import pandas
import pytest
from support.checked_runs import judged, sample, samples, truth, write_care, write_ratings, write_sample
from support.reports import rows_of as table_rows
from support.sample_files import JUDGE, crosscult_sample, vqa_samples, write_run

from culture_tasks.cli.main import main
from culture_tasks.metrics.prediction_powered import corrected_mean
from culture_tasks.people.spotcheck_design import read_rated
from culture_tasks.report.building import Options, build
from culture_tasks.report.numbers.numbers import Unit

SIZES = {"zh": 80, "ar": 60, "ja": 40}


def draw(folder, number, *options, sheet="sheet"):
    runs = str(folder / "runs")
    return main(["spotcheck", "draw", runs, "-n", str(number), "-o", str(folder / sheet), *map(str, options)])


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    write_care(folder / "runs", SIZES)
    assert draw(folder, 45) == 0
    return folder


@pytest.fixture
def checked(drawn, tmp_path):
    """Results, and the sheet that was drawn from them."""
    return shutil.copytree(drawn, tmp_path / "checked")


def items_of(sizes):
    return [(f"{language}-{number}", language) for language, size in sizes.items() for number in range(size)]


def corrected(folder, judge, sizes=SIZES):
    """What is expected of the rows that were drawn, where people say the truth."""
    items, languages = zip(*items_of(sizes), strict=True)
    chosen = {row["item"] for row in rows_of(folder)}
    people = [truth(item) if item in chosen else np.nan for item in items]
    return corrected_mean(judge, people, languages, ends=(1, 10))


def verdicts(bias=1.0, sizes=SIZES):
    return [judged(item, bias) for item, _ in items_of(sizes)]


def score(folder, *ratings, results="runs", sheet="sheet", options=()):
    files = [str(file) for file in ratings]
    return main(["spotcheck", "score", str(folder / sheet), *files, "--results", str(folder / results), *options])


def rate(folder, name="amina", **ratings):
    """Scores what a rater says: the truth, or what a row is given."""
    assert score(folder, write_ratings(folder / "sheet", folder / f"{name}.csv", **ratings)) == 0


def tables(folder, **options):
    rated = read_rated(folder / "sheet")
    report = build([str(folder / "runs")], Options(rated=(rated,), **options))
    return {table.key: table for table in report.tables if table.key.startswith("spotcheck")}


def cells(table, culture="all", model="toy/model"):
    row = next(row for row in table_rows(table) if row.labels[-1] == culture and row.labels[0] == model)
    return dict(zip((column.key for column in table.columns), row.cells, strict=True))


def design(sheet):
    return json.loads((sheet / "spotcheck.json").read_text())


def rows_of(folder):
    return design(folder / "sheet")["rows"]


def lines(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_the_corrected_score_is_that_of_all_tasks_and_cultures(checked, capsys):
    rate(checked)
    said = capsys.readouterr().out
    assert "Scores corrected by people" in said
    assert "Agreement of judge and people" in said
    assert score(checked, checked / "amina.csv", options=("--json",)) == 0
    printed = json.loads(capsys.readouterr().out)["tables"]
    assert [table["key"] for table in printed] == list(tables(checked))
    found = tables(checked)["spotcheck"]
    expected = corrected(checked, verdicts())
    row = cells(found)
    assert row["corrected"].value == row["corrected_here"].value == pytest.approx(expected.overall.value)
    assert row["corrected"].low == pytest.approx(expected.overall.low)
    assert row["corrected_here"].high == pytest.approx(expected.overall.set_high)
    assert row["weight"].value == pytest.approx(expected.overall.weight)
    assert (row["rated"].value, row["responses"].value) == (45, 180)
    assert row["judge"].value == pytest.approx(np.mean(verdicts()))
    assert cells(found, "ja")["corrected"].value == pytest.approx(expected.over({"ja": 1.0}).value)
    everyone = np.mean([truth(item) for item, _ in items_of(SIZES)])
    assert row["corrected_here"].low < everyone < row["corrected_here"].high < row["judge"].low


def test_agreement_is_of_judge_and_people_and_between_people(checked):
    rows = rows_of(checked)
    one = write_ratings(checked / "sheet", checked / "amina.csv")
    two = write_ratings(checked / "sheet", checked / "li.csv", most=20)
    assert score(checked, one, two) == 0
    found = cells(tables(checked)["spotcheck_agreement"])
    assert found["between"].value == 1.0  # both rate as the truth is
    errors = [judged(row["item"]) - truth(row["item"]) for row in rows]
    assert found["higher"].value == pytest.approx(np.mean(errors))
    assert found["apart"].value == pytest.approx(np.mean(np.abs(errors)))
    assert found["rated"].value == 45
    for file, rating in ((one, 4), (two, 7)):
        write_ratings(checked / "sheet", file, **dict.fromkeys((row["row"] for row in rows), rating))
    assert score(checked, one, two) == 0
    assert cells(tables(checked)["spotcheck"])["people"].value == pytest.approx(5.5)


def test_tasks_weigh_the_same_and_what_a_score_waits_for_is_named_once(tmp_path):
    own = {}
    for at, role in enumerate(("reliability", "generality", "cross_language_locality", "cross_scenario_locality")):
        own[f"crosscult_single_{role}"] = [
            crosscult_sample(
                number,
                2.0 * at,
                0.0,
                partition=("en", "zh", "ar")[number % 3],
                role=role,
                judge=JUDGE | {"rubric": "crosscult"},
                runs=[{"response": f"{role} {number}", "outcome": "scored", "rating": 2.0 * at}],
            )
            for number in range(30 * (1 + (at == 0)))
        ]
    write_run(tmp_path / "runs", "toy/model", own)
    assert draw(tmp_path, 90) == 0
    for unrated, reason in ((), ""), (("ar", "en"), "too few responses are rated for English, Arabic"):
        rows = enumerate(rows_of(tmp_path))
        rate(tmp_path, **{row["row"]: "" if row["culture"] in unrated else 1 + at % 3 for at, row in rows})
        found = tables(tmp_path)["spotcheck"]
        assert cells(found)["judge"].value == 3.0  # the mean of 0, 2, 4 and 6, though the first has twice the questions
        assert cells(found)["corrected"].note == reason
        assert cells(found, "zh")["corrected"].low is not None


# Several judges, and a judge that graded a sample


def test_people_rate_a_part_of_the_sample_that_a_better_judge_graded(tmp_path):
    whole = write_care(tmp_path / "runs", SIZES, bias=2.0)
    every = samples(SIZES, judge="judge-2", bias=0.3)
    graded = {task: own[::3] if len(own) > 40 else own[::2] for task, own in every.items()}
    write_sample(whole, "toy/model", graded, "20260102_000000")
    assert draw(tmp_path, 45) == 0
    sizes = {one["task"]: one["strata"][0]["size"] for one in design(tmp_path / "sheet")["populations"]}
    assert sizes == {task: len(own) for task, own in graded.items()}  # drawn from the sample alone
    rate(tmp_path)
    found = tables(tmp_path)
    of_sample = [each["record"]["item"] for own in graded.values() for each in own]
    drawn, cultures = {row["item"] for row in rows_of(tmp_path)}, [item.partition("-")[0] for item in of_sample]
    people = [truth(item) if item in drawn else np.nan for item in of_sample]
    by_judge = [judged(item, 0.3) for item in of_sample]
    # The cultures weigh as much as the responses that each sample is of.
    expected = corrected_mean(by_judge, people, cultures, shares=SIZES, ends=(1, 10))
    row = cells(found["spotcheck"])
    assert (row["corrected"].value, row["corrected"].low) == pytest.approx(expected.overall[:2])
    assert (row["rated"].value, row["responses"].value) == (45, 67)
    assert cells(found["spotcheck"], "ja")["corrected_here"].high == pytest.approx(expected.over({"ja": 1.0}).set_high)
    errors = [judged(item, 0.3) - truth(item) for item in sorted(row["item"] for row in rows_of(tmp_path))]
    assert cells(found["spotcheck_agreement"])["higher"].value == pytest.approx(np.mean(errors))
    assert "are of the 27 of 80 responses that judge-2 graded" in " ".join(found["spotcheck"].notes)


def test_ratings_that_are_missing_are_no_harm_unless_they_were_skipped(checked, capsys):
    rate(checked, **{row["row"]: "" for row in rows_of(checked)[:2]})
    assert re.search(r"2 of 45 drawn .*\n2 of them were skipped", capsys.readouterr().out)
    others = {row["row"]: "" for row in rows_of(checked) if row["culture"] != "ja"}
    rate(checked, **others)
    said = capsys.readouterr().out
    assert f"{len(others)} of 45 drawn responses have no rating." in said
    assert "were skipped" not in said
    assert "all: too few responses are rated for Arabic, Chinese" in said
    found = tables(checked)["spotcheck"]
    assert cells(found, "ja")["corrected"].low < cells(found, "ja")["corrected"].high
    assert (cells(found, "ar")["corrected"].note, cells(found)["corrected"].value) == (
        "too few responses are rated for Arabic",
        None,
    )


def edited(path, change):
    """Changes the lines of a filled-in sheet."""
    content = lines(path)
    change(content)
    pandas.DataFrame(content).to_csv(path, index=False)
    return path


def set_in(line, **values):
    return lambda lines: lines[line].update(values)


def test_ratings_that_cannot_be_right_are_named_and_what_a_spreadsheet_changes_is_read(checked, capsys):
    sheet, again = checked / "sheet" / "sheet.csv", {"rating": "9", "rater": " sheet "}
    original = edited(sheet, lambda lines: [line.update(rating="5") for line in lines]).read_bytes()
    for change, said in (
        (set_in(0, row="0123456789ab", rating="5"), r"row 2, field 'row': '0123456789ab' wasn't drawn"),
        (set_in(1, rating="11"), r"row 3, field 'rating': found 11\. Expected a number from 1 to 10"),
        (set_in(0, response="another"), r"row 2, field 'response': not the response that .* sorted by itself"),
        (lambda lines: [line.pop("rating") for line in lines], r"no column 'rating'"),
        (lambda lines: [line.update(rating="") for line in lines], r"no rating in"),
        (lambda lines: lines.append(lines[0] | again), r"row 47, field 'rating': found 9, while sheet gave 5 else"),
    ):
        assert score(checked, edited(sheet, change)) == 1
        assert re.search(said, capsys.readouterr().err)
        assert not (checked / "sheet" / "rated.json").exists()
        sheet.write_bytes(original)
    wrapped = edited(
        sheet, lambda lines: [line.update(response=line["response"].replace(" ", "\r\n")) for line in lines]
    )
    assert score(checked, wrapped) == 0
    frame = pandas.read_csv(sheet)  # what looks like a number is one, as in a spreadsheet
    assert frame["row"].str.match("r[0-9a-f]{12}$").all()
    frame.assign(rating=5.5).to_csv(sheet, index=False, sep=";", decimal=",")
    assert score(checked, sheet) == 0


def test_a_response_that_looks_like_a_number_stays_as_it_is_in_a_spreadsheet(tmp_path):
    response = "10-12"
    write_care(tmp_path / "runs", SIZES, response=response)
    assert draw(tmp_path, 45) == 0
    sheet = tmp_path / "sheet" / "sheet.csv"
    frame = pandas.read_csv(sheet)
    assert set(frame["response"]) == {f"'{response}"}
    frame.assign(rating=5).to_csv(sheet, index=False)
    assert score(tmp_path, sheet) == 0


def test_other_results_are_refused(checked, capsys):
    ratings = write_ratings(checked / "sheet", checked / "amina.csv")
    write_care(checked / "others", SIZES, response="something else")
    assert score(checked, ratings, results="others") == 1
    assert re.search(r"have changed since, such as that to item 'zh-\d+'", capsys.readouterr().err)
    write_care(checked / "fewer", {"ar": 60, "ja": 40})
    assert score(checked, ratings, results="fewer") == 1
    assert "care_zh, which these results don't have: no judged run of the task is there" in capsys.readouterr().err
    drawn = {row["item"] for row in rows_of(checked)}
    number = next(number for number in range(80) if f"zh-{number}" not in drawn)
    [file] = (checked / "runs").glob("*samples_care_zh.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines()
    lines[number] = json.dumps(sample("zh", number, response="changed"))
    file.write_text("\n".join(lines), encoding="utf-8")
    assert score(checked, ratings) == 1
    assert "the drawn ones are the same, but others have changed" in capsys.readouterr().err


def test_a_damaged_design_damaged_ratings_and_the_same_draw_twice_are_named(checked, capsys):
    rate(checked)
    report = ["report", str(checked / "runs"), "-o", str(checked / "out")]
    twice = ["--spotcheck", str(checked / "sheet")] * 2
    assert main([*report, *twice]) == 1
    assert "two of the files with ratings are of the same responses" in capsys.readouterr().err
    rated, drawn = checked / "sheet" / "rated.json", checked / "sheet" / "spotcheck.json"
    for rating, said in (({"zz": 5}, "amina rated zz, which wasn't drawn"), ({}, "field 'ratings.amina'")):
        content = json.loads(rated.read_text())
        content["ratings"]["amina"] = rating or None
        rated.write_text(json.dumps(content))
        assert main([*report, *twice[:2]]) == 1
        error = capsys.readouterr().err
        assert said in error
        assert "Expected a file that `culture-tasks spotcheck score` has written" in error
    drawn.write_text(json.dumps(json.loads(drawn.read_text()) | {"seed": "x"}))
    assert score(checked, checked / "amina.csv") == 1
    assert "spotcheck.json, field 'seed'" in capsys.readouterr().err


def test_a_score_that_is_no_mean_of_responses_is_not_corrected(checked, capsys, monkeypatch):
    ratings = write_ratings(checked / "sheet", checked / "amina.csv")
    monkeypatch.setattr(Unit, "is_mean_of_samples", False)
    assert score(checked, ratings) == 1
    assert "the score of care is no mean of its responses' scores" in capsys.readouterr().err


# Drawing

SMALL = {"zh": 60, "ar": 30, "ja": 12}


def sheet_of(folder, number, *options):
    sheet = f"sheet{number}{len(options)}"
    assert draw(folder, number, *options, sheet=sheet) == 0
    return folder / sheet


@pytest.fixture
def runs(tmp_path):
    write_care(tmp_path / "runs", SMALL)
    return tmp_path


def test_strata_have_their_shares_and_a_larger_draw_by_the_same_seed_holds_the_smaller_one_in_its_order(runs):
    found = design(sheet_of(runs, 34))
    strata = [(one["culture"], one["size"], one["drawn"]) for each in found["populations"] for one in each["strata"]]
    # 34 of 102 by size are 20, 10 and 4; each has five at least, so that 19 + 10 + 5 are left.
    assert sorted(strata) == [("ar", 30, 10), ("ja", 12, 5), ("zh", 60, 19)]
    assert Counter(row["culture"] for row in found["rows"]) == {"zh": 19, "ar": 10, "ja": 5}
    whole, larger, other = (
        [row["row"] for row in design(sheet_of(runs, *arguments))["rows"]]
        for arguments in ((5_000,), (60,), (34, "--seed", "7"))
    )
    smaller = [row["row"] for row in found["rows"]]
    assert [row for row in larger if row in smaller] == smaller
    assert (len(set(smaller)), len(larger), len(whole)) == (34, 60, sum(SMALL.values()))
    assert set(other) != set(smaller)


def test_the_sheet_says_nothing_of_judge_and_model(runs):
    sheet = sheet_of(runs, 20)
    for name in ("sheet.csv", "sheet.html"):
        text = (sheet / name).read_text(encoding="utf-8")
        assert not re.search(r"toy|judge-1|care_|zh-\d|score", text.replace("instructions, as the judge", "")), name
    assert "rated by" not in (sheet / "sheet.html").read_text(encoding="utf-8")
    first = lines(sheet / "sheet.csv")[0]
    assert (first["rating"], first["lowest"], first["highest"]) == ("", "1", "10")
    assert {line["culture"] for line in lines(sheet / "sheet.csv")} == set(SMALL)


def test_responses_that_two_judges_graded_are_drawn_once_and_repeated_responses_one_by_one(runs, tmp_path):
    write_care(runs / "runs", SMALL, "20260102_000000", "20260101_000000_results.json", judge="judge-2", bias=-1.0)
    assert len(design(sheet_of(runs, 30))["populations"]) == 3
    own = samples({"zh": 20})
    for each in own["care_zh"]:
        run = each["record"]["runs"][0]
        each["record"] |= {"runs": [run, run | {"response": "又一次"}], "outcomes": {"scored": 2}}
    write_run(tmp_path / "repeated" / "runs", "toy/model", own)
    found = design(sheet_of(tmp_path / "repeated", 40))
    assert Counter(row["run"] for row in found["rows"]) == {0: 20, 1: 20}


def test_hostile_texts_are_text_and_reasoning_is_not_shown(tmp_path):
    hostile = '=HYPERLINK("http://evil","x")</script><img src=x onerror=alert(1)>\u202e{{ 7*7 }}\x00'
    write_care(tmp_path / "runs", {"zh": 10}, response=f"<think>secret thoughts</think>{hostile}")
    sheet = sheet_of(tmp_path, 10)
    page = (sheet / "sheet.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page
    assert "{{ 7*7 }}" in page
    assert "secret" not in page
    assert all(line["response"].startswith("'=HYPERLINK") for line in lines(sheet / "sheet.csv"))


def test_raters_share_some_and_divide_the_others(runs):
    sheet = sheet_of(runs, 30, "--raters", "3", "--shared", "6")
    own = [[line["row"] for line in lines(sheet / f"sheet_{rater}.csv")] for rater in (1, 2, 3)]
    rows = [row["row"] for row in design(sheet)["rows"]]
    assert all(each[:6] == rows[:6] and len(each) == 14 for each in own)
    assert sorted(row for each in own for row in each[6:]) == sorted(rows[6:])
    assert {line["rater"] for line in lines(sheet / "sheet_2.csv")} == {"rater 2"}


def test_no_rater_gets_an_empty_sheet(runs, capsys):
    draw = ["spotcheck", "draw", str(runs / "runs"), "-n", "30", "-o", str(runs / "empty"), "--raters", "31"]
    assert main([*draw, "--shared", "0"]) == 1
    assert "only 30 of 30 responses go to one rater each" in capsys.readouterr().err


def test_images_are_shown_or_missed(tmp_path, capsys):
    from PIL import Image

    own = vqa_samples([1.0, 0.0] * 10, image="feast")
    for number, each in enumerate(own):
        each["record"]["runs"] = [{"response": f"tea {number}", "outcome": "scored", "rating": 2.0}]
    write_run(tmp_path / "runs", "toy/model", {"culturalvqa": own})
    sheet = sheet_of(tmp_path, 20)
    assert "draw with --images DIR" in capsys.readouterr().out
    assert "Image: <bdi>feast</bdi>" in (sheet / "sheet.html").read_text(encoding="utf-8")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    assert draw(tmp_path, 20, "--images", pictures, sheet="without") == 1
    assert "20 of the images aren't there" in capsys.readouterr().err
    Image.new("RGB", (1200, 600), "red").save(pictures / "feast.png")
    assert draw(tmp_path, 20, "--images", pictures, sheet="with") == 0
    assert (tmp_path / "with" / "sheet.html").read_text(encoding="utf-8").count("data:image/jpeg;base64,") == 20


def test_a_sheet_is_never_overwritten(runs, capsys):
    assert draw(runs, 20) == 0
    before = (runs / "sheet" / "sheet.csv").read_bytes()
    assert draw(runs, 30) == 1
    assert "has the sheet of another draw" in capsys.readouterr().err
    assert (runs / "sheet" / "sheet.csv").read_bytes() == before
