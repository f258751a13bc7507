"""Numbers that a paper sets side by side, and their paired differences, by hand-worked values."""

import pytest
from support.sample_files import JUDGE, care_sample, crosscult_sample, write_run

from culture_tasks.report.building import Options, build
from culture_tasks.report.figures.selecting import charts

NORMS, LITERACY = "norms", "literacy"


def care(scores, language="zh", first=0, **changes):
    """Samples of CARE, the first half about norms, the second about literacy."""
    categories = [NORMS if at < len(scores) / 2 else LITERACY for at in range(len(scores))]
    return [
        care_sample(first + at, score, language, category, **changes)
        for at, (score, category) in enumerate(zip(scores, categories, strict=True))
    ]


def by_group(report):
    return {
        (report.entrants[each.entrant].label, each.statistic, each.group, len(each.second.where)): each
        for each in report.contrasts
    }


def table(report, key):
    [found] = [table for table in report.tables if table.key == key]
    return found


NATIVE = [8.0, 9.0, 7.0, 3.0, 4.0, 5.0]
ENGLISH = [6.0, 8.0, 7.0, 5.0, 4.0, 3.0]


def test_asked_natively_and_in_english_is_paired_by_item(tmp_path):
    write_run(tmp_path / "a", "m", {"care_zh": care(NATIVE)})
    write_run(tmp_path / "b", "m", {"care_en_zh": list(reversed(care(ENGLISH)))})
    found = by_group(build([str(tmp_path)], Options()))
    assert {group for _, _, group, _ in found} == {"zh", NORMS, LITERACY}
    norms = found["m", "score", NORMS, 2]
    assert (norms.kind, norms.first.value, norms.second.value) == ("language", 7.0, 8.0)
    # differences 2, 1, 0: mean 1, sd 1, se 0.577, t(2) = 4.303
    assert norms.difference.value == 1.0
    assert norms.difference.low == pytest.approx(1.0 - 4.3027 / 3**0.5, abs=1e-3)
    assert norms.difference.high == pytest.approx(1.0 + 4.3027 / 3**0.5, abs=1e-3)
    assert found["m", "score", "zh", 1].difference.value == pytest.approx((2 + 1 + 0 - 2 + 0 + 2) / 6)
    assert norms.difference.rank is None


def test_only_items_that_both_answered_make_the_difference(tmp_path):
    write_run(tmp_path / "a", "m", {"care_zh": care(NATIVE)})
    write_run(tmp_path / "b", "m", {"care_en_zh": care(ENGLISH[1:5], first=1)}, limit=4)
    contrast = by_group(build([str(tmp_path)], Options()))["m", "score", "zh", 1]
    assert contrast.difference.n == 4
    assert contrast.difference.value == pytest.approx((1 + 0 - 2 + 0) / 4)
    write_run(tmp_path / "b", "m", {"care_en_zh": care(ENGLISH, first=100)})
    contrast = by_group(build([str(tmp_path)], Options()))["m", "score", NORMS, 2]
    assert (contrast.difference.value, contrast.difference.note) == (None, "no items in common")


def test_another_judge_gives_no_difference_unless_it_is_insisted_on(tmp_path):
    write_run(tmp_path / "a", "m", {"care_zh": care(NATIVE)})
    write_run(tmp_path / "b", "m", {"care_en_zh": care(ENGLISH, judge=JUDGE | {"model": "judge-2"})})
    for anyway, expected in ((False, None), (True, 1.0)):
        contrast = by_group(build([str(tmp_path)], Options(compare_anyway=anyway)))["m", "score", NORMS, 2]
        assert contrast.difference.flags == ("other_judge",)
        assert contrast.difference.value == expected
        assert (contrast.first.value, contrast.second.value) == (7.0, 8.0)


def test_one_language_alone_or_another_prompt_is_no_contrast(tmp_path):
    write_run(tmp_path / "a", "m", {"care_zh": care(NATIVE), "care_cot_zh": care(NATIVE)})
    write_run(tmp_path / "b", "m", {"care_en_ja": care(ENGLISH, "ja")})
    report = build([str(tmp_path)], Options())
    assert report.contrasts == ()
    assert not any(table.key == "care_languages" for table in report.tables)


def test_care_has_a_row_for_each_model_and_culture_and_a_panel(tmp_path):
    for model in ("a", "b"):
        samples = {"care_zh": care(NATIVE), "care_en_zh": care(ENGLISH)}
        samples |= {"care_ja": care(NATIVE, "ja"), "care_en_ja": care(ENGLISH, "ja")}
        write_run(tmp_path / model, model, samples)
    report = build([str(tmp_path)], Options())
    found = table(report, "care_languages")
    assert [row.labels for row in found.rows] == [
        *(("a", "judge-1", "Japanese"), ("b", "judge-1", "Japanese")),
        *(("a", "judge-1", "Chinese"), ("b", "judge-1", "Chinese")),
    ]
    columns = [(column.over, column.label) for column in found.columns]
    assert columns[:3] == [("All", "English"), ("All", "Native"), ("All", "Difference")]
    assert [over for over, _ in columns[3::3]] == ["Norms", "Literacy"]
    assert [cell.value for cell in found.rows[0].cells[3:6]] == [7.0, 8.0, 1.0]
    [chart] = [chart for chart in charts(report) if chart.key == "care_languages"]
    assert [panel.title for panel in chart.panels] == ["a · Japanese", "a · Chinese", "b · Japanese", "b · Chinese"]
    assert chart.panels[0].groups == ("Norms", "Literacy")


