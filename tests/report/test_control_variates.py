"""``report --control-variates``: other models' runs of all questions beside a run of a subset."""

import numpy as np
import pytest
from support.reports import report_of
from support.sample_files import care_sample, result_data, write_run

from culture_tasks.metrics.subsets import SamplingFrame, control_variate_interval, subset_interval

SIZE, DRAWN = 120, 60
RNG = np.random.default_rng(3)
HARD = RNG.normal(5.5, 1.5, SIZE)
SCORES = {name: np.clip(np.round(HARD + RNG.normal(0, 0.7, SIZE)), 1, 10) for name in "abcde"}
OWN = np.clip(np.round(HARD + RNG.normal(0, 0.7, SIZE)), 1, 10)
PLACES = sorted(RNG.permutation(SIZE)[:DRAWN].tolist())


def write(folder, model, scores, places=range(SIZE), **changes):
    samples = [care_sample(place, float(scores[place])) for place in places]
    metadata = {}
    if len(samples) < SIZE:
        drawn = {"documents": len(samples), "of_documents": SIZE, "items": SIZE, "seed": 0}
        metadata = {"metadata": {"subset": drawn | {"spread": 1 / len(samples) - 1 / SIZE}}}
    [settings] = result_data(["care_zh"], model, SIZE)["configs"].values()
    return write_run(folder, model, {"care_zh": samples}, configs={"care_zh": settings | metadata}, **changes)


def score(report, model="part"):
    return next(cell for key, cell in report.units["care_zh"].cells.items() if report.entrants[key].model == model)


def test_the_score_of_a_subset_is_made_of_the_others_scores_and_says_so(tmp_path):
    write(tmp_path / "part", "part", OWN, PLACES)
    for name, scores in SCORES.items():
        write(tmp_path / name, name, scores[::-1] if name == "e" else scores, reversed(range(SIZE)))
    others = np.stack([scores[::-1] if name == "e" else scores for name, scores in SCORES.items()], axis=1)
    frame = SamplingFrame(SIZE, 1 / DRAWN - 1 / SIZE)
    plain = score(report_of(tmp_path))
    expected = subset_interval(OWN[PLACES], None, frame)
    assert (plain.value, plain.low, plain.high) == pytest.approx(expected[:3])
    assert "control_variates" not in plain.flags

    report = report_of(tmp_path, control_variates=True)
    cell = score(report)
    found = control_variate_interval(OWN[PLACES], others, PLACES, None, frame, ends=(1, 10))
    assert (cell.value, cell.low, cell.high) == pytest.approx(found[:3])
    assert cell.high - cell.low < 0.6 * (plain.high - plain.low)
    assert abs(cell.value - OWN.mean()) < abs(plain.value - OWN.mean())
    assert "control_variates" in cell.flags
    assert cell.note.endswith("60 of 120 documents, with the scores of 5 other models on all")
    assert report.notes[-1].endswith(
        "60 of 120 documents: with the scores of 5 other models on all of them (a, b, c, d, e)."
    )
    assert report.options["control_variates"] == "true"
    assert all("control_variates" not in score(report, name).flags for name in SCORES)
    assert report.countries
    assert not any("control_variates" in one.cell.flags for one in report.countries)
    for path in (tmp_path / "part").iterdir():
        path.unlink()
    assert report_of(tmp_path, control_variates=True).notes[-1].startswith("No run is of a subset")


@pytest.mark.parametrize(
    ("left_out", "others"),
    [
        (lambda folder: write(folder, "hub/PART", SCORES["e"]), "abcd"),
        (lambda folder: write(folder, "other", SCORES["e"], range(SIZE - 1)), "abcd"),
        (lambda folder: write(folder, "tuned", SCORES["e"], config={"model_args": "pretrained=hub/part"}), "abcd"),
        (lambda folder: write(folder, "a", SCORES["e"], stamp="20250101_000000", limit=7.0), "abcd"),
    ],
    ids=["same checkpoint", "not all questions", "trained from the same", "another run of one of them"],
)
def test_a_model_s_own_kin_and_runs_of_some_questions_dont_count(left_out, others, tmp_path):
    write(tmp_path / "part", "part", OWN, PLACES)
    for name in others:
        write(tmp_path / name, name, SCORES[name])
    left_out(tmp_path / "left_out")
    report = report_of(tmp_path, control_variates=True)
    assert report.notes[-1].endswith(f"({', '.join(others)}).")


ALIKE = np.full(SIZE, 5.0)


@pytest.mark.parametrize(
    ("own", "drawn", "others", "reason"),
    [
        (OWN, PLACES, "ab", "only 2 other models ran all questions with scores that differ, and 3 are needed"),
        (OWN, PLACES, "abx", "only 2 other models ran all questions with scores that differ, and 3 are needed"),
        (OWN, PLACES[:49], "abc", "only 49 questions got a score, and 50 are needed"),
        (ALIKE, PLACES, "abc", "its scores are all alike"),
    ],
)
def test_what_tells_too_little_leaves_the_score_as_it_is_with_the_reason(own, drawn, others, reason, tmp_path):
    write(tmp_path / "part", "part", own, drawn)
    for name in others:
        write(tmp_path / name, name, SCORES.get(name, ALIKE))
    report = report_of(tmp_path, control_variates=True)
    assert report.notes[-1].endswith(f"without other models' scores, since {reason}.")
    cell = score(report)
    expected = subset_interval(own[drawn], None, SamplingFrame(SIZE, 1 / len(drawn) - 1 / SIZE))
    ends = [np.nan if end is None else end for end in (cell.low, cell.high)]
    assert (cell.value, *ends) == pytest.approx(expected[:3], nan_ok=True)
    assert "control_variates" not in cell.flags
