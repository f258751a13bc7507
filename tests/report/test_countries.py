"""One score per country over all benchmarks that ask about it: numbers, tables and heat map."""

import numpy as np
import pytest
from support.reports import figures_of, report_of, rows_of, tables_of
from support.sample_files import care_sample, cedar_sample, judged, record, vqa_record, write_run

from culture_tasks import frames
from culture_tasks.metrics.partial_pooling import ScoredItems, pooled
from culture_tasks.report.drawing import svg_images
from culture_tasks.report.model import CountryScore, Number
from culture_tasks.report.numbers.countries import mark_differences
from culture_tasks.report.numbers.overall import COMMON


def culturalvqa(country, scores):
    """Samples of CulturalVQA, with scores of 0 or 1."""
    return [
        {"record": vqa_record(n, score, country, item=f"{country} {n}", cluster=f"{country} {n}")}
        for n, score in enumerate(scores)
    ]


def right_or_wrong(benchmark, task, item, score, cluster="", **groups):
    """A sample of a task that needs no judge; the score is 0 or 1."""
    run = {"response": "A", "outcome": "scored"}
    answer = {"runs": [run], "outcomes": {"scored": 1}, "score": score, "cluster": cluster or item}
    return {"record": record(benchmark, task, "acc", item, groups, **answer)}


def cvqa(country, scores):
    """Samples of CVQA, two questions about each image."""
    return [
        right_or_wrong("cvqa", "cvqa", f"{country} {n}", score, f"{country} {n // 2}", country=country)
        for n, score in enumerate(scores)
    ]


def share(right, of):
    """So many right answers, and wrong ones."""
    return [1.0] * right + [0.0] * (of - right)


def run_of(folder, samples, model="m"):
    """The report of a model with a result file for each task, since these differ in size."""
    for task, lines in samples.items():
        write_run(folder / model / task, model, {task: lines})
    return report_of(folder)


def scores_of(report, model=""):
    """The scores of a model by the code of the country."""
    return {one.place: one for one in report.countries if not model or report.entrants[one.entrant].label == model}


