"""The sentences at the top of a report: made by rules, true of the numbers, and no more certain than the tests."""

import re

import lxml.html as parsed
import numpy as np
import pytest
from support.reports import report_of
from support.sample_files import (
    COUNTRIES,
    JUDGE,
    LEXICAL,
    care_sample,
    cedar_sample,
    record,
    vqa_record,
    vqa_samples,
    write_run,
    write_vqa,
)

from culture_tasks.cli.main import main


def texts(folder, question):
    return [each.text for each in report_of(folder).findings if each.question == question]


def first_of(folder):
    """The sentences before all tables, by their question."""
    return {each.question: each for each in report_of(folder).findings if each.first}


def shares(right, size):
    """Scores of which the first are right."""
    return [1.0] * right + [0.0] * (size - right)


def write_models(folder, right, **changes):
    """Writes a run of CulturalVQA and its blind variant for each model with so many of 100 items right."""
    for model, number in right.items():
        samples = vqa_samples(shares(number, 100), **changes)
        write_run(folder / model, model, {"culturalvqa": samples, "culturalvqa_blind": samples})


def test_a_model_that_is_significantly_better_is_best_and_one_ahead_by_chance_is_not(tmp_path):
    write_models(tmp_path / "clear", {"good": 90, "bad": 20})
    mean, clear = texts(tmp_path / "clear", "best")
    assert mean.startswith("good has the highest mean (90.00 of 100, ")
    assert mean.endswith(") over the 2 columns that 2 models share, significantly above the other.")
    assert clear.startswith("Significantly best: good on CulturalVQA (0.900, ")
    assert " and CulturalVQA, question alone (0.900, " in clear
    write_models(tmp_path / "open", {"a": 51, "b": 50, "worst": 5})
    mean, clear = texts(tmp_path / "open", "best")
    assert mean.endswith("3 models share, but is not significantly different from b.")
    assert clear.startswith("No clear winner: on CulturalVQA, a (0.510, ")
    assert clear.count(" and b are not significantly different") == 2
    assert "Significantly" not in clear


def test_a_model_that_is_best_everywhere_is_named_once_and_leaders_of_some_benchmarks_by_model(tmp_path):
    def rated(rating):
        return {f"care_{code}": [care_sample(n, rating + n % 2) for n in range(40)] for code in ("ar", "ja", "zh")}

    write_models(tmp_path / "all", {"good": 90, "bad": 20})
    write_models(tmp_path / "split", {"good": 90, "bad": 20})
    for name, good, bad in (("all", 8.0, 2.0), ("split", 2.0, 8.0)):
        write_run(tmp_path / name / "c", "good", rated(good))
        write_run(tmp_path / name / "d", "bad", rated(bad))
    assert texts(tmp_path / "all", "best")[1] == "good is significantly best on all 3 benchmarks."
    split = texts(tmp_path / "split", "best")[1]
    expected = r"Significantly best: bad on CARE \(.*\); good on CulturalVQA \(.*\) and CulturalVQA, .*"
    assert re.fullmatch(expected, split)


def test_one_model_alone_is_best_of_nothing_and_models_that_share_nothing_have_no_mean(tmp_path):
    write_vqa(tmp_path / "a", "a", shares(60, 100))
    [only] = texts(tmp_path, "best")
    assert only.startswith("a was run alone: CulturalVQA 0.600, ")
    assert "best" not in only
    write_run(tmp_path / "b", "b", {"care_zh": [care_sample(n, 5.0 + n % 3) for n in range(20)]})
    assert texts(tmp_path, "best") == ["The 2 models can't be ranked by a mean: no two ran the same two benchmarks."]


def test_a_score_says_that_it_has_an_interval_or_why_not(tmp_path):
    write_run(tmp_path / "a", "a", {"care_zh": [care_sample(0, 3.0)]})
    why = "one cluster: its spread can't be known"
    assert texts(tmp_path / "a", "best") == [f"a was run alone: CARE, Chinese culture 3.00, no interval: {why}."]
    note = f"No interval: {why}, for CARE, Chinese culture of a."
    assert note in next(table for table in report_of(tmp_path / "a").tables if table.key == "summary").notes
    write_run(tmp_path / "b", "b", {"care_zh": [care_sample(n, 3.0 + n) for n in range(2)]})
    assert texts(tmp_path / "b", "best") == ["b was run alone: CARE, Chinese culture 3.50, interval 1.00 to 9.85."]


