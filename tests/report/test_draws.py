"""Two draws of the questions by other seeds: said, and compared without pairs."""

import math

import pytest
from support.reports import cells_of, gate_checks, report_of
from support.sample_files import rewrite, vqa_samples, write_run, write_vqa

SCORES = {"a": [1.0, 1.0, 1.0, 0.0], "b": [0.0, 0.0, 1.0, 0.0]}


def write(folder, model, places, seed, scores):
    samples = vqa_samples([*scores, *scores])
    path = write_run(folder / model, model, {"culturalvqa": [samples[place] for place in places]})
    drawn = {"documents": len(places), "of_documents": 8, "items": 8, "spread": 0.01, "seed": seed}
    rewrite(path, configs={"culturalvqa": {"metadata": {"subset": drawn}}})


def test_differences_of_two_draws_are_of_the_two_scores(tmp_path):
    write(tmp_path, "a", (0, 1, 2, 3), 0, SCORES["a"])
    write(tmp_path, "b", (0, 5, 6, 7), 7, SCORES["b"])  # one question in common, which only a answers
    report = report_of(tmp_path)
    [test] = report.comparisons
    a, b = (cells_of(report)[model] for model in "ab")
    # 0.25 - 0.75, and the ends by (Zou and Donner, 2008): the facing sides of both intervals, as a right angle
    low = -0.5 - math.hypot(b.value - b.low, a.high - a.value)
    assert (test.difference, test.low) == (-0.5, pytest.approx(max(low, -1.0)))
    assert (test.test, test.n) == ("unpaired", 4)
    assert [("subset" in cell.flags, cell.comparable) for cell in (a, b)] == [(True, True)] * 2
    assert gate_checks(tmp_path)[1]["culturalvqa"]["difference"] == -0.5
    write(tmp_path / "again", "a", (4, 5, 6, 7), 3, SCORES["a"])
    assert "a [another draw (4 of 8, seed 3)]" in cells_of(report_of(tmp_path))


def test_a_larger_draw_by_the_same_seed_holds_the_smaller_one(tmp_path):
    write(tmp_path, "a", (0, 1, 2, 3), 7, SCORES["a"])
    write(tmp_path, "b", (0, 1, 2, 3, 4, 5), 7, SCORES["b"])
    [test] = report_of(tmp_path).comparisons
    assert (test.difference, test.n, test.test) == (-0.5, 4, "sign flips")
    write_vqa(tmp_path / "whole" / "a", "a", [*SCORES["a"], *SCORES["a"]])
    write(tmp_path / "whole", "b", (0, 1, 2, 3), 7, SCORES["b"])  # nor is a draw beside all questions unpaired
    assert gate_checks(tmp_path / "whole")[1]["culturalvqa"]["common_items"] == 4
