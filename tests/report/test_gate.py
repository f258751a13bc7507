"""``culture-tasks compare --fail-on-regression``: what passes, what fails, and what it writes."""

import json
import math
import os
import shutil

import pytest
from support.reports import gate_checks
from support.sample_files import COUNTRIES, care_sample, vqa_record, vqa_samples, write_run, write_vqa

from culture_tasks.cli.main import main

STEADY = [1.0, 0.0, 1.0, 1.0] * 30
WORSE = [0.0, 0.0, 1.0, 0.0] * 30
LATER = "20260105_000000"
SAMPLES = "20260101_000000_samples_culturalvqa.jsonl"


@pytest.fixture
def runs(tmp_path):
    """Folders of a baseline and of a candidate that is a little different, and no worse."""
    write_vqa(tmp_path / "a", "a", STEADY)
    candidate(tmp_path, [*STEADY[:-1], 0.0])
    return tmp_path


def candidate(folder, scores, **changes):
    return write_vqa(folder / "b", "b", scores, **changes)


def changed(scores, at, value=0.0):
    """The scores with another value at some places."""
    return [value if place in at else score for place, score in enumerate(scores)]


def places_of(country, stop=120):
    return range(COUNTRIES.index(country), stop, 4)


def write_care(folder, side, rating=5.0, count=4):
    write_run(folder / side, side, {"care_zh": [care_sample(n, rating) for n in range(count)]}, LATER)


def gate(folder, *options):
    return main(["compare", str(folder / "a"), str(folder / "b"), "--fail-on-regression", *map(str, options)])


def outcome(folder, *options):
    status, found = gate_checks(folder, *options)
    return status, {name: check["outcome"] for name, check in found.items()}


def test_a_candidate_that_is_no_worse_passes(runs, capsys):
    names = ("culturalvqa", *(f"culturalvqa:{country}" for country in COUNTRIES))
    assert outcome(runs) == (0, dict.fromkeys(names, "passed"))
    said = capsys.readouterr().out
    assert "0 of 4 cultures differ\ngate: passed (5 passed)" in said
    assert gate(runs, "--json") == 0
    assert capsys.readouterr().out == (runs / "gate.json").read_text(encoding="utf-8")  # and nothing else


def test_a_regression_of_one_culture_fails_where_the_whole_does_not(runs, capsys):
    """India gets 20 of its 30 items wrong, and China as many more right."""
    candidate(runs, changed(changed(STEADY, places_of("india")[:20]), places_of("china")[:20], 1.0))
    status, found = outcome(runs)
    assert (status, [name for name, ended in found.items() if ended == "regression"]) == (1, ["culturalvqa:india"])
    said = capsys.readouterr().out
    assert "regression: CulturalVQA: India: B is worse: B - A is -0.667" in said
    assert "2 of 4 cultures differ" in said
    # cultures are adjusted over all of them: 7 items lost and none won: p = 2 / 2 ** 7 = 0.0156, 4 times that
    candidate(runs, changed(STEADY, places_of("india", 28)))
    status, found = gate_checks(runs)
    india = found["culturalvqa:india"]
    assert (india["p"], india["p_holm"]) == (pytest.approx(2 / 2**7), pytest.approx(8 / 2**7))
    assert (status, india["outcome"]) == (1, "passed")  # the benchmark is tested alone


@pytest.mark.parametrize(
    ("margins", "failed"),
    [
        (["culturalvqa=0.2"], {"culturalvqa:brazil"}),
        (["culturalvqa=0.2", "culturalvqa:*=0.6"], set()),
        (["culturalvqa=0.1", "culturalvqa=0.6"], {"culturalvqa", "culturalvqa:brazil"}),
    ],
)
def test_a_drop_within_the_margin_passes(runs, margins, failed):
    """Brazil loses 15 of its 30 items, which are 15 of all 120."""
    candidate(runs, changed(STEADY, places_of("brazil", 60)))
    status, found = outcome(runs, *(f"--margin={margin}" for margin in margins))
    assert {name for name, ended in found.items() if ended == "regression"} == failed
    assert status == bool(failed)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--margin", "culturalvqa", "isn't NAME=NUMBER"),
        ("--name", "storng=theirs", "--name storng=theirs: storng fits no model"),
        ("--margin", "culturalvqua=0.1", "Did you mean 'culturalvqa'"),
        ("--margin", "culturalvqa=2", "as wide as the scale of culturalvqa, 0 to 1"),
        ("--require", "culturalvqq", "Did you mean 'culturalvqa'"),
        ("--json", "{runs}/a", "can't write"),
        ("--json", "{runs}/nowhere/gate.json", "can't write to"),
    ],
)
def test_an_option_that_can_not_be_meant_is_an_error(runs, capsys, option, value, said):
    assert gate(runs, option, value.format(runs=runs)) == 2
    assert said in capsys.readouterr().err


