"""Scores and samples as data frames."""

from __future__ import annotations

import itertools
import math

import pytest

from culture_tasks import frames
from culture_tasks.errors import DataError
from culture_tasks.report.building import Options


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """CARE and CulturalVQA, graded by a script that can't read every fifth reply."""
    from support import stored_runs
    from support.scripted_judge import ScriptedJudge, install

    from culture_tasks.cli.main import main
    from culture_tasks.judges.rubric.verdicts import Verdict

    folder = tmp_path_factory.mktemp("frames") / "results"
    stored_runs.copy("ungraded/lm_eval", folder, ("care", "culturalvqa_blind"))
    unread = Verdict("unparsable", completion="hm", error="no rating")
    verdicts = itertools.cycle([unread, *[Verdict("scored", 2.0, rationale="so so")] * 4])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_JUDGE_MIN_COVERAGE", "0")
        install(patch, ScriptedJudge(lambda _: next(verdicts)))
        assert main(["rejudge", str(folder), "--judge", "openai:scripted"]) == 0
    return folder


def test_a_score_is_the_reports_and_groups_are_rows_beside_the_whole(results):
    scores = frames.scores(results)
    whole = scores[(scores.task == "care") & (scores.dimension == "")].iloc[0]
    # 30 questions, of which the judge could read 24, each with 2 points.
    assert (whole.model, whole.benchmark, whole.metric) == ("toy", "care", "care_rating")
    assert (whole.value, whole.n, whole.coverage) == (2.0, 24, pytest.approx(24 / 30))
    assert "low_coverage" in whole.marks.split()
    vqa = scores[(scores.task == "culturalvqa_blind") & (scores.metric == "lave")]
    countries = vqa[vqa.dimension == "country"]
    assert len(countries) == countries.group.nunique() == 11
    # The judge's 2 is "correct", which is 1 on the scale of LAVE.
    assert set(countries.value.dropna()) == {1.0}


def test_samples_of_all_tasks_are_in_one_frame(results):
    samples = frames.samples([results])
    assert set(samples.task) == {"care_ar", "care_ja", "care_zh", "culturalvqa_blind"}
    care = samples[samples.benchmark == "care"]
    unread, scored = care[care.outcome == "unparsable"], care[care.outcome == "scored"]
    assert (len(unread), len(scored)) == (6, 24)
    assert unread.score.map(math.isnan).all()
    assert (scored.score == 2.0).all()
    assert care.response.str.startswith("to ").all()
    assert samples[samples.task == "culturalvqa_blind"].country.notna().all()
    assert care.country.isna().all()


def test_runs_of_all_tasks_are_in_one_frame(results):
    runs = frames.runs(results).set_index("task")
    assert set(runs.index) == {"care_ar", "care_ja", "care_zh", "culturalvqa_blind"}
    # 24 of CARE's 30 responses have a verdict
    assert (runs["items"].filter(like="care").sum(), runs.scored.filter(like="care").sum()) == (30, 24)
    assert set(runs.judge) == {"scripted"}


def test_options_are_the_reports_and_nothing_to_read_is_an_error(results, tmp_path):
    options = Options(names=("toy=Mine",))
    assert set(frames.scores(results, options).model) == set(frames.samples(str(results), options).model) == {"Mine"}
    with pytest.raises(DataError, match=str(tmp_path)):
        frames.scores(tmp_path)
    for nothing, said in ((5, "frames: 5 is no path"), ([], "no path is named"), ([None], "is no path")):
        with pytest.raises(DataError, match=said):
            frames.scores(nothing)
