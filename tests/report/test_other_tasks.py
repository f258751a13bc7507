"""The culture tasks that the harnesses have already: which metric counts, which end is better, on which scale."""

import pytest
from support.sample_files import write_run

from culture_tasks.report.building import Options, build
from culture_tasks.report.other_tasks import known_task, known_tasks


def unit(folder, task, **metrics):
    write_run(folder, "m", {}, results={task: {f"{name}": value for name, value in metrics.items()}})
    return build([str(folder)], Options()).units[task]


def test_the_metric_that_counts_is_taken_and_not_the_first(tmp_path):
    found = unit(tmp_path, "crows_pairs_english", **{"likelihood_diff,none": 3.5, "pct_stereotype,none": 0.6})
    assert (found.metric, found.cells["e1"].value) == ("pct_stereotype", 0.6)
    assert (found.scale.better, found.scale.low, found.scale.high) == ("lower", 0.0, 1.0)
    assert found.about.endswith("(CrowS-Pairs); English, French; arXiv 2010.00133")


def test_a_metric_behind_a_filter_is_found(tmp_path):
    found = unit(tmp_path, "mmlu_prox_sw", **{"exact_match,custom-extract": 0.25})
    assert (found.metric, found.scale.unit) == ("exact_match,custom-extract", "share")


def test_percent_is_percent(tmp_path):
    metrics = {"kaleidoscope_format_error,none": 12.0, "kaleidoscope_acc,none": 47.5, "kaleidoscope_valid_acc,none": 50}
    found = unit(tmp_path, "kaleidoscope_multimodal", **metrics)
    assert (found.metric, found.scale.unit, found.scale.high) == ("kaleidoscope_acc", "percent", 100.0)


def test_errors_are_better_the_fewer_they_are(tmp_path):
    found = unit(tmp_path, "kaleidoscope", **{"kaleidoscope_format_error,none": 12.0})
    assert found.scale.better == "lower"


def test_a_value_that_a_scale_does_not_have_is_shown_without_one(tmp_path):
    found = unit(tmp_path, "crows_pairs_french", **{"pct_stereotype,none": 60.0})
    assert (found.scale.unit, found.scale.high, found.scale.better) == ("unknown", None, "lower")


@pytest.mark.parametrize(
    ("task", "paper"),
    [
        ("include_base_44_albanian_few_shot_og", "arXiv 2411.19799"),
        ("global_piqa_nonparallel_cloze_zul_latn", "arXiv 2510.24081"),
        ("AraDiCE_qatar_cultural", "arXiv 2409.11404"),
        ("jmmmu_pro_vision", "JMMMU-Pro"),
        ("jmmmu_japanese_art", "arXiv 2410.17250"),
        ("llava_in_the_wild_ko", "arXiv 2304.08485"),
    ],
)
def test_names_are_told_by_patterns(task, paper):
    assert known_task(task).paper == paper


def test_names_that_only_begin_alike_are_not_known():
    assert [known_task(name) for name in ("clicker", "WISER", "AraDiCE_boolq_eng", "mmlu_pro")] == [None] * 4


def test_every_entry_has_what_a_column_needs():
    for each in known_tasks():
        assert each.about
        assert each.languages
        assert each.paper
        assert all(each.scale_of(metric).better == better for metric, better in each.metrics.items())
