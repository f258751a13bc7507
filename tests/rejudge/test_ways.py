"""Ways to grade finished runs side by side: what they cost, and the widths to expect of results at hand."""

import json
import math

import numpy as np
import pytest
from support.sample_files import JUDGE, care_sample, write_run

from culture_tasks.cli.main import main
from culture_tasks.harness.subsets import Subset
from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.means import mean_and_error
from culture_tasks.metrics.prediction_powered import corrected_mean
from culture_tasks.metrics.subsets import Components, components, half_width, subset_interval
from culture_tasks.rejudge.estimates import Bounds
from culture_tasks.rejudge.ways import Grading, grading_of, ways_by
from culture_tasks.results.loaded_runs import Names, load
from culture_tasks.results.run_files import GRADED_FROM

pytestmark = pytest.mark.filterwarnings("ignore")
DRAWN = Subset(documents=100, of_documents=400, items=400, spread=1 / 100 - 1 / 400, seed=0)
ASSUMED = Components(0.0, 5.0)
RNG = np.random.default_rng(0)
CHEAP = np.round(RNG.uniform(1, 10, 60))
DEAR = np.clip(CHEAP + np.round(RNG.normal(0, 1.5, 60)), 1, 10)


def graded(folder, judge, scores, places, stamp, **changes):
    samples = [care_sample(place, float(scores[place]), judge=JUDGE | {"model": judge}) for place in places]
    return write_run(folder, "toy", {"care_zh": samples}, stamp, **changes)


def grading(folder, judge="dear"):
    return grading_of(load([str(folder)], Names()).runs, judge, fallback=ASSUMED, size=60)


def test_what_is_known_of_a_judge_by_the_results_at_hand(tmp_path):
    whole = graded(tmp_path, "cheap", CHEAP, range(60), "20260101_000000")
    alone = grading(tmp_path)
    assert (alone.runs, alone.other_judge, alone.explained) == (1, "cheap", Bounds(0.0, 1.0))
    assert sum(alone.spread) == pytest.approx(np.var(CHEAP, ddof=1))
    assert alone.error == pytest.approx(mean_and_error(CHEAP).error ** 2)

    config = {"model": "x", "model_args": "pretrained=toy", GRADED_FROM: whole.name}
    places = range(0, 60, 2)
    drawn = {"documents": 30, "of_documents": 60, "items": 60, "spread": 1 / 60, "seed": 0}
    configs = {"care_zh": {"output_type": "generate_until", "metadata": {"subset": drawn}}}
    graded(tmp_path, "dear", DEAR, places, "20260102_000000", config=config, configs=configs)
    both = grading(tmp_path)
    share = np.corrcoef(CHEAP[::2], DEAR[::2])[0, 1] ** 2
    assert (both.runs, both.other_judge) == (1, "cheap")
    assert (both.explained.low, both.explained.high) == pytest.approx((share, share))
    assert sum(both.spread) == pytest.approx(np.var(DEAR[::2], ddof=1))
    assert both.error == pytest.approx(np.var(DEAR[::2], ddof=1) / 60)  # of all 60, not of the 30

    nothing = grading_of([], "dear", fallback=ASSUMED, size=50)
    assert nothing == Grading(0, ASSUMED, 0.1)


@pytest.mark.parametrize(
    ("explained", "beside"),
    [(Bounds(0.75, 0.75), (0.5, 0.5)), (Bounds(0.0, 1.0), (0.0, 1.0))],
    ids=["known agreement", "unknown agreement"],
)
def test_widths_worked_by_hand(explained, beside):
    # Variance 4; of 100 of 400: 4 (1/100 - 1/400) = 0.03, times 1 - 0.75 beside another judge.
    known = Grading(2, Components(0.0, 4.0), 0.01, "cheap", explained)
    money = {"all": Bounds(40.0, 40.0), "sample": Bounds(10.0, 10.0)}
    whole, both, alone, people = ways_by(known, "t", "dear", DRAWN, money=money, people=25)
    reach = 1.96 * math.sqrt(0.03)
    assert (whole.by, whole.money, whole.these) == ("dear on all 400", Bounds(40.0, 40.0), Bounds(0.0, 0.0))
    assert whole.alike.low == pytest.approx(0.196)
    assert (both.by, both.money) == ("dear on 100, cheap on all", Bounds(10.0, 10.0))
    assert (both.these.low, both.these.high) == pytest.approx((beside[0] * reach, beside[1] * reach))
    assert both.alike.high == pytest.approx(1.96 * math.sqrt(0.01 + 0.03 * beside[1] ** 2))
    assert (alone.by, alone.these.high) == (
        "dear on 100 alone",
        pytest.approx(half_width(known.spread, DRAWN.frame, 100)),
    )
    assert (people.by, people.money, people.is_by_people) == ("people on 25, cheap on all", None, True)
    assert (people.these.low, people.these.high) == pytest.approx((0.0, 1.96 * math.sqrt(4 * (1 / 25 - 1 / 400))))
    nobody = Grading(0, ASSUMED, 0.01)
    found = list(ways_by(nobody, "t", "dear", DRAWN, money=money, people=25))
    assert [way.by for way in found] == [whole.by, alone.by, "people on 25, dear on all"]
    assert found[-1].money == money["all"]


