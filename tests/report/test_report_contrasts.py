"""Numbers that a paper sets side by side, and their paired differences, by hand-worked values."""

import pytest
from support.reports import figures_of, report_of, rows_of, tables_of
from support.sample_files import JUDGE, care_samples, crosscult_sample, write_inserted, write_run

NORMS, LITERACY = "norms", "literacy"
T_2 = 4.3027
"""Student's t for 95 % with 2 degrees of freedom."""


def contrasts_of(folder, **options):
    report = report_of(folder, **options)
    return {
        (report.entrants[each.entrant].label, each.statistic, each.group, len(each.second.where)): each
        for each in report.contrasts
    }


NATIVE = [8.0, 9.0, 7.0, 3.0, 4.0, 5.0]
ENGLISH = [6.0, 8.0, 7.0, 5.0, 4.0, 3.0]


def test_asked_natively_and_in_english_is_paired_by_item(tmp_path):
    write_run(tmp_path / "a", "m", {"care_zh": care_samples(NATIVE)})
    write_run(tmp_path / "b", "m", {"care_en_zh": list(reversed(care_samples(ENGLISH)))})
    found = contrasts_of(tmp_path)
    assert {group for _, _, group, _ in found} == {"zh", NORMS, LITERACY}
    norms = found["m", "score", NORMS, 2]
    assert (norms.kind, norms.first.value, norms.second.value) == ("language", 7.0, 8.0)
    # differences 2, 1, 0: mean 1, sd 1, se 0.577
    change = norms.difference
    assert (change.value, change.rank) == (1.0, None)
    assert (change.low, change.high) == pytest.approx((1.0 - T_2 / 3**0.5, 1.0 + T_2 / 3**0.5), abs=1e-3)
    assert found["m", "score", "zh", 1].difference.value == pytest.approx((2 + 1 + 0 - 2 + 0 + 2) / 6)


def test_only_items_that_both_answered_make_the_difference(tmp_path):
    write_run(tmp_path / "a", "m", {"care_zh": care_samples(NATIVE)})
    write_run(tmp_path / "b", "m", {"care_en_zh": care_samples(ENGLISH[1:5], first=1)}, limit=4)
    difference = contrasts_of(tmp_path)["m", "score", "zh", 1].difference
    assert (difference.n, difference.value) == (4, pytest.approx((1 + 0 - 2 + 0) / 4))
    write_run(tmp_path / "b", "m", {"care_en_zh": care_samples(ENGLISH, first=100)})
    difference = contrasts_of(tmp_path)["m", "score", NORMS, 2].difference
    assert (difference.value, difference.note) == (None, "no items in common")


def test_another_judge_gives_no_difference_unless_it_is_insisted_on(tmp_path):
    write_run(tmp_path / "a", "m", {"care_zh": care_samples(NATIVE)})
    write_run(tmp_path / "b", "m", {"care_en_zh": care_samples(ENGLISH, judge=JUDGE | {"model": "judge-2"})})
    for anyway, expected in ((False, None), (True, 1.0)):
        contrast = contrasts_of(tmp_path, compare_anyway=anyway)["m", "score", NORMS, 2]
        assert (contrast.difference.flags, contrast.difference.value) == (("other_judge",), expected)
        assert (contrast.first.value, contrast.second.value) == (7.0, 8.0)


def test_care_has_a_row_for_each_model_and_culture_and_a_panel(tmp_path):
    for model in ("a", "b"):
        samples = {"care_zh": care_samples(NATIVE), "care_en_zh": care_samples(ENGLISH)}
        samples |= {"care_ja": care_samples(NATIVE, "ja"), "care_en_ja": care_samples(ENGLISH, "ja")}
        write_run(tmp_path / model, model, samples)
    report = report_of(tmp_path)
    found = tables_of(report)["care_languages"]
    labels = [(model, "judge-1", culture) for culture in ("Japanese", "Chinese") for model in "ab"]
    assert [row.labels for row in rows_of(found)] == labels
    columns = [(column.over, column.label) for column in found.columns]
    assert columns[:3] == [("All", "English"), ("All", "Native"), ("All", "Difference")]
    assert [over for over, _ in columns[3::3]] == ["Norms", "Literacy"]
    assert [cell.value for cell in rows_of(found)[0].cells[3:6]] == [7.0, 8.0, 1.0]
    panels = figures_of(report)["care_languages"].panels
    assert set(panels) == {f"{one} · {name}" for one in "ab" for name in ("Japanese", "Chinese")}
    assert {part: list(cells) for part, cells in panels["a · Japanese"].items()} == {
        "English": ["Norms", "Literacy"],
        "Native": ["Norms", "Literacy"],
    }


