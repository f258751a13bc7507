"""The sentences at the top of a report: made by rules, true of the numbers, and no more certain than the tests."""

from dataclasses import replace

import numpy as np
from support.example_report import example_report
from support.sample_files import JUDGE, care_sample, cedar_sample, record, vqa_record, write_run, write_vqa

from culture_tasks.report.building import Options, build
from culture_tasks.report.html.page import write_html
from culture_tasks.report.model import Finding, Part
from culture_tasks.report.text.markdown import _sentence, write_markdown

COUNTRIES = ("brazil", "china", "india", "usa")


def said(folder, **options):
    return {finding.question: finding for finding in build([str(folder)], Options(**options)).findings}


def texts(folder, question):
    return [each.text for each in build([str(folder)], Options()).findings if each.question == question]


def shares(right, size):
    """Scores of which the first are right."""
    return [1.0] * right + [0.0] * (size - right)


def test_a_model_that_is_significantly_better_is_best(tmp_path):
    for model, right in (("good", 90), ("bad", 20)):
        vqa = [{"lave": vqa_record(n, score)} for n, score in enumerate(shares(right, 100))]
        write_run(tmp_path / model, model, {"culturalvqa": vqa, "culturalvqa_blind": vqa})
    mean, clear = texts(tmp_path, "best")
    assert mean.startswith("good has the highest mean (90.00 of 100, ")
    assert mean.endswith(") over the 2 columns that 2 models share, and the tests tell it from all others.")
    assert clear.startswith("Significantly best: good on culturalvqa (0.900, ")
    assert "; good on culturalvqa_blind (0.900, " in clear


def test_a_model_that_is_ahead_by_chance_is_not_called_best(tmp_path):
    for model, right in (("a", 51), ("b", 50), ("worst", 5)):
        vqa = [{"lave": vqa_record(n, score)} for n, score in enumerate(shares(right, 100))]
        write_run(tmp_path / model, model, {"culturalvqa": vqa, "culturalvqa_blind": vqa})
    mean, clear = texts(tmp_path, "best")
    assert mean.endswith("3 models share, but the tests don't tell it from b.")
    assert clear.startswith("No clear winner: a on culturalvqa (0.510, ")
    assert clear.count(" is not told apart from b") == 2
    assert "Significantly" not in clear


def test_one_model_alone_is_best_of_nothing(tmp_path):
    write_vqa(tmp_path, "alone", shares(60, 100))
    [only] = texts(tmp_path, "best")
    assert only.startswith("alone was run alone: culturalvqa 0.600, ")
    assert "best" not in only


def test_models_that_share_nothing_have_no_mean(tmp_path):
    write_vqa(tmp_path / "a", "a", shares(60, 100))
    write_run(tmp_path / "b", "b", {"care_zh": [care_sample(n, 5.0 + n % 3) for n in range(20)]})
    assert texts(tmp_path, "best") == ["No mean ranks the 2 models: no two of them share two benchmarks."]


def _by_country(shares_of, size=50):
    scores = [(country, float(n < share * size)) for country, share in shares_of.items() for n in range(size)]
    return [{"lave": vqa_record(n, score, country)} for n, (country, score) in enumerate(scores)]


def test_the_weakest_culture_is_named_with_its_distance(tmp_path):
    even = dict.fromkeys(COUNTRIES, 0.8)
    write_run(tmp_path / "a", "a", {"culturalvqa": _by_country(even | {"india": 0.2})})
    write_run(tmp_path / "b", "b", {"culturalvqa": _by_country(even)})
    [weakest] = texts(tmp_path, "cultures")
    assert weakest.startswith("The weakest culture of a is India on culturalvqa (0.200, ")
    assert weakest.endswith(
        ", 0.450 under its mean there; it is the weakest, significantly below the others together, "
        "for 1 of the 2 models that ran it."
    )


def test_a_culture_of_few_items_is_never_named(tmp_path):
    samples = _by_country(dict.fromkeys(COUNTRIES, 1.0)) + [
        {"lave": vqa_record(900 + n, 0.0, "iran")} for n in range(6)
    ]
    write_run(tmp_path, "a", {"culturalvqa": samples})
    assert texts(tmp_path, "cultures") == ["No culture is significantly below the others for any model."]


def test_a_bias_is_named_where_it_is_certain(tmp_path):
    def answers(prediction):
        gold = ["anger"] * 10 + ["awe"] * 30
        return [cedar_sample(str(n), "ar", label, prediction(n, label)) for n, label in enumerate(gold)]

    write_run(tmp_path / "a", "a", {"cedar_text": answers(lambda n, label: "anger" if n < 35 else label)})
    write_run(tmp_path / "b", "b", {"cedar_text": answers(lambda _, label: label)})
    # awe is predicted 5 times of 30, anger 35 times of 10: the interval of the latter is wide.
    assert texts(tmp_path, "biases") == [
        "The strongest bias: a has LSEPP 0.17, 0.03 to 0.31 for awe (Arabic) on cedar_text, where 1 is neutral."
    ]
    assert texts(tmp_path / "b", "biases") == []


