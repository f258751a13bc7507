"""``culture-tasks compare --spotcheck``: differences that people's ratings have corrected, tested and gated."""

from __future__ import annotations

import csv
import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from support.checked_runs import judged, sample, truth
from support.reports import gate_checks, row_of, tables_of
from support.sample_files import write_run, write_vqa

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.cli.main import main
from culture_tasks.metrics.prediction_powered import corrected_difference, corrected_mean
from culture_tasks.people.spotcheck_design import read_rated
from culture_tasks.report.building import Options, build
from culture_tasks.report.model import Unit
from culture_tasks.report.numbers.corrections import CheckedResponses, corrections_of
from culture_tasks.report.numbers.strata import CultureInTask

SIZES = {"zh": 80, "ar": 60, "ja": 40}
ITEMS = [f"{language}-{number}" for language, size in SIZES.items() for number in range(size)]
LANGUAGES = [item.partition("-")[0] for item in ITEMS]


def rated_by_people(side, item):
    """What people think: the candidate's responses are two points worse."""
    return truth(item) if side == "a" else max(1, truth(item) - 2)


def rated_by_judge(side, item):
    """What the judge thinks, who likes the candidate's responses as well as the baseline's."""
    return judged(item) if side == "a" else judged(item, 1.1)


def write_side(folder, side, sizes=SIZES):
    own = {}
    for language, size in sizes.items():
        samples = [sample(language, number, response=f"{side} {number}") for number in range(size)]
        for made in samples:
            record = made["record"]
            record["score"] = record["runs"][0]["rating"] = rated_by_judge(side, record["item"])
        own[f"care_{language}"] = samples
    write_run(folder / side, side, own, "20260101_000000")


def rate(folder, name, sides=("a", "b"), cultures=tuple(SIZES), number=90, seed=0):
    """Draws, and scores what people think, of some sides and cultures; returns who was rated on which items."""
    paths = [str(folder / side) for side in sides]
    options = ["--tasks", "care_*", "-n", str(number), "--seed", str(seed), "-o", str(folder / name)]
    assert main(["spotcheck", "draw", *paths, *options]) == 0
    design = json.loads((folder / name / "spotcheck.json").read_text())
    models = [population["model"] for population in design["populations"]]
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "rating"])
        for row in design["rows"]:
            if row["culture"] in cultures:
                writer.writerow([row["row"], rated_by_people(models[row["population"]], row["item"])])
    results = [str(folder / name), str(folder / f"{name}.csv"), "--results", *paths]
    assert main(["spotcheck", "score", *results]) == 0
    return {(models[row["population"]], row["item"]) for row in design["rows"] if row["culture"] in cultures}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corrected")
    for side in "ab":
        write_side(folder, side)
    return folder


@pytest.fixture
def runs(written, tmp_path):
    """A baseline, and a candidate that people find worse and the judge doesn't."""
    return shutil.copytree(written, tmp_path / "runs")


def checks(folder, *options):
    return gate_checks(folder, "--compare-anyway", *options)  # CARE has more languages


def expected(rated):
    scores = [[rated_by_judge(side, item) for item in ITEMS] for side in "ba"]
    people = [[rated_by_people(side, item) if (side, item) in rated else np.nan for item in ITEMS] for side in "ba"]
    return corrected_difference(tuple(scores), tuple(people), LANGUAGES, ends=(1, 10))


def test_the_gate_rests_on_the_corrected_difference(runs, capsys):
    assert checks(runs)[0] == 0  # the judge sees no drop
    assert "corrected" not in capsys.readouterr().out
    rated = rate(runs, "sheet")
    capsys.readouterr()
    status, found = checks(runs, "--spotcheck", runs / "sheet")
    said = capsys.readouterr().out
    assert status == 1
    care, right = found["care"], expected(rated).test()
    assert (care["outcome"], care["verdict"], care["test"]) == ("regression", "B is worse", "corrected, paired")
    assert [care[name] for name in ("difference", "low", "high", "p")] == pytest.approx(list(right[:4]))
    correction = care["correction"]
    own = np.mean([rated_by_judge("b", item) - rated_by_judge("a", item) for item in ITEMS])
    assert correction["judge_difference"] == pytest.approx(own)
    assert (correction["corrected"], correction["reason"], correction["contradicts_judge"]) == (True, None, True)
    assert (care["common_items"], correction["rated"]) == (180, expected(rated).overall.rated)
    assert f"the judge's is {own:+.2f}" in care["message"]
    assert "corrected B - A" in said
    assert "judge's B - A" in said
    assert f"People's ratings contradict the judge's difference: on CARE B - A is {right.difference:+.2f}" in said
    assert f"and not {own:+.2f}" in said