def test_expected_widths_are_those_that_the_report_will_give():
    rng = np.random.default_rng(1)
    cheap = rng.normal(5, 2, 400)
    dear = cheap + rng.normal(0, 1, 400)
    share = np.corrcoef(cheap, dear)[0, 1] ** 2
    known = Grading(1, components(dear), mean_and_error(dear).error ** 2, "cheap", Bounds(share, share))
    whole, both, alone = ways_by(known, "t", "dear", DRAWN, money={"all": None, "sample": None})
    drawn = rng.permutation(400)[:100]
    checked = np.full(400, np.nan)
    checked[drawn] = dear[drawn]
    found = corrected_mean(cheap, checked).overall
    of_sample = subset_interval(dear[drawn], None, DRAWN.frame)
    of_all = mean_interval(dear)
    assert both.these.high == pytest.approx((found.set_high - found.set_low) / 2, rel=0.15)
    assert both.alike.high == pytest.approx((found.high - found.low) / 2, rel=0.15)
    assert alone.these.high == pytest.approx((of_sample.high - of_sample.low) / 2, rel=0.15)
    assert whole.alike.high == pytest.approx((of_all.high - of_all.low) / 2, rel=0.05)


def test_cost_prints_the_ways_with_money_and_width(tmp_path, written, capsys):
    written("lm_eval", "lexical", ("care",))
    arguments = ["cost", "--results", str(tmp_path), "--tasks", "care_zh", "--judge", "openai:gpt-4o", "--sample", "4"]
    assert main([*arguments, "--people", "3"]) == 0
    said = capsys.readouterr().out
    for part in ("| care_zh | gpt-4o on all 10 | 0.", "| gpt-4o on 4, text overlap on all |", "| — | ±0 to ±"):
        assert part in said
    assert "A range goes from perfect agreement of the two to none." in said
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [whole, both, alone] = found["ways"]
    [sample] = found["tasks"]
    assert sample["money"] == both["money"] == alone["money"]
    assert whole["money"]["high"] > 2 * both["money"]["high"]
    assert both["these"]["low"] == whole["these"]["high"] == 0 < both["these"]["high"]


def test_a_sample_of_all_leaves_nothing_to_compare(tmp_path, written, capsys):
    written("lm_eval", "none", ("care_zh",))
    arguments = ["cost", "--results", str(tmp_path), "--judge", "openai:gpt-4o"]
    assert main([*arguments, "--sample", "10"]) == 0
    assert "graded by" not in capsys.readouterr().out
    assert main([*arguments, "--sample", "5"]) == 0
    assert "No results tell how scores of care_zh vary: they are assumed to vary" in capsys.readouterr().out
    assert main([*arguments, "--people", "5"]) == 1
    assert "Give its size with --sample" in capsys.readouterr().err


def test_the_newest_judge_counts_and_scores_that_are_all_alike_tell_nothing(tmp_path):
    graded(tmp_path, "old", DEAR, range(60), "20260101_000000")
    known = grading(tmp_path)
    assert sum(known.spread) == pytest.approx(np.var(DEAR, ddof=1))
    config = {"model": "x", "model_args": "pretrained=toy", GRADED_FROM: "20260101_000000_results.json"}
    graded(tmp_path, "new", CHEAP, range(60), "20260102_000000", config=config)
    newest = grading(tmp_path)
    assert (newest.runs, newest.other_judge) == (1, "new")
    assert sum(newest.spread) == pytest.approx(np.var(CHEAP, ddof=1))
    graded(tmp_path / "alike", "cheap", np.full(60, 5.0), range(60), "20260101_000000")
    assert grading(tmp_path / "alike") == Grading(0, ASSUMED, sum(ASSUMED) / 60, "cheap")