def edited(folder, method, scores, **changes):
    """A run of reliability, the first half for Chinese; ROUGE-L is ten times the score."""
    half = len(scores) // 2
    samples = [
        crosscult_sample(number % half, score, 10.0 * score, "zh" if number < half else "ar")
        for number, score in enumerate(scores)
    ]
    write_inserted(folder / method, "org/m", method, {"crosscult_single_reliability": samples}, **changes)


BASE, MCKI = (1, 2, 3, 4, 5, 6), (5, 5, 5, 5, 5, 9)
CHINESE = ("org/m + mcki", "score", "zh", 2)


def test_an_insertion_is_set_beside_the_same_model_without_it(tmp_path):
    samples = [crosscult_sample(number, 0.0, 0.0) for number in range(3)]
    write_run(tmp_path / "other", "org/other", {"crosscult_single_reliability": samples})
    edited(tmp_path, "mcki", MCKI)
    assert contrasts_of(tmp_path) == {}
    edited(tmp_path, "base", BASE)
    found = contrasts_of(tmp_path)
    assert {label for label, *_ in found} == {"org/m + mcki"}
    assert {group for _, _, group, _ in found} == {"reliability", "social", "religious", "ethical", "zh", "ar"}
    chinese = found[CHINESE]
    # differences 4, 3, 2 of three scenarios: mean 3, sd 1
    assert (chinese.kind, chinese.first.value, chinese.second.value) == ("insertion", 2.0, 5.0)
    assert (chinese.difference.value, chinese.difference.high) == pytest.approx((3.0, 3.0 + T_2 / 3**0.5), abs=1e-3)
    # social: items 0 of both languages, which share a scenario, so that there is one cluster and no interval
    social = found["org/m + mcki", "score", "social", 2].difference
    assert (social.value, social.low, social.n) == (pytest.approx((4 + 1) / 2), None, 2)
    assert found["org/m + mcki", "rouge_l", "zh", 2].difference.value == 30.0


def test_insertions_have_a_table_and_a_figure_for_each_score(tmp_path):
    for method, scores in {"base": BASE, "mcki": MCKI, "ike": [score + 1 for score in BASE]}.items():
        edited(tmp_path, method, scores)
    report = report_of(tmp_path)
    tables, drawn = tables_of(report), figures_of(report)
    found = tables["crosscult_insertion"]
    assert [row.labels for row in rows_of(found)] == [("org/m", "IKE", "judge-1"), ("org/m", "MCKI", "judge-1")]
    groups = ("Social", "Religious", "Ethical", "Chinese", "Arabic")
    assert [column.over for column in found.columns[::3]] == ["All", *groups]
    assert [cell.value for cell in rows_of(found)[0].cells[12:15]] == [2.0, 3.0, 1.0]
    assert rows_of(tables["crosscult_insertion_rouge_l"])[0].cells[14].value == 10.0
    for key in ("crosscult_insertion", "crosscult_insertion_rouge_l"):
        assert set(drawn[key].panels) == {"org/m + mcki", "org/m + ike"}
        assert tuple(drawn[key].panels["org/m + ike"]["Edited"]) == groups


def test_an_ordinary_run_is_a_base_too_and_the_comparable_one_is_taken(tmp_path):
    samples = [crosscult_sample(number, number + 1.0, 10.0) for number in range(3)]
    write_run(tmp_path / "plain", "org/m", {"crosscult_single_reliability": samples})
    edited(tmp_path, "mcki", MCKI)
    contrast = contrasts_of(tmp_path)[CHINESE]
    assert (contrast.first.value, contrast.difference.value) == (2.0, 3.0)
    edited(tmp_path, "base", [3] * 6, versions={"crosscult_single_reliability": 2.0})
    again = contrasts_of(tmp_path)[CHINESE]
    assert (again.first.value, again.difference.flags) == (2.0, ())


def test_of_topics_that_only_the_base_has_there_is_no_contrast(tmp_path):
    for method, numbers in {"base": (0, 1), "mcki": (0,)}.items():
        samples = [crosscult_sample(number, 5.0, 50.0) for number in numbers]
        write_inserted(tmp_path / method, "org/m", method, {"crosscult_single_reliability": samples})
    found = contrasts_of(tmp_path)
    assert {group for _, _, group, _ in found} == {"reliability", "social", "zh"}
    difference = found[CHINESE].difference
    assert (difference.value, difference.n, difference.flags) == (0.0, 1, ())