def test_a_model_under_two_settings_is_still_alone(tmp_path):
    write_run(tmp_path / "care", "a", {"care_zh": [care_sample(n, 5.0 + n % 3) for n in range(20)]})
    for stamp, version in (("20260101_000000", 1.0), ("20260102_000000", 2.0)):
        write_vqa(tmp_path / stamp, "a", shares(60, 100), stamp, versions={"culturalvqa": version})
    assert not [text for text in texts(tmp_path, "best") if "ranked by a mean" in text]
    [summary] = [table for table in report_of(tmp_path).tables if table.key == "summary"]
    assert not [note for note in summary.notes if "ranked by a mean" in note]


def test_each_models_best_and_worst_countries_are_named_where_the_tests_set_them_apart(tmp_path):
    def samples(shares_of):
        scores = [(country, float(n < share * 50)) for country, share in shares_of.items() for n in range(50)]
        return {"culturalvqa": [{"record": vqa_record(n, score, country)} for n, (country, score) in enumerate(scores)]}

    even = dict.fromkeys(COUNTRIES, 0.6)
    write_run(tmp_path / "a", "a", samples(even | {"india": 0.1, "usa": 0.95}))
    write_run(tmp_path / "b", "b", samples(even))
    told = first_of(tmp_path)["cultures"].text
    assert re.fullmatch(
        r"On a scale of 0-100, a is best for United States \(9\d\) and worst for India \(1\d\)\. "
        r"Each differs significantly from the model's other countries\. No country stands out for b\.",
        told,
    )
    open_ones = "No country stands out: for no model is one significantly above or below its other countries."
    assert first_of(tmp_path / "b")["cultures"].text == open_ones


def test_a_bias_is_named_where_it_is_certain(tmp_path):
    def answers(prediction):
        gold = ["anger"] * 10 + ["awe"] * 30
        return [cedar_sample(str(n), "ar", label, prediction(n, label)) for n, label in enumerate(gold)]

    write_run(tmp_path / "a", "a", {"cedar_text": answers(lambda n, label: "anger" if n < 35 else label)})
    write_run(tmp_path / "b", "b", {"cedar_text": answers(lambda _, label: label)})
    # awe is predicted 5 times of 30, anger 35 times of 10: the interval of the latter is wide.
    assert texts(tmp_path, "biases") == [
        "The strongest bias: a has LSEPP 0.17, interval 0.03 to 0.31 for awe (Arabic) on CEDAR, text alone, where 1 is "
        "neutral."
    ]
    assert texts(tmp_path / "b", "biases") == []


def test_a_model_that_always_chooses_the_same_label_is_named(tmp_path):
    for model, others in {"stuck": 0, "nearly": 1, "able": 3}.items():
        labels = ["anger"] * (40 - others) + ["joy"] * others
        samples = [cedar_sample(str(number), "en", "joy", label) for number, label in enumerate(labels)]
        write_run(tmp_path / model, model, {"cedar_text": samples})
    [text] = [text for text in texts(tmp_path, "biases") if "answers" in text]
    assert text == (
        "nearly answers Anger to 39 of 40 questions of cedar_text; stuck answers Anger to every question of cedar_text."
    )


def test_a_difference_by_language_is_named_where_it_is_certain(tmp_path):
    ratings = np.random.default_rng(1).integers(4, 8, size=60)
    native = [care_sample(n, float(rating)) for n, rating in enumerate(ratings)]
    english = [care_sample(n, float(rating) - 2 + n % 2) for n, rating in enumerate(ratings)]
    write_run(tmp_path, "a", {"care_zh": native, "care_en_zh": english})
    [change] = texts(tmp_path, "changes")
    assert change.startswith("The greatest difference: a is 1.50 higher (")
    assert " asked in the culture's own language than asked in English on CARE, Chinese culture for " in change


def test_a_difference_of_percents_is_in_points_and_regions_have_names(tmp_path):
    groups = {"region": "North Korea", "topic": "food", "language": "en"}
    verdict = {"runs": [{"response": "x", "outcome": "scored"}], "outcomes": {"scored": 1}}
    runs = {
        task: [
            {"sem_b": record("blend", task, "sem_b", f"q{n}", groups, score=score, **verdict)}
            for n, score in enumerate(shares(right, 100))
        ]
        for task, right in (("blend", 27), ("blend_en", 73))
    }
    write_run(tmp_path, "a", runs)
    [change] = texts(tmp_path, "changes")
    assert change.startswith("The greatest difference: a is 46.0 points lower (")
    assert " % " not in change
    assert change.endswith(" than asked in English on BLEnD, asked in the region's language for North Korea.")