def later_run_under_other_settings(folder):
    write_run(folder / "b", "b", {"culturalvqa": vqa_samples(STEADY, data={"data": "d2"})}, LATER)


NOT_NUMBERS = [{"record": vqa_record(n, score) | {"score": math.nan}} for n, score in enumerate(STEADY)]
CRASHES = {
    "too few of the responses were scored": lambda folder: candidate(folder, [*STEADY[:108], *[None] * 12]),
    "B lacks 20 of A's 120 items": lambda folder: candidate(folder, STEADY[:100], **{"n-samples": {}}),
    "parts or items of it are missing": lambda folder: os.truncate(folder / "b" / SAMPLES, 20_000),
    "there are no scored samples of B": lambda folder: write_run(folder / "b", "b", {"culturalvqa": NOT_NUMBERS}),
    "B didn't run it": lambda folder: write_care(folder, shutil.move(folder / "b", folder / "old") and "b"),
    "B, CulturalVQA: lave is 0.409 in the result file and 0.75 by its samples": lambda folder: candidate(
        folder, STEADY, results={"culturalvqa": {"lave,none": 0.409}}
    ),
    "B has a file that can't be used: empty": lambda folder: (folder / "b" / f"{LATER}_results.json").touch(),
    "another revision of the data": later_run_under_other_settings,
}


@pytest.mark.parametrize("said", CRASHES)
def test_a_candidate_that_crashed_does_not_pass(runs, capsys, said):
    CRASHES[said](runs)
    assert gate(runs) == 3
    assert said in capsys.readouterr().out


def test_a_candidate_without_any_run_is_an_error_and_leaves_no_old_outcome(runs):
    assert gate(runs, "--json", runs / "gate.json") == 0
    shutil.rmtree(runs / "b")
    (runs / "b").mkdir()
    assert gate(runs, "--json", runs / "gate.json") == 2
    found = json.loads((runs / "gate.json").read_text(encoding="utf-8"))
    assert (found["verdict"], found["status"]) == ("error", 2)
    assert "has no run that can be used" in found["message"]


def test_only_what_is_required_counts_and_what_the_candidate_alone_ran_is_no_loss(runs, capsys):
    write_care(runs, "b")
    assert gate(runs) == 0
    assert "not compared: CARE, Chinese culture: A didn't run it" in capsys.readouterr().out
    assert gate(runs, "--require", "care_zh") == 3
    for side in "ab":
        samples = [care_sample(n, 3.0 + n % 5 + 2.0 * (side == "a")) for n in range(40)]
        write_run(runs / side, side, {"care_zh": samples}, LATER)
    assert gate(runs) == 1
    status, found = outcome(runs, "--require", "culturalvqa")
    assert (status, "care_zh" in found) == (0, False)
    assert outcome(runs, "--require", "care*") == (1, {"care_zh": "regression"})
    status, found = gate_checks(runs, "--require", "culturalvqa", "--require", "cedar_text")
    assert (status, found["cedar_text"]["message"]) == (3, "neither A nor B ran it")


def test_the_newest_candidate_counts_and_the_baseline_that_fits_it_unless_the_user_insists(runs):
    """A was run on both revisions of the data, B on the old one, and then on the new one, where it is worse."""
    later_run_under_other_settings(runs)
    assert (gate(runs), gate(runs, "--compare-anyway")) == (3, 0)
    write_run(runs / "a", "a", {"culturalvqa": vqa_samples(STEADY, data={"data": "d2"})}, "20251231_000000")
    assert gate(runs) == 0
    write_run(runs / "b", "b", {"culturalvqa": vqa_samples(WORSE, data={"data": "d2"})}, LATER)
    assert gate(runs) == 1
    candidate(runs, [None] * 120)
    (runs / "b" / f"{LATER}_results.json").unlink()
    assert gate(runs, "--compare-anyway") == 3
