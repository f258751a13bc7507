"""What runs took: read from the files of both harnesses, summed by hand here, and missing where a file doesn't say."""

import json

import pytest
from support.sample_files import JUDGE, care_sample, cedar_sample, vqa_record, write_run

from culture_tasks.cli.main import main
from culture_tasks.costs.prices import Price, Prices, list_prices
from culture_tasks.report.building import Options, build

SECONDS = {"total_evaluation_time_seconds": "90.5"}
PRICES = Prices(
    currency="EUR",
    models={
        "org/a": Price(input=100.0, output=1000.0),
        "org/b*": Price(hour=36.0),
        "judge-1": Price(input=1000.0, output=10_000.0),
    },
)


def vqa(number, tokens=(3, 2), counts=({"input_tokens": 10, "output_tokens": 5},), response="four"):
    """A sample whose judge read 3 tokens and wrote 2, and whose model read 10 and wrote 5."""
    run = {"response": response, "outcome": "scored", "rating": 1.0, "tokens": list(tokens)}
    return {"lave": vqa_record(number, 1.0, runs=[run]), "token_counts": list(counts)}


def costs(folder, prices=None):
    """The rows of the table: cells by column, by model and benchmark."""
    report = build([str(folder)], Options(prices=prices))
    [table] = [table for table in report.tables if table.key == "costs"]
    names = [column.key for column in table.columns]
    return {row.labels: dict(zip(names, (cell.value for cell in row.cells), strict=True)) for row in table.rows}, table


def test_the_costs_of_a_run_are_summed(tmp_path):
    write_run(tmp_path, "org/a", {"culturalvqa": [vqa(0), vqa(1, response="eleven")]}, **SECONDS)
    rows, _ = costs(tmp_path)
    assert rows == {
        ("org/a", "culturalvqa"): {
            "responses": 2.0,
            "tokens_in": 20.0,
            "tokens_out": 10.0,
            "characters": 5.0,  # (4 + 6) / 2
            "judge_tokens_in": 6.0,
            "judge_tokens_out": 4.0,
            "seconds": 90.5,
        }
    }


@pytest.mark.parametrize(
    ("counts", "tokens_in", "tokens_out"),
    [
        ([None], None, None),
        ([], None, None),
        ([{"output_tokens": 5}], None, 10.0),
        ([{"input_tokens": 1, "output_tokens": 2}, {"input_tokens": 3, "output_tokens": 4}], 14.0, 11.0),
    ],
)
def test_tokens_that_one_sample_does_not_say_are_missing(tmp_path, counts, tokens_in, tokens_out):
    write_run(tmp_path, "org/a", {"culturalvqa": [vqa(0), vqa(1, counts=counts)]})
    rows, _ = costs(tmp_path)
    row = rows["org/a", "culturalvqa"]
    assert (row["tokens_in"], row["tokens_out"], row["seconds"]) == (tokens_in, tokens_out, None)


def test_tokens_that_the_harness_does_not_log_are_read_from_the_record(tmp_path):
    """lmms-eval logs none where a response is a list."""
    samples = [vqa(0, counts=[None]), vqa(1, counts=[])]
    for sample in samples:
        sample["lave"]["facts"] = {"input_tokens": 4, "output_tokens": 3}
    write_run(tmp_path, "org/a", {"culturalvqa": samples})
    rows, _ = costs(tmp_path)
    row = rows["org/a", "culturalvqa"]
    assert (row["tokens_in"], row["tokens_out"]) == (8.0, 6.0)


def test_a_judge_without_tokens_has_none(tmp_path):
    """Text overlap, and judges whose endpoint doesn't count, write zeros."""
    write_run(tmp_path, "org/a", {"culturalvqa": [vqa(0, tokens=(0, 0))]})
    write_run(tmp_path / "b", "org/b", {"cedar_text": [cedar_sample("1", "en", "anger", "anger")]})
    rows, _ = costs(tmp_path)
    assert {row["judge_tokens_in"] for row in rows.values()} == {None}


