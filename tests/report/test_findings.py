"""The sentences at the top of a report: made by rules, true of the numbers, and no more certain than the tests."""

import re

import lxml.html as parsed
import pytest
from support.reports import report_of
from support.sample_files import (
    COUNTRIES,
    JUDGE,
    LEXICAL,
    care_sample,
    cedar_sample,
    vqa_record,
    vqa_samples,
    write_run,
    write_vqa,
)

from culture_tasks.cli.main import main


def found(folder):
    """The sentences by the question that they answer, which has one at most."""
    return {each.question: each for each in report_of(folder).findings}


def best(folder):
    return found(folder)["best"].text


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
    assert best(tmp_path / "clear").startswith("good has the highest mean (90.00 of 100, interval ")
    assert best(tmp_path / "clear").endswith(
        ") over the 2 columns that 2 models share, significantly better than the other."
    )
    write_models(tmp_path / "open", {"a": 51, "b": 50, "worst": 5})
    assert best(tmp_path / "open").endswith("3 models share, but not significantly different from b.")
    write_models(tmp_path / "level", {"a": 50, "b": 50, "worst": 5})
    assert re.fullmatch(
        r"a and b have the highest mean \(50.00 .*\) over .* 3 models share\.", best(tmp_path / "level")
    )


def test_without_a_mean_each_benchmark_has_its_leader_and_one_model_alone_is_best_of_nothing(tmp_path):
    write_vqa(tmp_path / "a", "a", shares(60, 100))
    assert best(tmp_path).startswith("a was run alone: CulturalVQA 0.600, ")
    write_run(tmp_path / "b", "b", {"care_zh": [care_sample(n, 5.0 + n % 3) for n in range(20)]})
    assert (
        best(tmp_path)
        == "The 2 models can't be ranked by a mean: no two have comparable scores on the same two benchmarks."
    )
    write_vqa(tmp_path / "c", "c", shares(20, 100))
    assert re.fullmatch(
        r"The 3 models can't be ranked by a mean: no two have comparable scores on the same two benchmarks\. "
        r"a is first on CulturalVQA \(0\.600, interval .*\), significantly better than the other\.",
        best(tmp_path),
    )
    write_vqa(tmp_path / "d", "d", shares(60, 100))
    assert ". a and d are first on CulturalVQA (0.600, interval " in best(tmp_path)


def test_a_score_says_that_it_has_an_interval_or_why_not(tmp_path):
    write_run(tmp_path / "a", "a", {"care_zh": [care_sample(0, 3.0)]})
    why = "one cluster: its spread can't be known"
    assert best(tmp_path / "a") == f"a was run alone: CARE, Chinese culture 3.00, no interval: {why}."
    note = f"No interval: {why}, for CARE, Chinese culture of a."
    assert note in next(table for table in report_of(tmp_path / "a").tables if table.key == "summary").notes
    write_run(tmp_path / "b", "b", {"care_zh": [care_sample(n, 3.0 + n) for n in range(2)]})
    assert best(tmp_path / "b") == "b was run alone: CARE, Chinese culture 3.50, interval 1.00 to 9.85."


def test_a_model_under_two_settings_is_still_alone(tmp_path):
    write_run(tmp_path / "care", "a", {"care_zh": [care_sample(n, 5.0 + n % 3) for n in range(20)]})
    for stamp, version in (("20260101_000000", 1.0), ("20260102_000000", 2.0)):
        write_vqa(tmp_path / stamp, "a", shares(60, 100), stamp, versions={"culturalvqa": version})
    assert "best" not in found(tmp_path)
    [summary] = [table for table in report_of(tmp_path).tables if table.key == "summary"]
    assert not [note for note in summary.notes if "ranked by a mean" in note]