def test_a_difference_by_language_is_named_where_it_is_certain(tmp_path):
    ratings = np.random.default_rng(1).integers(4, 8, size=60)
    native = [care_sample(n, float(rating)) for n, rating in enumerate(ratings)]
    english = [care_sample(n, float(rating) - 2 + n % 2) for n, rating in enumerate(ratings)]
    write_run(tmp_path, "a", {"care_zh": native, "care_en_zh": english})
    [change] = texts(tmp_path, "changes")
    assert change.startswith("The greatest difference: a is 1.50 higher (")
    assert " asked in the culture's own language than asked in English on care_zh for " in change


def blend(region, task, scores):
    groups = {"region": region, "topic": "food", "language": "en"}
    samples = [record("blend", task, "sem_b", f"q{n}", groups, score=score) for n, score in enumerate(scores)]
    return {
        task: [
            {"sem_b": each | {"runs": [{"response": "x", "outcome": "scored"}], "outcomes": {"scored": 1}}}
            for each in samples
        ]
    }


def test_a_difference_of_percents_is_in_points_and_regions_have_names(tmp_path):
    native, english = shares(27, 100), shares(73, 100)
    runs = blend("North Korea", "blend_north_korea", native) | blend("North Korea", "blend_en_north_korea", english)
    write_run(tmp_path, "a", runs)
    [change] = texts(tmp_path, "changes")
    assert change.startswith("The greatest difference: a is 46.0 points lower (")
    assert " % " not in change
    assert change.endswith(" than asked in English on blend_north_korea for North Korea.")


def test_a_summary_has_one_count_of_models(tmp_path):
    """Model a was run under two settings, so that there are three rows of two models."""
    even = dict.fromkeys(COUNTRIES, 0.8)
    for model, low, stamp, judge in (
        ("a", 0.2, "1", {}),
        ("a", 0.2, "2", {"judge": JUDGE | {"model": "x"}}),
        ("b", 0.8, "1", {}),
    ):
        samples = [{"lave": each["lave"] | judge} for each in _by_country(even | {"india": low})]
        runs = {"culturalvqa": samples, "culturalvqa_blind": samples}
        write_run(tmp_path / f"{model}{stamp}", model, runs, f"2026010{stamp}_000000")
    report = build([str(tmp_path)], Options())
    said = " ".join(finding.text for finding in report.findings)
    assert len(report.entrants) == 3
    assert "that 2 models share" in said
    assert " for 1 of the 2 models that ran it." in said
    [summary] = [table for table in report.tables if table.key == "summary"]
    assert any("which all 2 models share" in note for note in summary.notes)
    assert not any(" rows share" in note for note in summary.notes)


def test_scores_that_take_no_part_are_counted_with_the_reasons(tmp_path):
    for model in "ab":
        write_vqa(tmp_path / model, model, shares(5, 10))
    write_run(
        tmp_path / "c", "c", {"culturalvqa": [{"lave": vqa_record(n, 1.0, data={"data": "d2"})} for n in range(10)]}
    )
    assert texts(tmp_path, "runs") == ["1 of 3 scores is neither ranked nor tested: another revision of the data (1)."]


def test_scores_by_text_overlap_are_said_to_be_no_judges(tmp_path):
    for model in "ab":
        samples = [{"lave_lexical": vqa_record(n, score)} for n, score in enumerate(shares(5, 10))]
        write_run(tmp_path / model, model, {"culturalvqa": samples})
    assert texts(tmp_path, "runs") == ["2 of 2 scores are by text overlap, not by a judge."]


HOSTILE = "<script>x</script> **bold** [a](b) \u202e|"


def test_names_in_findings_stay_names(tmp_path):
    finding = Finding("best", (Part(HOSTILE, is_name=True), Part(" is best (1.0).")))
    report = replace(example_report(("m",)), findings=(finding,))
    assert finding.text == f"{HOSTILE} is best (1.0)."
    [path] = write_markdown(report, tmp_path)
    line = next(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("- "))
    assert line == r"- **\<script\>x\</script\> \*\*bold\*\* \[a\](b) \|** is best (1.0)."
    write_html(report, tmp_path / "report.html", figures=False)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (
        '<li><bdi dir="auto">&lt;script&gt;x&lt;/script&gt; **bold** [a](b) \u202e|</bdi> is best (1.0).</li>' in page
    )


def test_a_space_between_two_names_stays_in_markdown():
    parts = (Part("a*b", is_name=True), Part(" "), Part("c", is_name=True), Part(" is best. "))
    assert _sentence(Finding("best", parts)) == "**a\\*b** **c** is best. "