def test_the_judge_is_named_with_the_command_that_checks_it(tmp_path):
    for model in "ab":
        write_vqa(tmp_path / "judged" / model, model, shares(5, 10))
        write_run(tmp_path / "lexical" / model, model, {"culturalvqa": vqa_samples(shares(5, 10), judge=LEXICAL)})
    judged, lexical = (first_of(tmp_path / name)["judges"] for name in ("judged", "lexical"))
    assert judged.text.startswith("judge-1 graded 2 of 2 scores; people haven't rated any of these responses.")
    assert judged.command == f"culture-tasks spotcheck draw {tmp_path / 'judged'} -n 100 -o sheet"
    assert lexical.text.startswith("2 of 2 scores are by text overlap, not by a judge.")
    assert lexical.command == f"culture-tasks rejudge {tmp_path / 'lexical'} --judge openai:gpt-4o"
    write_run(tmp_path / "file", "a", {}, results={"culturalvqa": {"lave,none": 0.5}})
    unknown = first_of(tmp_path / "file")["judges"]
    assert (unknown.text, unknown.command) == ("1 of 1 scores is from files that don't say who graded.", "")
    write_run(tmp_path / "rule", "a", {"cedar_text": [cedar_sample("1", "ar", "awe", "awe")]})
    rule = first_of(tmp_path / "rule")["judges"]
    assert (rule.text, rule.command) == ("No judge graded: every score follows from the replies by a fixed rule.", "")


@pytest.mark.parametrize(
    ("model", "judge", "flag"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b-instruct", "self_judged"),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", "self_judged"),
        ("Qwen/Qwen2.5-7B", "hf,pretrained=Qwen/Qwen2.5-7B,dtype=auto", "self_judged"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "meta-llama/Llama-3.3-70B", "own_family_judged"),
        ("Qwen/Qwen2.5-7B", "Qwen/QwQ-32B", "own_family_judged"),
        ("mistralai/Mistral-7B", "gpt-4o", None),
        ("org/egypt-4", "gpt-4o", None),
    ],
)
def test_a_judge_that_grades_itself_or_its_family_is_marked_and_named(tmp_path, model, judge, flag):
    write_run(tmp_path, model, {"culturalvqa": vqa_samples(shares(6, 10), judge=JUDGE | {"model": judge})})
    report = report_of(tmp_path)
    [cell] = report.units["culturalvqa"].cells.values()
    assert {"self_judged", "own_family_judged"} & set(cell.flags) == ({flag} if flag else set())
    [*said] = [each.text for each in report.findings if "favour their own" in each.text]
    words = {"self_judged": f"{model} graded itself in 1 score", None: ""}.get(
        flag, f"{judge}, a model of the same family, graded {model} in 1 score"
    )
    assert said == ([f"Judges tend to favour their own: {words}."] if words else [])


def test_a_command_with_a_hostile_path_stays_code_in_every_format(tmp_path, capsys):
    folder = tmp_path / "a`b <i> $(touch x)"
    write_vqa(folder, "a", shares(5, 10))
    assert main(["report", str(folder), "-o", str(tmp_path / "report"), "--formats", "markdown,html"]) == 0
    command = f"culture-tasks spotcheck draw '{folder}' -n 100 -o sheet"
    assert f" {command}\n" in capsys.readouterr().out
    assert f" ``{command}``\n" in (tmp_path / "report" / "report.md").read_text()
    [shown] = parsed.fromstring((tmp_path / "report" / "report.html").read_text()).xpath("//header//code/text()")
    assert shown == command


def test_what_is_missing_is_counted_with_its_reasons(tmp_path):
    for model in "ab":
        write_vqa(tmp_path / model, model, shares(40, 80))
    assert "runs" not in first_of(tmp_path)
    write_run(tmp_path / "c", "c", {"culturalvqa": vqa_samples([1.0] * 80, data={"data": "d2"})})
    write_run(tmp_path / "c2", "c", {"care_zh": [care_sample(n, 5.0) for n in range(5)]})
    (tmp_path / "a" / "results_2026-01-01T00-00-00.5.json").write_text("{")
    assert first_of(tmp_path)["runs"].text == (
        "Missing: no run for 2 of 6 pairs of model and benchmark; 1 of 4 scores is neither ranked nor tested: another "
        "revision of the data (1); 1 file couldn't be read in whole; fewer than 20 questions about 1 of 4 countries."
    )