@pytest.mark.parametrize("seed", [0, 1])
def test_a_candidate_that_is_drawn_later_is_rated_on_the_same_items(runs, seed):
    first = rate(runs, "baseline", sides=("a",), number=60)
    of_one = checks(runs, "--spotcheck", runs / "baseline")[1]["care"]["correction"]
    assert of_one["reason"] == "the responses of one of the two have no ratings"
    second = rate(runs, "candidate", sides=("b",), number=60, seed=seed)
    assert ({item for _, item in first} == {item for _, item in second}) == (seed == 0)
    status, found = checks(runs, "--spotcheck", runs / "baseline", "--spotcheck", runs / "candidate")
    right = expected(first | second)
    assert (found["care"]["test"], found["care"]["correction"]["rated"]) == ("corrected, paired", right.overall.rated)
    assert status == (1 if seed == 0 else 0)  # of other items, too few are rated of both
    assert [found["care"][name] for name in ("difference", "low", "high")] == pytest.approx(list(right.test()[:3]))


def test_cultures_are_corrected_where_they_have_enough_ratings(runs, capsys):
    rated = rate(runs, "sheet", cultures=("zh", "ar"))
    capsys.readouterr()
    _, found = checks(runs, "--spotcheck", runs / "sheet")
    right = expected(rated)
    assert found["care:zh"]["difference"] == pytest.approx(right.test({"zh": 1.0}).difference)
    assert found["care:zh"]["correction"]["rated"] == sum(
        ("a", item) in rated and ("b", item) in rated for item in ITEMS if item.startswith("zh")
    )
    for name in ("care", "care:ja"):
        own = found[name]
        assert own["difference"] == own["correction"]["judge_difference"]
        assert not own["correction"]["corrected"]
        assert re.fullmatch("too few responses.* are rated for Japanese", own["correction"]["reason"])
        assert f"not corrected: {own['correction']['reason']}" in own["message"]
    assert f"not corrected: CARE: {found['care']['correction']['reason']}" in capsys.readouterr().out


def test_ratings_of_other_responses_are_refused_and_those_of_a_third_model_are_left_out(runs, capsys):
    write_side(runs, "c")
    rate(runs, "of_three", sides=("a", "b", "c"))
    assert checks(runs, "--spotcheck", runs / "of_three")[0] == 1
    rate(runs, "of_c", sides=("c",))
    capsys.readouterr()
    assert main(["compare", str(runs / "a"), str(runs / "b"), "--spotcheck", str(runs / "of_c")]) == 2
    assert "people rated responses of c to care_zh, which these results don't have" in capsys.readouterr().err


# The report


@pytest.fixture
def three(runs):
    """A third model besides, which the judge likes as well, and people as little as the candidate."""
    write_side(runs, "c")
    return runs


def report(folder, *names):
    rated = tuple(read_rated(folder / name) for name in names)
    found = build([str(folder / side) for side in "abc"], Options(rated=rated, compare_anyway=True))
    return found, {entrant.label: key for key, entrant in found.entrants.items()}


