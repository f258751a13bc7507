"""Numbers with intervals, groups, fairness and tests, by hand-worked values."""

import numpy as np
import pytest
from support.reports import report_of, row_of, rows_of, tables_of, values_of
from support.sample_files import care_sample, cedar_sample, record, vqa_record, vqa_samples, write_run, write_vqa

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.harness.records import scorer_of
from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.subsets import SamplingFrame, subset_interval
from culture_tasks.report.model import Number
from culture_tasks.report.numbers.overall import to_common
from culture_tasks.report.numbers.selection import Selection

RATING = Scale("rating", 1.0, 10.0)


def observed(scores, clusters=None):
    items = np.arange(len(scores), dtype=np.int64)
    codes = np.array(items if clusters is None else clusters, dtype=np.int32)
    return Selection(("r1",), items, np.array(scores), codes, None, 1.0)


def test_the_common_scale_maps_ends_to_ends():
    assert [to_common(Number(value, RATING)).value for value in (1.0, 10.0)] == [0.0, 100.0]
    found = to_common(Number(0.25, Scale("error", 0.0, 1.0, better="lower"), low=0.2, high=0.4))
    assert (found.value, found.low, found.high) == (75.0, 60.0, 80.0)
    assert to_common(Number(3.0, Scale("unknown"))) is None


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The countries are brazil, china, india and usa by turns."""
    folder = tmp_path_factory.mktemp("runs")
    write_vqa(folder / "a", "a", [1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    write_vqa(folder / "b", "b", [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, None])
    return report_of(folder, min_coverage=0.5)


def test_fairness_names_the_ends_and_their_distance(report, tmp_path):
    one = next(each for each in report.fairness if each.entrant == "e1")
    # brazil 1, china 0, india 0.5, usa 1: mean 0.625, sample variance (0.375² + 0.625² + 0.125² + 0.375²) / 3
    assert (one.best, one.worst, one.gap, one.groups) == ("brazil", "china", 1.0, 4)
    assert one.variance == pytest.approx((2 * 0.140625 + 0.390625 + 0.015625) / 3)
    write_vqa(tmp_path, "a", [1.0] * 8)
    equal = report_of(tmp_path)
    [found] = equal.fairness
    assert (found.best, found.worst, found.gap, found.groups) == ("", "", 0.0, 4)
    assert rows_of(tables_of(equal)["fairness"])[0].labels == ("CulturalVQA", "a", "all equal", "all equal")


def test_pairs_are_tested_on_common_items_and_those_that_share_an_image_are_one_cluster(report, tmp_path):
    [test] = report.comparisons
    # b has no score for the last item; on the others b is right once more than a: 1/7.
    assert (test.n, test.difference) == (7, pytest.approx(1 / 7))
    assert (test.test, test.p, test.verdict) == ("sign flips", 1.0, "not distinguishable")
    for model, score in (("a", 1.0), ("b", 0.0)):
        samples = [{"record": vqa_record(n, abs(score - n % 2), cluster=f"i{n // 4}")} for n in range(16)]
        write_run(tmp_path / model, model, {"culturalvqa": samples})
    [test] = report_of(tmp_path).comparisons
    assert test.clusters == 4
    assert test.test == "sign flips"


def test_groups_have_their_own_items_coverage_and_samples(report):
    found = {(each.row, each.group): each for each in report.groups if each.dimension == "country"}
    assert (found["e1", "china"].value, found["e2", "china"].value) == (0.0, 0.5)
    assert (found["e2", "usa"].n, found["e2", "usa"].coverage) == (1, 0.5)
    cell = found["e1", "india"]
    assert cell.where == (("country", "india"),)
    [run] = cell.runs
    places = report.samples.rows(run, cell.where).places
    assert [sample.item for sample in report.samples.read(run, places)] == ["q2", "q6"]
    assert [sample.place for sample in report.samples.read(run, places[1:])] == [places[1]]
    assert not [*report.samples.rows("nobody").places, *report.samples.read("nobody")]
    sample = next(report.samples.read(run))
    assert (sample.question, sample.response) == ("question 0?", "an answer")
    assert (sample.score, sample.outcome, sample.groups) == (1.0, "scored", {"country": "brazil", "facet": "food"})


def test_every_benchmark_weighs_the_same_in_the_mean(tmp_path):
    care = [care_sample(n, 10.0) for n in range(4)]
    vqa, blind = vqa_samples([1.0, 0.0, 1.0, 0.0]), vqa_samples([0.0] * 4)
    write_run(tmp_path, "m", {"care_zh": care, "culturalvqa": vqa, "culturalvqa_blind": blind})
    row = row_of(report_of(tmp_path).tables[0])
    assert [row[key].value for key in ("care_zh", "culturalvqa", "culturalvqa_blind")] == [10.0, 0.5, 0.0]
    assert row["mean"].value == pytest.approx((100 + (50 + 0) / 2) / 2)
    assert row["mean"].low is not None  # though every rating of CARE is the same


# CEDAR: statistics that are no means


def bias_of(report, statistic, group=None, where=()):
    """The number of a group, or the numbers of all groups."""
    numbers = [number for number in report.groups if (number.statistic, number.where[:-1]) == (statistic, where)]
    found = {number.group: number.value for number in numbers}
    return found if group is None else found[group]


def test_unscored_languages_stay_empty(tmp_path):
    samples = [
        cedar_sample(str(n), language, "anger", "anger" if n % 2 else None, supported=language != "sw")
        for n in range(4)
        for language in ("ar", "sw", "zh")
    ]
    write_run(tmp_path, "m", {"cedar_text": samples})
    report = report_of(tmp_path)
    row = values_of(tables_of(report)["cedar_table_1"])
    assert (row["text_ar"], row["text_sw"], row["text_average"]) == (50.0, None, 50.0)
    assert bias_of(report, "gepp", "anger") == 0.5  # 4 predictions of anger over 8 gold labels, Swahili left out


def test_cedars_biases_by_quadrant_and_the_top_2_labels_are_tables(tmp_path):
    labels = (
        ("anger", "anger", "none"),
        ("awe", "relief", "relief"),
        ("relief", "anger", "fear"),
        ("awe", None, "none"),
    )
    samples = [
        cedar_sample(f"{n}", language, gold, prediction, minority=minority)
        for language in ("ar", "zh")
        for n, (gold, prediction, minority) in enumerate(labels)
    ]
    write_run(tmp_path, "m", {"cedar_text": samples})
    report = report_of(tmp_path, published=True)
    tables = tables_of(report)
    # Gold: 1 of 4 in quadrant II, 3 in IV. Predicted: 2 in II, 1 in IV, 1 unread.
    quadrants = rows_of(tables["cedar_text_grqb"])[0].cells
    assert [cell.value for cell in quadrants] == [0.0, 25.0, 0.0, -50.0]
    assert quadrants[3].low is not None
    by_language = {row.labels: [cell.value for cell in row.cells] for row in rows_of(tables["cedar_text_lsrqb"])}
    assert by_language == {("m", language): [0.0, 25.0, 0.0, -50.0] for language in ("Arabic", "Chinese")}
    # anger: 1 hit, 1 wrong; relief: 1 hit by the minority label, 1 missed; awe: 1 missed. F1 2/3, 2/3 and 0.
    top = tables["cedar_text_top2"]
    assert [values_of(top)[key] for key in ("ar", "zh", "all")] == pytest.approx([4 / 9] * 3)
    assert rows_of(top)[-1].labels[0] == "GPT-4o, published"
    assert values_of(top, -1)["sw"] == 0.608
    assert {"cedar_text_grqb", "cedar_text_lsrqb"} <= {t.key for t in report.tables if t.question == "biases"}


def test_every_run_of_a_repeated_question_of_cedar_counts(tmp_path):
    # Of each language: gold happiness 3, sadness 3; predicted happiness 3, anger 1, sadness 1, unread 1.
    replies = {"happiness": ("happiness", "happiness", "anger"), "sadness": ("sadness", "happiness", "I can't say.")}
    doc = {"modality": "text", "prompt_language": "en", "narrative": "", "data": "d", "question": "?"}
    doc |= {"minority": "happiness", "supported": True}
    samples = [
        {"record": scorer_of("cedar_text")(doc | {"id": gold, "gold": gold, "language": language}, said)}
        for language in ("ar", "zh")
        for gold, said in replies.items()
    ]
    write_run(tmp_path, "m", {"cedar_text": samples})
    report = report_of(tmp_path)
    whole = report.units["cedar_text"].cells["e1"]
    assert (whole.value, whole.n) == (pytest.approx(50.0), 4)  # repeats add no questions
    for bias, propensity, where in (("grqb", "gepp", ()), ("lsrqb", "lsepp", (("language", "zh"),))):
        expected = {"I": 0.0, "II": 100 / 6, "III": -100 / 3, "IV": 0.0}
        assert bias_of(report, bias, where=where) == pytest.approx(expected)
        assert bias_of(report, propensity, "sadness", where) == pytest.approx(1 / 3)
        assert bias_of(report, propensity, "happiness", where) == pytest.approx(1.0)
    tables = tables_of(report)
    # happiness: 2 hits and 1 by the second label, 1 missed: 6/7; sadness: 1 hit, 1 missed: 2/3; anger: 1 wrong: 0
    assert rows_of(tables["cedar_text_top2"])[0].cells[-1].value == pytest.approx((6 / 7 + 2 / 3) / 3)
    assert tables["cedar_table_1"].columns[-1].label == "Unparsed"
    assert rows_of(tables["cedar_table_1"])[0].cells[-1].value == pytest.approx(100 / 6)


def test_rows_that_are_no_models_are_not_ranked(tmp_path):
    task = "cedar_text_matrix"
    samples = [cedar_sample(str(n), "ja", "anger", "anger", prompt_language="en", task=task) for n in range(4)]
    for model in "ab":
        write_run(tmp_path / model, model, {task: samples})
    rows = rows_of(tables_of(report_of(tmp_path))["cedar_text_matrix"])
    assert [row.labels for row in rows] == [("a", "English"), ("b", "English")]
    for row in rows:
        assert [(cell.value, cell.rank) for cell in row.cells if cell is not None] == [(100.0, None)]


def test_sources_that_benchmarks_of_a_mean_share_are_named(tmp_path):
    right = {"score": 1.0, "runs": [{"response": "x", "outcome": "scored"}], "outcomes": {"scored": 1}}
    nepal = [
        record("culturalbench", "culturalbench_easy", "acc", item, {"country": "Nepal"}, **right) for item in "abc"
    ]
    samples = {
        "culturalbench_easy": [{"record": each} for each in nepal],
        "care_zh": [care_sample(n, 5.0) for n in (1, 2, 3)],
    }
    for model in "ab":
        write_run(tmp_path / model, model, samples)
    shared = (
        "Scores of benchmarks that share a source aren't independent: CulturalBench (CARE, CulturalBench). "
        "culture-tasks data overlap lists questions that are the same or nearly so."
    )
    tables = tables_of(report_of(tmp_path))
    assert shared in tables["summary"].notes
    assert shared in tables["countries"].notes
    write_vqa(tmp_path / "others", "a", [1.0, 0.0])
    write_run(tmp_path / "others", "a", {"care_zh": [care_sample(1, 5.0)]}, "20260102_000000")
    assert not [note for note in tables_of(report_of(tmp_path / "others"))["summary"].notes if "independent" in note]


@pytest.mark.parametrize(
    ("documents", "asked", "has_all"),
    [(40, 40, True), (50, 40, False), (41, 41, False)],
    ids=["all of its documents", "the first of them", "some are missing"],
)
def test_a_task_beside_a_subset_adds_no_error_only_if_it_was_run_whole(documents, asked, has_all, tmp_path):
    ratings = np.random.default_rng(0).uniform(4, 6, 100)
    samples = {
        "care_ar": [care_sample(n, float(ratings[n]), language="ar") for n in range(40)],
        "care_ja": [care_sample(0, 5.0, language="ja")],
        "care_zh": [care_sample(n, float(ratings[n])) for n in range(40, 100)],
    }
    drawn = {"documents": 60, "of_documents": 120, "items": 120, "spread": 1 / 120, "seed": 0}
    settings = {"output_type": "generate_until"}
    configs = {"care_ar": settings, "care_ja": settings, "care_zh": settings | {"metadata": {"subset": drawn}}}
    counts = {task: {"original": len(own), "effective": len(own)} for task, own in samples.items()}
    counts["care_ar"] = {"original": documents, "effective": asked}
    write_run(tmp_path, "toy", samples, **{"configs": configs, "n-samples": counts})
    [cell] = report_of(tmp_path).units["care"].cells.values()
    part = subset_interval(ratings[40:], None, SamplingFrame(120, 1 / 120))
    only_the_subset = 120 / 161 * (part.high - part.value)
    assert (cell.high - cell.value == pytest.approx(only_the_subset)) == has_all
    assert cell.high - cell.value >= only_the_subset - 1e-9


def test_two_models_on_one_draw_have_the_interval_of_their_difference_on_all_questions(tmp_path):
    ratings = np.random.default_rng(0).uniform(3, 7, (2, 60))
    for seed, is_same in ((0, True), (1, False)):  # the second model's draw
        for model, name in enumerate("ab"):
            drawn = {"documents": 60, "of_documents": 80, "items": 80, "spread": 1 / 60 - 1 / 80, "seed": seed * model}
            configs = {"care_zh": {"output_type": "generate_until", "metadata": {"subset": drawn}}}
            samples = {"care_zh": [care_sample(n, float(ratings[model][n])) for n in range(60)]}
            write_run(tmp_path / str(seed) / name, name, samples, configs=configs)
        [test] = report_of(tmp_path / str(seed)).comparisons
        expected = subset_interval(ratings[1] - ratings[0], None, SamplingFrame(80, 1 / 60 - 1 / 80))
        assert ((test.low, test.high) == pytest.approx((expected.low, expected.high))) == is_same
        plain = mean_interval(ratings[1] - ratings[0])
        assert (test.high - test.low == pytest.approx((plain.high - plain.low) / 2)) == is_same  # sqrt(1 - 60 / 80)


def test_a_subset_without_any_score_has_no_number_and_is_no_error(tmp_path):
    values = {metric.name: 1.0 for metric in task_named("culturalbench_hard").metrics() if metric.name != "acc"}
    read = {"runs": [{"response": "1", "outcome": "scored"}], "outcomes": {"scored": 1}, "values": values}
    samples = [
        {"record": record("culturalbench", "culturalbench_hard", "acc", f"q{n}", {"country": "China"}, **read)}
        for n in range(4)
    ]
    drawn = {"documents": 4, "of_documents": 12, "items": 12, "spread": 1 / 4 - 1 / 12, "seed": 0}
    configs = {"culturalbench_hard": {"output_type": "generate_until", "metadata": {"subset": drawn}}}
    write_run(tmp_path, "m", {"culturalbench_hard": samples}, configs=configs)
    [cell] = report_of(tmp_path).units["culturalbench_hard"].cells.values()
    assert (cell.value, cell.flags) == (None, ("subset", "unjudged"))