def test_a_score_is_that_of_partial_pooling_over_all_benchmarks_on_the_common_scale(tmp_path):
    samples = {
        "culturalvqa": [*culturalvqa("india", share(9, 12)), *culturalvqa("brazil", share(3, 10))],
        "cvqa": [*cvqa("India", share(4, 8)), *cvqa("Mexico", share(6, 6))],
    }
    report = run_of(tmp_path, samples)
    items = ScoredItems(
        scores=100.0 * np.array([*share(9, 12), *share(3, 10), *share(4, 8), *share(6, 6)]),
        places=np.repeat([0, 1, 0, 2], [12, 10, 8, 6]),
        units=np.repeat([0, 1], [22, 14]),
        clusters=np.array([*range(22), *(100 + n // 2 for n in range(14))]),
        benchmarks=[0, 1],
    )
    found = scores_of(report)
    questions = (12 + 4, 10, 3)  # two about one image count once
    for code, expected, many in zip(("IN", "BR", "MX"), pooled(items, 3), questions, strict=True):
        own = (found[code].cell.value, found[code].cell.low, found[code].cell.high, found[code].raw)
        assert own == pytest.approx((expected.value, expected.low, expected.high, expected.raw))
        assert found[code].cell.n == many
    assert {key: (cell.value, cell.n) for key, cell in found["IN"].means.items()} == {
        "culturalvqa": (75.0, 12),
        "cvqa": (50.0, 8),
    }
    assert found["IN"].raw == 62.5  # (75 + 50) / 2
    assert found["IN"].means["cvqa"].where == (("country", "India"),)  # opens its samples


def test_a_question_that_counts_only_as_a_whole_is_one_item(tmp_path):
    """Of Bangladesh's two questions of four statements, one has a wrong statement."""
    rows = [
        right_or_wrong(
            *("culturalbench", "culturalbench_hard", f"q{question}.{n}"),
            score=float(question == 0 or n > 0),
            cluster=f"q{question}",
            country="Bangladesh",
        )
        for question in range(2)
        for n in range(4)
    ]
    [bangladesh] = scores_of(report_of(write_run(tmp_path, "m", {"culturalbench_hard": rows}))).values()
    assert (bangladesh.place, bangladesh.cell.n, bangladesh.raw) == ("BD", 2, 50.0)


def test_a_part_counts_for_its_country_and_a_group_of_countries_stands_alone(tmp_path):
    mcq = [right_or_wrong("blend", "blend_mcq", f"q{n}", 1.0, region="Assam") for n in range(4)]
    arab = [care_sample(n, 8.0, "ar") for n in range(4)]
    report = run_of(tmp_path, {"blend_mcq": mcq, "care_ar": arab})
    assert list(scores_of(report)) == ["IN", "arab"]
    table = tables_of(report)["countries"]
    assert [row.labels[0] for row in rows_of(table)] == ["India", "Arab countries"]
    assert any(note == "A part of a country counts for it: Assam for India." for note in table.notes)


def test_what_stands_out_is_marked_where_intervals_carry_it(tmp_path):
    """A is far better for India, and as good as B for Brazil; C has CVQA alone and is compared with nobody."""
    for model, right in (("A", 95), ("B", 20)):
        samples = [*culturalvqa("india", share(right, 100)), *culturalvqa("brazil", share(60, 100))]
        samples += [*culturalvqa("iran", share(58, 100)), *culturalvqa("turkey", share(62, 100))]
        write_run(tmp_path / model, model, {"culturalvqa": samples})
    write_run(tmp_path / "C", "C", {"cvqa": cvqa("India", share(100, 100))})
    report = report_of(tmp_path)
    best = {(one.entrant, one.place) for one in report.countries if one.cell.best}
    assert [(report.entrants[entrant].label, place) for entrant, place in best] == [("A", "IN")]
    assert {model: scores_of(report, model)["IN"].beside_others for model in "ABC"} == {
        "A": "above",
        "B": "below",
        "C": None,  # has no other country
    }
    notes, title = tables_of(report)["countries"].notes, {key: unit.title for key, unit in report.units.items()}
    assert f"The benchmarks of A, B: {title['culturalvqa']}." in notes
    assert f"The benchmarks of C: {title['cvqa']}." in notes
    assert any(note.startswith("Bold: no other model of A, B is") for note in notes)
    heat = figures_of(report)["countries"]
    assert "Not all models have the same benchmarks; the table says which may be compared" in heat.notes
    assert {"A, India", "B, India"} <= heat.bold
    assert len(heat.bold) == sum(one.beside_others is not None for one in report.countries) < 9


def marked(*values, model="", place=""):
    """Marks scores that reach 5 points to either side, of the same model or the same place."""
    return mark_differences(
        [
            CountryScore(
                model or f"m{at}", place or f"p{at}", Number(value, COMMON, value - 5, value + 5), value, {}, ()
            )
            for at, value in enumerate(values)
        ]
    )


def test_marks_by_hand():
    # 8 points apart, reach hypot(5, 5): p = 2 Phi(-1.96 * 8 / 7.071) = 0.027, and three times that for three models
    assert [one.cell.best for one in marked(78.0, 70.0, place="IN")] == [True, False]
    assert [one.cell.best for one in marked(78.0, 70.0, 40.0, place="IN")] == [True, True, False]
    assert not any(one.cell.best for one in marked(78.0, 70.0, 70.0, place="IN"))
    # The same p for both countries: twice that by Holm is above 0.05; at 9 points it is 0.013, and 0.025
    assert [one.beside_others for one in marked(78.0, 70.0, model="m")] == [None, None]
    assert [one.beside_others for one in marked(79.0, 70.0, model="m")] == ["above", "below"]


def test_what_can_not_take_part_is_named_with_the_reason(tmp_path):
    cedar = {"cedar_text": [cedar_sample(f"{n}", "zh", "joy", "joy") for n in range(4)]}
    report = run_of(tmp_path, cedar)
    assert report.countries == ()
    assert not {"countries", "countries_by_benchmark"} & tables_of(report).keys()
    assert "countries" not in figures_of(report)
    unread = [{"record": care_sample(n, 5.0)["record"] | judged(None)} for n in range(30)]
    report = run_of(tmp_path, {"culturalvqa": culturalvqa("india", share(3, 10)), "care_zh": unread})
    assert list(scores_of(report)) == ["IN"]
    notes, title = tables_of(report)["countries"].notes, {key: unit.title for key, unit in report.units.items()}
    assert f"Not included (it doesn't group its questions by country): {title['cedar_text']}." in notes
    assert f"Not included (no model has comparable scores of questions about one country): {title['care_zh']}." in notes


def test_one_model_and_one_country_are_enough_and_frames_have_the_numbers(tmp_path):
    path = write_run(tmp_path, "m", {"culturalvqa": culturalvqa("india", share(6, 10))})
    report = report_of(path)
    [india] = report.countries
    assert india.cell.low < india.cell.value < india.cell.high
    assert (india.raw, india.beside_others, india.cell.best) == (60.0, None, False)
    assert all(b"<svg" in svg for svg in svg_images([figures_of(report)["countries"]]))
    wide = rows_of(tables_of(report)["countries_by_benchmark"])[0]
    assert [cell and cell.value for cell in wide.cells] == [india.cell.value, 60.0, 10.0, 60.0]
    [row] = frames.countries(path).to_dict("records")
    assert (row["model"], row["place"], row["country"]) == ("m", "IN", "India")
    assert (row["value"], row["low"], row["n"], row["raw"]) == (india.cell.value, india.cell.low, 10, 60.0)
    assert (row["tasks"], row["beside_others"]) == ("culturalvqa", None)
