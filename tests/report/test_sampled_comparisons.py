"""Two models compared by a better judge's verdicts on a sample, beside another judge's on all responses."""

from __future__ import annotations

import numpy as np
import pytest
from support.checked_runs import write_sample
from support.reports import cells_of, gate_checks, report_of, row_of, tables_of
from support.sample_files import COUNTRIES, JUDGE, vqa_samples, write_run

from culture_tasks.metrics.prediction_powered import corrected_difference, corrected_mean

SIZE, BETTER = 400, JUDGE | {"model": "judge-2"}
RNG = np.random.default_rng(4)
TRUE = {"a": (RNG.random(SIZE) < 0.8) * 1.0, "b": (RNG.random(SIZE) < 0.55) * 1.0}
JUDGED = {"a": TRUE["a"], "b": np.maximum(TRUE["b"], RNG.random(SIZE) < 0.7)}  # the judge likes what b writes
CHOSEN = np.sort(RNG.permutation(SIZE)[:120])


def write(folder, side, chosen=CHOSEN):
    whole = write_run(folder / side, side, {"culturalvqa": vqa_samples(JUDGED[side].tolist())})
    samples = vqa_samples(TRUE[side].tolist(), judge=BETTER)
    if len(chosen) == SIZE:
        write_run(folder / side, side, {"culturalvqa": samples}, "20260102_000000")
    else:
        write_sample(whole, side, {"culturalvqa": [samples[place] for place in chosen]}, "20260102_000000")


def expected(strata, chosen):
    judged = [JUDGED[side] if len(chosen[side]) < SIZE else np.full(SIZE, np.nan) for side in "ba"]
    graded = [np.where(np.isin(np.arange(SIZE), chosen[side]), TRUE[side], np.nan) for side in "ba"]
    return corrected_difference(tuple(judged), tuple(graded), strata, ends=(0, 1))


COUNTRY = [COUNTRIES[number % 4] for number in range(SIZE)]


def test_the_gate_and_the_report_rest_on_what_the_better_judge_would_find_on_all_responses(tmp_path, capsys):
    for side in "ab":
        write(tmp_path, side)
    status, found = gate_checks(tmp_path)
    said = capsys.readouterr().out
    right = expected(COUNTRY, {"a": CHOSEN, "b": CHOSEN})
    check = found["culturalvqa"]
    assert (status, check["test"], check["common_items"]) == (1, "corrected, paired", SIZE)
    assert [check[name] for name in ("difference", "low", "high", "p")] == pytest.approx(list(right.test()[:4]))
    own = float(np.mean(JUDGED["b"] - JUDGED["a"]))
    correction = check["correction"]
    assert (correction["by"], correction["rated"], correction["corrected"]) == ("judge-2", 120, True)
    assert correction["judge_difference"] == pytest.approx(own)
    assert "corrected by the verdicts of judge-2 on 120 items; the other judge's is" in check["message"]
    assert "judge-2 contradicts the other judge's difference: on CulturalVQA B - A is" in said
    brazil = found["culturalvqa:brazil"]
    assert brazil["difference"] == pytest.approx(right.test({"brazil": 1.0}).difference)
    assert brazil["common_items"] == 100
    report = report_of(tmp_path)
    better = {label: cell for label, cell in cells_of(report).items() if "subset" in cell.flags}
    assert [str(cell.rank) for cell in better.values()] == ["1", "2"]
    graded = np.where(np.isin(np.arange(SIZE), CHOSEN), TRUE["a"], np.nan)
    alone = corrected_mean(JUDGED["a"], graded, COUNTRY, ends=(0, 1)).overall
    cell = next(iter(better.values()))
    assert (cell.value, cell.low, cell.high) == pytest.approx((alone.value, alone.set_low, alone.set_high))
    row = row_of(tables_of(report)["comparisons"], ("CulturalVQA", *better))
    numbers = [row[name].value for name in ("difference", "judge", "rated")]
    assert numbers == pytest.approx([right.test().difference, own, 120])


def test_a_run_that_the_better_judge_graded_whole_is_a_sample_of_all(tmp_path):
    write(tmp_path, "a", np.arange(SIZE))
    write(tmp_path, "b")
    _, found = gate_checks(tmp_path, "--compare-anyway")
    right = expected(COUNTRY, {"a": np.arange(SIZE), "b": CHOSEN}).test()
    assert [found["culturalvqa"][name] for name in ("difference", "low")] == pytest.approx(list(right[:2]))


def test_cultures_with_too_few_graded_responses_count_together(tmp_path):
    few = np.array([at for at in CHOSEN if COUNTRY[at] not in ("usa", "india")] + [2, 3, 7])
    write(tmp_path, "a", few)
    write(tmp_path, "b", few)
    _, found = gate_checks(tmp_path)
    # India has one graded response or none, too few by itself: it counts with the USA, which have two.
    strata = ["others" if country in ("usa", "india") else country for country in COUNTRY]
    right = expected(strata, {"a": few, "b": few}).test()
    assert [found["culturalvqa"][name] for name in ("difference", "low")] == pytest.approx(list(right[:2]))
    own = {name.partition(":")[2]: check["correction"]["corrected"] for name, check in found.items() if ":" in name}
    assert [name for name, is_corrected in own.items() if is_corrected] == ["brazil", "china"]