def test_each_models_best_and_worst_countries_are_named_where_the_tests_set_them_apart(tmp_path):
    def samples(shares_of):
        scores = [(country, float(n < share * 50)) for country, share in shares_of.items() for n in range(50)]
        return {"culturalvqa": [{"record": vqa_record(n, score, country)} for n, (country, score) in enumerate(scores)]}

    even = dict.fromkeys(COUNTRIES, 0.6)
    write_run(tmp_path / "a", "a", samples(even | {"india": 0.1, "usa": 0.95}))
    write_run(tmp_path / "b", "b", samples(even))
    told = found(tmp_path)["cultures"].text
    assert re.fullmatch(
        r"On a scale of 0-100, a is best for United States \(9\d\) and worst for India \(1\d\)\. "
        r"Each differs significantly from the model's other countries\. No country stands out for b\.",
        told,
    )
    assert found(tmp_path / "b")["cultures"].text == "No country stands out for b."


def test_the_judge_is_named_with_the_command_that_checks_it(tmp_path):
    for model in "ab":
        write_vqa(tmp_path / "judged" / model, model, shares(5, 10))
        write_run(tmp_path / "lexical" / model, model, {"culturalvqa": vqa_samples(shares(5, 10), judge=LEXICAL)})
    judged, lexical = (found(tmp_path / name)["judges"] for name in ("judged", "lexical"))
    assert judged.text.startswith("judge-1 graded 2 of 2 scores; people haven't rated any of these responses.")
    assert judged.command == f"culture-tasks spotcheck draw {tmp_path / 'judged'} -n 100 -o sheet"
    assert lexical.text.startswith("2 of 2 scores are by text overlap, not by a judge.")
    assert lexical.command == f"culture-tasks rejudge {tmp_path / 'lexical'} --judge openai:gpt-4o"
    write_run(tmp_path / "file", "a", {}, results={"culturalvqa": {"lave,none": 0.5}})
    unknown = found(tmp_path / "file")["judges"]
    assert (unknown.text, unknown.command) == ("1 of 1 scores is from files that don't name the judge.", "")
    write_run(tmp_path / "rule", "a", {"cedar_text": [cedar_sample("1", "ar", "awe", "awe")]})
    rule = found(tmp_path / "rule")["judges"]
    assert (rule.text, rule.command) == ("No judge graded: every score follows from the replies by a fixed rule.", "")


@pytest.mark.parametrize(
    ("model", "judge", "is_marked"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b-instruct", True),
        ("Qwen/Qwen2.5-7B", "hf,pretrained=Qwen/Qwen2.5-7B,dtype=auto", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "meta-llama/Llama-3.3-70B", True),
        ("org/egypt-4", "gpt-4o", False),
    ],
)
def test_a_judge_that_grades_itself_or_its_family_is_marked_and_named(tmp_path, model, judge, is_marked):
    write_run(tmp_path, model, {"culturalvqa": vqa_samples(shares(6, 10), judge=JUDGE | {"model": judge})})
    report = report_of(tmp_path)
    [cell] = report.units["culturalvqa"].cells.values()
    assert ("self_judged" in cell.flags) == is_marked
    favoured = "the judge of {} is the model itself or of its family, which judges tend to favour"
    assert (favoured.format(model) in found(tmp_path)["judges"].text) == is_marked


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
    assert "runs" not in found(tmp_path)
    write_run(tmp_path / "c", "c", {"culturalvqa": vqa_samples([1.0] * 80, data={"data": "d2"})})
    write_run(tmp_path / "c2", "c", {"care_zh": [care_sample(n, 5.0) for n in range(5)]})
    (tmp_path / "a" / "results_2026-01-01T00-00-00.5.json").write_text("{")
    assert found(tmp_path)["runs"].text == (
        "Missing: no run for 2 of 6 pairs of model and benchmark; 1 of 4 scores is neither ranked nor tested: another "
        "revision of the data, or another limit on the number of items (1); 1 file couldn't be read in whole; "
        "fewer than 20 questions about 1 of 4 countries."
    )