def test_seconds_of_several_benchmarks_stand_beside_all_of_them(tmp_path):
    samples = {"culturalvqa": [vqa(0)], "care_zh": [care_sample(0, 5.0)], "care_ja": [care_sample(1, 5.0, "ja")]}
    write_run(tmp_path, "org/a", samples, **SECONDS)
    rows, _ = costs(tmp_path)
    assert {name: row["seconds"] for (_, name), row in rows.items()} == {
        "care": None,
        "culturalvqa": None,
        "all": 90.5,
    }
    assert rows["org/a", "care"]["responses"] == 2.0
    assert rows["org/a", "all"]["responses"] == 3.0
    assert rows["org/a", "all"]["tokens_in"] is None  # CARE's aren't known


def test_a_new_grading_does_not_take_the_time_twice(tmp_path):
    write_run(tmp_path, "org/a", {"culturalvqa": [vqa(0)], "care_zh": [care_sample(0, 5.0)]}, **SECONDS)
    config = {"model": "x", "model_args": "", "rejudged_from": "20260101_000000_results.json"}
    write_run(tmp_path, "org/a", {"care_zh": [care_sample(0, 7.0)]}, "20260105_000000", config=config, **SECONDS)
    rows, _ = costs(tmp_path)
    assert rows["org/a", "all"]["seconds"] == 90.5


def test_money_is_by_tokens_or_by_the_hour(tmp_path):
    for model in ("org/a", "org/b", "org/c"):
        write_run(tmp_path / model, model, {"culturalvqa": [vqa(n) for n in range(1000)]}, **SECONDS)
    rows, table = costs(tmp_path, PRICES)
    # org/a: 10,000 tokens at 100 and 5,000 at 1,000 a million; org/b: 90.5 s at 36 an hour; the judge: 3,000 at 1,000
    # and 2,000 at 10,000 a million.
    assert rows["org/a", "culturalvqa"]["model_money"] == pytest.approx(1.0 + 5.0)
    assert rows["org/b", "culturalvqa"]["model_money"] == pytest.approx(0.905)
    assert rows["org/c", "culturalvqa"]["model_money"] is None
    assert [row["judge_money"] for row in rows.values()] == pytest.approx([3.0 + 20.0] * 3)
    assert [column.label for column in table.columns[-2:]] == ["Model, EUR", "Judge, EUR"]
    assert table.notes[-1] == "Without a price: org/c."


def test_discounts_and_kept_verdicts_count(tmp_path):
    dear = Prices(currency="EUR", models={"judge-1": Price(input=1e6, output=2e6, cached_input=5e5, batch=0.5)})
    samples = [vqa(0), vqa(1), vqa(2), vqa(3)]
    samples[1]["lave"]["runs"][0]["discounts"] = {"cached_tokens": 2}
    samples[2]["lave"]["runs"][0]["discounts"] = {"batch_prompt_tokens": 3, "batch_completion_tokens": 2}
    samples[3]["lave"]["runs"][0]["kept"] = True
    write_run(tmp_path, "org/a", {"culturalvqa": samples})
    rows, table = costs(tmp_path, dear)
    row = rows["org/a", "culturalvqa"]
    # 3 + 2 * 2 = 7 each; two tokens at half of 1: 6; a batch at half the price: 3.5
    assert row["judge_money"] == pytest.approx(7.0 + 6.0 + 3.5 + 7.0)
    assert row["judge_money_kept"] == pytest.approx(7.0)
    assert (row["judge_tokens_in"], row["judge_tokens_out"], row["judge_tokens_kept"]) == (12.0, 8.0, 5.0)
    assert "model_money" in row
    assert [column.label for column in table.columns if "kept" in column.label] == [
        "Judge tokens kept",
        "Judge kept, EUR",
    ]


@pytest.mark.parametrize("discounts", [{"cached_tokens": -1}, [1]])
def test_discounts_that_make_no_sense_are_named(tmp_path, discounts):
    sample = vqa(0)
    sample["lave"]["runs"][0]["discounts"] = discounts
    write_run(tmp_path, "org/a", {"culturalvqa": [sample, vqa(1)]})
    report = build([str(tmp_path)], Options())
    assert [run.items for run in report.runs.values()] == [1]