def edited(folder, name, samples, method, **changes):
    arguments = {"model": "knowledge_insertion", "model_args": f"pretrained=org/m,method={method}"}
    task = {"crosscult_single_reliability": samples}
    return write_run(folder / name, "org/m", task, config=arguments, **changes)


def reliability(*scores):
    """Samples of reliability, the first half for Chinese; ROUGE-L is ten times the score."""
    half = len(scores) // 2
    return [
        crosscult_sample(number % half, score, 10.0 * score, "zh" if number < half else "ar")
        for number, score in enumerate(scores)
    ]


def test_an_insertion_is_set_beside_the_same_model_without_it(tmp_path):
    write_run(tmp_path / "other", "org/other", {"crosscult_single_reliability": reliability(0, 0, 0, 0, 0, 0)})
    edited(tmp_path, "mcki", reliability(5, 5, 5, 5, 5, 9), "mcki")
    assert build([str(tmp_path)], Options()).contrasts == ()
    edited(tmp_path, "base", reliability(1, 2, 3, 4, 5, 6), "base")
    found = by_group(build([str(tmp_path)], Options()))
    assert {label for label, *_ in found} == {"org/m + mcki"}
    assert {group for _, _, group, _ in found} == {"reliability", "social", "religious", "ethical", "zh", "ar"}
    chinese = found["org/m + mcki", "score", "zh", 2]
    # differences 4, 3, 2 of three scenarios: mean 3, sd 1
    assert (chinese.kind, chinese.first.value, chinese.second.value) == ("insertion", 2.0, 5.0)
    assert chinese.difference.value == 3.0
    assert chinese.difference.high == pytest.approx(3.0 + 4.3027 / 3**0.5, abs=1e-3)
    # social: items 0 of both languages, which share a scenario, so that there is one cluster and no interval
    social = found["org/m + mcki", "score", "social", 2].difference
    assert (social.value, social.low, social.n) == (pytest.approx((4 + 1) / 2), None, 2)
    assert found["org/m + mcki", "rouge_l", "zh", 2].difference.value == 30.0


def test_insertions_have_a_table_and_a_figure_for_each_score(tmp_path):
    edited(tmp_path, "base", reliability(1, 2, 3, 4, 5, 6), "base")
    edited(tmp_path, "mcki", reliability(5, 5, 5, 5, 5, 9), "mcki")
    edited(tmp_path, "ike", reliability(2, 3, 4, 5, 6, 7), "ike")
    report = build([str(tmp_path)], Options())
    found = table(report, "crosscult_insertion")
    assert [row.labels for row in found.rows] == [("org/m", "IKE", "judge-1"), ("org/m", "MCKI", "judge-1")]
    overs = [column.over for column in found.columns[::3]]
    assert overs == ["All", "Social", "Religious", "Ethical", "Chinese", "Arabic"]
    assert [cell.value for cell in found.rows[0].cells[12:15]] == [2.0, 3.0, 1.0]
    assert table(report, "crosscult_insertion_rouge_l").rows[0].cells[14].value == 10.0
    drawn = {chart.key: chart for chart in charts(report)}
    for key in ("crosscult_insertion", "crosscult_insertion_rouge_l"):
        assert [panel.title for panel in drawn[key].panels] == ["org/m + mcki", "org/m + ike"]
        assert drawn[key].panels[0].groups == ("Social", "Religious", "Ethical", "Chinese", "Arabic")


def test_an_ordinary_run_is_a_base_too_and_the_comparable_one_is_taken(tmp_path):
    write_run(tmp_path / "plain", "org/m", {"crosscult_single_reliability": reliability(1, 2, 3, 4, 5, 6)})
    edited(tmp_path, "mcki", reliability(5, 5, 5, 5, 5, 9), "mcki")
    contrast = by_group(build([str(tmp_path)], Options()))["org/m + mcki", "score", "zh", 2]
    assert (contrast.first.value, contrast.difference.value) == (2.0, 3.0)
    edited(tmp_path, "base", reliability(3, 3, 3, 3, 3, 3), "base", versions={"crosscult_single_reliability": 2.0})
    again = by_group(build([str(tmp_path)], Options()))["org/m + mcki", "score", "zh", 2]
    assert (again.first.value, again.difference.flags) == (2.0, ())


def test_of_other_roles_and_topics_that_only_the_base_has_there_is_no_contrast(tmp_path):
    numbers = {"base": (0, 1), "mcki": (0,)}
    for method, own in numbers.items():
        edited(tmp_path, method, [crosscult_sample(number, 5.0, 50.0) for number in own], method)
    samples = {
        f"crosscult_single_{role}": [crosscult_sample(number, 9.0, 90.0, role=role) for number in (0, 1)]
        for role in ("generality", "cross_language_locality", "cross_scenario_locality")
    }
    arguments = {"model": "knowledge_insertion", "model_args": "pretrained=org/m,method=mcki"}
    write_run(tmp_path / "roles", "org/m", samples, config=arguments)
    report = build([str(tmp_path)], Options())
    assert "crosscult_single" in report.units
    found = by_group(report)
    assert {group for _, _, group, _ in found} == {"reliability", "social", "zh"}
    difference = found["org/m + mcki", "score", "zh", 2].difference
    assert (difference.value, difference.n, difference.flags) == (0.0, 1, ())
