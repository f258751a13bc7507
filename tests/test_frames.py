"""Scores and samples as data frames."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from culture_tasks import frames
from culture_tasks.errors import DataError
from culture_tasks.report.building import Options

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """CARE and CulturalVQA, graded by a script that can't read every fifth reply."""
    from support.scripted_judge import ScriptedJudge, install
    from support.written_runs import write_lm_eval

    from culture_tasks.judges.rubric.verdicts import Verdict

    folder = tmp_path_factory.mktemp("frames") / "results"
    asked = iter(range(10_000))

    def graded(item):
        if next(asked) % 5 == 0:
            return Verdict("unparsable", completion="hm", error="no rating")
        return Verdict("scored", 2.0, rationale="so so")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_JUDGE", "openai:scripted")
        patch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0")
        patch.setenv("CULTURE_TASKS_DATA", str(DATA))
        install(patch, ScriptedJudge(graded))
        write_lm_eval(folder, ("care", "culturalvqa_blind"), lambda prompt, _: f"to {prompt[:9]}", "toy/one")
    return folder


def test_a_score_is_the_reports(results):
    scores = frames.scores(results)
    whole = scores[(scores.task == "care") & (scores.dimension == "")].iloc[0]
    # 30 questions, of which the judge could read 24, each with 2 points.
    assert (whole.model, whole.benchmark, whole.metric, whole.value, whole.n) == (
        "toy/one",
        "care",
        "care_rating",
        2.0,
        24,
    )
    assert whole.coverage == pytest.approx(24 / 30)
    assert "low_coverage" in whole.marks.split()


def test_groups_are_rows_beside_the_whole_and_options_are_the_reports(results):
    scores = frames.scores(results, Options(names=("toy/*=Mine",)))
    countries = scores[
        (scores.task == "culturalvqa_blind") & (scores.dimension == "country") & (scores.metric == "lave")
    ]
    assert len(countries) == countries.group.nunique() == 11
    # The judge's 2 is "correct", which is 1 on the scale of LAVE.
    assert set(countries.value.dropna()) == {1.0}
    assert set(scores.model) == set(frames.samples(str(results), Options(names=("toy/*=Mine",))).model) == {"Mine"}


def test_samples_of_all_tasks_are_in_one_frame(results):
    samples = frames.samples([results])
    assert set(samples.task) == {"care_ar", "care_ja", "care_zh", "culturalvqa_blind"}
    care = samples[samples.benchmark == "care"]
    assert len(care) == 30
    assert (care.outcome == "unparsable").sum() == 6
    assert care[care.outcome == "unparsable"].score.map(math.isnan).all()
    assert (care[care.outcome == "scored"].score == 2.0).all()
    assert care.response.str.startswith("to ").all()
    assert samples[samples.task == "culturalvqa_blind"].country.notna().all()
    assert care.country.isna().all()


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(DataError, match=str(tmp_path)):
        frames.scores(tmp_path)