def test_scores_ranks_and_findings_are_corrected_where_people_rated_all_models(three):
    found, keys = report(three)
    assert keys["a"] not in found.units["care"].standing.best  # by the judge
    assert not any(test.correction for test in found.comparisons)
    rate(three, "of_two")
    found, keys = report(three, "of_two")
    assert not any(test.correction for test in found.comparisons)  # nobody rated the third model
    rated = rate(three, "sheet", sides="abc", number=150)
    found, keys = report(three, "sheet")
    unit = found.units["care"]
    for side in "abc":
        people = [rated_by_people(side, item) if (side, item) in rated else np.nan for item in ITEMS]
        right = corrected_mean([rated_by_judge(side, item) for item in ITEMS], people, LANGUAGES, ends=(1, 10)).overall
        cell = unit.cells[keys[side]]
        assert (cell.value, cell.low, cell.high) == pytest.approx((right.value, right.low, right.high))
        assert "corrected" in cell.flags
    assert unit.standing.best == (keys["a"],)
    assert [str(unit.cells[keys[side]].rank) for side in "abc"] == ["1", "2-3", "2-3"]
    assert all(test.is_corrected for test in found.comparisons)
    row = row_of(tables_of(found)["comparisons"], ("CARE", "a", "b"))
    own = np.mean([rated_by_judge("b", item) - rated_by_judge("a", item) for item in ITEMS])
    assert row["judge"].value == pytest.approx(own)
    assert row["difference"].value == pytest.approx(expected(rated).test().difference)
    assert row["rated"].value == expected(rated).overall.rated
    sentences = [finding.text for finding in found.findings if finding.question == "best"]
    assert any("a is first on CARE" in text and "corrected by people" in text for text in sentences)
    assert any("corrected by people's ratings" in note for note in tables_of(found)["summary"].notes)


def test_a_mean_of_corrected_and_other_columns_is_compared_by_both(three):
    right = {"a": [1.0, 0.0, 1.0, 1.0] * 30, "b": [1.0, 0.0, 0.0, 1.0] * 30, "c": [1.0, 1.0, 1.0, 1.0] * 30}
    for side, scores in right.items():
        write_vqa(three / side, side, scores, "20260102_000000")
    rated = rate(three, "sheet", sides="abc", number=150)
    found, keys = report(three, "sheet")
    [mean] = found.means
    test = next(test for test in mean.comparisons if (test.first, test.second) == (keys["a"], keys["b"]))
    care, vqa = expected(rated).test().difference * 100 / 9, -25.0
    assert test.is_corrected
    assert test.difference == pytest.approx((care + vqa) / 2)
    assert test.difference == pytest.approx(mean.cells[keys["b"]].value - mean.cells[keys["a"]].value, abs=0.05)
    assert test.test == "corrected columns"
    assert test.p < 1e-6
    assert test.low < test.difference < test.high < 0.0
    own = np.mean([rated_by_judge("b", item) - rated_by_judge("a", item) for item in ITEMS]) * 100 / 9
    assert test.correction.judge == pytest.approx((own + vqa) / 2)
    assert mean.standing.ranked[0] in (keys["a"], keys["c"])
    undecided = next(test for test in mean.comparisons if (test.first, test.second) == (keys["a"], keys["c"]))
    assert (undecided.low > 0.0) == (undecided.p_holm <= 0.05) or undecided.high < 0.0


def test_responses_of_a_designed_subset_weigh_what_they_were_drawn_from():
    runs = [SimpleNamespace(task=task, whole=None) for task in ("one", "two")]
    scale, of_both = Scale("points", 0.0, 10.0), {"a": runs, "b": runs}
    measured = Unit("u", "U", None, "score", scale, "", headline=True, tasks=("one", "two"), runs=of_both)

    def responses(people):
        strata = [CultureInTask(task, "", task) for task in ("one",) * 4 + ("two",) * 4]
        keys = [(stratum.task, str(number), 0) for number, stratum in enumerate(strata)]
        weights = {"one": 3.0, "two": 1.0}
        return CheckedResponses(keys, np.full(8, np.nan), np.array(people, dtype=float), strata, ["c"] * 8, weights)

    first, second = responses([1, 2, 3, 2, 5, 6, 7, 6]), responses([3, 3, 5, 5, 5, 5, 7, 7])
    [found] = corrections_of(measured, "a", "b", [{("u", "a"): first, ("u", "b"): second}])
    assert found.difference(0.95).difference == pytest.approx((3 * 2.0 + 0.0) / 4)  # all are rated: +2 and 0 on average
    [found] = corrections_of(measured, "a", "b", [{}, {("u", "a"): first}])
    assert found.missing.startswith("the responses of one")
    assert corrections_of(measured, "a", "b", [{}]) == [None]