def test_the_command_knows_the_list_prices_and_says_of_when(tmp_path, monkeypatch):
    samples = [vqa(0, tokens=(1_000_000, 100_000))]
    samples[0]["lave"]["judge"] = JUDGE | {"model": "gpt-4o"}
    write_run(tmp_path / "a", "org/a", {"culturalvqa": samples})
    arguments = ["report", str(tmp_path / "a"), "-o", str(tmp_path / "out"), "--formats", "markdown"]
    assert main(arguments) == 0
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| org/a | culturalvqa | 1 | 10 | 5 | 4 | 1,000,000 | 100,000 | — | — | 3.50 |" in text
    assert f"Prices: {list_prices().origin}." in text
    own = {"currency": "CHF", "models": {"gpt-4o": {"input": 1, "output": 1}}}
    (tmp_path / "prices.json").write_text(json.dumps(own), encoding="utf-8")
    monkeypatch.setenv("CULTURE_JUDGE_PRICES", str(tmp_path / "prices.json"))
    assert main(arguments) == 0
    assert "Judge, CHF" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_several_judges_of_one_file_have_no_common_price(tmp_path):
    other = vqa(1)
    other["lave"]["judge"] = JUDGE | {"model": "judge-2"}
    write_run(tmp_path, "org/a", {"culturalvqa": [vqa(0), other]})
    rows, table = costs(tmp_path, PRICES)
    assert rows["org/a", "culturalvqa"]["judge_money"] is None
    assert table.notes[-1] == "Without a price: judge-2."


def test_tokens_of_a_task_of_the_harness_are_lmms_eval_s_own(tmp_path):
    counted = {"docs": 4.0, "docs_with_token_counts": 4.0, "total_input_tokens": 0.0, "total_output_tokens": 40.0}
    by_task = {"whole": counted, "part": counted | {"docs_with_token_counts": 3.0}}
    results = {"whole": {"acc,none": 0.5}, "part": {"acc,none": 0.5}}
    write_run(tmp_path, "org/a", {}, results=results, efficiency={"by_task": by_task})
    rows, _ = costs(tmp_path)
    assert {name: (row["tokens_in"], row["tokens_out"]) for (_, name), row in rows.items()} == {"whole": (None, 40.0)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("x", "Invalid JSON"),
        ("[]", "object"),
        ({"models": {}}, "currency"),
        ({"currency": "USD", "models": {"m": {"input": 1}}}, "expected 'input' and 'output', or 'hour'"),
        ({"currency": "USD", "models": {"m": {}}}, "expected 'input' and 'output', or 'hour'"),
        ({"currency": "USD", "models": {"m": {"input": -1, "output": 1}}}, "models.m.input"),
        ({"currency": "USD", "models": {"m": {"input": 1, "output": 1, "cached": 1}}}, "models.m.cached"),
    ],
)
def test_a_file_that_is_none_of_prices_is_an_error(tmp_path, capsys, content, said):
    path = tmp_path / "prices.json"
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    write_run(tmp_path / "a", "org/a", {"culturalvqa": [vqa(0)]})
    assert main(["report", str(tmp_path / "a"), "-o", str(tmp_path / "out"), "--prices", str(path)]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert '"input": 2.5' in error


def test_the_command_takes_a_file_of_prices(tmp_path):
    path = tmp_path / "prices.json"
    path.write_text(PRICES.model_dump_json(exclude_none=True), encoding="utf-8")
    write_run(tmp_path / "a", "org/a", {"culturalvqa": [vqa(n) for n in range(1000)]})
    arguments = ["report", str(tmp_path / "a"), "-o", str(tmp_path / "out"), "--formats", "markdown"]
    assert main([*arguments, "--prices", str(path)]) == 0
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| org/a | culturalvqa | 1,000 | 10,000 | 5,000 | 4 | 3,000 | 2,000 | — | 6.00 | 23.00 |" in text
