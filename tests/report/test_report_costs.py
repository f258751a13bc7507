"""What runs took: read from the files of both harnesses, summed by hand here, and missing where a file doesn't say."""

import json
import re
from collections import defaultdict

import pytest
from support.reports import report_of, rows_of, tables_of, values_of
from support.sample_files import JUDGE, care_sample, vqa_record, write_run

from culture_tasks.cli.main import main
from culture_tasks.costs.prices import Price, Prices, list_prices, read_prices
from culture_tasks.errors import SettingsError

SECONDS = {"total_evaluation_time_seconds": "90.5"}
PRICES = Prices(
    currency="EUR",
    models={
        "org/a": Price(input=100.0, output=1000.0),
        "org/b*": Price(hour=36.0),
        "judge-1": Price(input=1000.0, output=10_000.0),
    },
)


def vqa(number, tokens=(3, 2), counts=({"input_tokens": 10, "output_tokens": 5},), response="four", **changes):
    """A sample whose judge read 3 tokens and wrote 2, and whose model read 10 and wrote 5; changes: the verdict."""
    run = {"response": response, "outcome": "scored", "rating": 1.0, "tokens": list(tokens)} | changes
    return {"record": vqa_record(number, 1.0, runs=[run]), "token_counts": list(counts)}


def judged_by(sample, model):
    sample["record"]["judge"] = JUDGE | {"model": model}
    return sample


def costs(folder, prices=None):
    """The rows of the table, numbers by column, by model and benchmark; and the table."""
    table = tables_of(report_of(folder, prices=prices))["costs"]
    return {row.labels: defaultdict(lambda: None, values_of(table, at)) for at, row in enumerate(rows_of(table))}, table


@pytest.mark.parametrize(
    ("counts", "facts", "tokens_in", "tokens_out"),
    [
        ([None], {}, None, None),
        ([{"input_tokens": 10, "output_tokens": 5}], {}, 20.0, 10.0),
        ([{"output_tokens": 5}], {}, None, 10.0),
        ([{"input_tokens": 1, "output_tokens": 2}, {"input_tokens": 3, "output_tokens": 4}], {}, 14.0, 11.0),
        ([None], {"input_tokens": 4, "output_tokens": 3}, 14.0, 8.0),  # lmms-eval logs none where a response is a list
    ],
)
def test_tokens_are_summed_and_missing_where_a_sample_does_not_say_them(tmp_path, counts, facts, tokens_in, tokens_out):
    samples = [vqa(0), vqa(1, counts=counts)]
    samples[1]["record"]["facts"] = facts
    write_run(tmp_path, "org/a", {"culturalvqa": samples})
    [row] = costs(tmp_path)[0].values()
    numbers = ("responses", "tokens_in", "tokens_out", "judge_tokens_in", "judge_tokens_out", "seconds")
    assert [row[name] for name in numbers] == [2.0, tokens_in, tokens_out, 6.0, 4.0, None]


def test_seconds_of_several_benchmarks_stand_beside_all_of_them_and_no_new_grading_adds_to_them(tmp_path):
    samples = {"culturalvqa": [vqa(0)], "care_zh": [care_sample(0, 5.0)], "care_ja": [care_sample(1, 5.0, "ja")]}
    write_run(tmp_path, "org/a", samples, **SECONDS)
    rows, _ = costs(tmp_path)
    assert {name: (row["responses"], row["seconds"]) for (_, name), row in rows.items()} == {
        "CARE": (2.0, None),
        "CulturalVQA": (1.0, None),
        "all": (3.0, 90.5),
    }
    assert rows["org/a", "all"]["tokens_in"] is None  # CARE's aren't known
    config = {"model": "x", "model_args": "", "rejudged_from": "20260101_000000_results.json"}
    write_run(tmp_path, "org/a", {"care_zh": [care_sample(0, 7.0)]}, "20260105_000000", config=config, **SECONDS)
    assert costs(tmp_path)[0]["org/a", "all"]["seconds"] == 90.5


def test_money_is_by_tokens_or_by_the_hour(tmp_path):
    for model in ("org/a", "org/b", "org/c"):
        write_run(tmp_path / model, model, {"culturalvqa": [vqa(n) for n in range(1000)]}, **SECONDS)
    rows, table = costs(tmp_path, PRICES)
    # org/a: 10,000 tokens at 100 and 5,000 at 1,000 a million; org/b: 90.5 s at 36 an hour; the judge: 3,000 at 1,000
    # and 2,000 at 10,000 a million.
    of_models = {model: row["model_money"] for (model, _), row in rows.items()}
    assert of_models == {"org/a": pytest.approx(1.0 + 5.0), "org/b": pytest.approx(0.905), "org/c": None}
    assert [row["judge_money"] for row in rows.values()] == pytest.approx([3.0 + 20.0] * 3)
    assert [column.label for column in table.columns[-2:]] == ["Model, EUR", "Judge, EUR"]
    assert table.notes[-1] == "Without a price: org/c."


def test_discounts_and_kept_verdicts_count(tmp_path):
    dear = Prices(currency="EUR", models={"judge-1": Price(input=1e6, output=2e6, cached_input=5e5, batch=0.5)})
    batch = {"batch_prompt_tokens": 3, "batch_completion_tokens": 2}
    samples = [vqa(0), vqa(1, discounts={"cached_tokens": 2}), vqa(2, discounts=batch), vqa(3, kept=True)]
    write_run(tmp_path, "org/a", {"culturalvqa": samples})
    rows, _ = costs(tmp_path, dear)
    row = rows["org/a", "CulturalVQA"]
    # 3 + 2 * 2 = 7 each; two tokens at half of 1: 6; a batch at half the price: 3.5
    assert row["judge_money"] == pytest.approx(7.0 + 6.0 + 3.5 + 7.0)
    assert (row["judge_tokens_in"], row["judge_tokens_out"], row["judge_tokens_kept"]) == (12.0, 8.0, 5.0)


def test_discounts_that_make_no_sense_leave_a_sample_out_and_several_judges_have_no_common_price(tmp_path):
    for name, discounts in (("a", {"cached_tokens": -1}), ("b", [1])):
        write_run(tmp_path / name, "org/a", {"culturalvqa": [vqa(0, discounts=discounts), vqa(1)]})
        assert [run.items for run in report_of(tmp_path / name).runs.values()] == [1]
    write_run(tmp_path / "c", "org/a", {"culturalvqa": [vqa(0), judged_by(vqa(1), "judge-2")]})
    rows, table = costs(tmp_path / "c", PRICES)
    assert rows["org/a", "CulturalVQA"]["judge_money"] is None
    assert table.notes[-1] == "Without a price: judge-2."


def test_tokens_of_a_task_of_the_harness_are_lmms_eval_s_own(tmp_path):
    counted = {"docs": 4.0, "docs_with_token_counts": 4.0, "total_input_tokens": 0.0, "total_output_tokens": 40.0}
    by_task = {"whole": counted, "part": counted | {"docs_with_token_counts": 3.0}}
    results = {"whole": {"acc,none": 0.5}, "part": {"acc,none": 0.5}}
    write_run(tmp_path, "org/a", {}, results=results, efficiency={"by_task": by_task})
    rows, _ = costs(tmp_path)
    assert {name: (row["tokens_in"], row["tokens_out"]) for (_, name), row in rows.items()} == {"whole": (None, 40.0)}


def markdown(folder, *options):
    command = ["report", str(folder / "a"), "-o", str(folder / "out"), "--formats", "markdown", *map(str, options)]
    assert main(command) == 0
    return (folder / "out" / "report.md").read_text(encoding="utf-8")


def test_the_command_knows_the_list_prices_and_takes_the_users(tmp_path, monkeypatch):
    write_run(tmp_path / "a", "org/a", {"culturalvqa": [judged_by(vqa(0, tokens=(1_000_000, 100_000)), "gpt-4o")]})
    text = markdown(tmp_path)
    assert "| org/a | CulturalVQA | 1 | 10 | 5 | 1,000,000 | 100,000 | 3.50 |" in text
    assert f"Prices: {list_prices().origin}." in text
    path = tmp_path / "prices.json"
    path.write_text('{"currency": "CHF", "models": {"gpt-4o": {"input": 1, "output": 1}}}', encoding="utf-8")
    monkeypatch.setenv("CULTURE_JUDGE_PRICES", str(path))
    assert "Judge, CHF" in markdown(tmp_path)
    write_run(tmp_path / "a", "org/a", {"culturalvqa": [vqa(n) for n in range(1000)]})
    path.write_text(PRICES.model_dump_json(exclude_none=True), encoding="utf-8")
    row = "| org/a | CulturalVQA | 1,000 | 10,000 | 5,000 | 3,000 | 2,000 | 6.00 | 23.00 |"
    assert row in markdown(tmp_path, "--prices", path)


def test_a_file_that_is_none_of_prices_is_an_error(tmp_path, capsys):
    path, usd = tmp_path / "prices.json", {"currency": "USD"}
    for content, said in (
        (None, "No such file"),
        ("x", "Invalid JSON"),
        ({"models": {}}, "currency"),
        (usd | {"models": {"m": {"input": 1}}}, "expected 'input' and 'output', or 'hour'"),
        (usd | {"models": {"m": {"input": -1, "output": 1}}}, "models.m.input"),
        (usd | {"models": {"m": {"input": 1, "output": 1, "cached": 1}}}, "models.m.cached"),
    ):
        if content is not None:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        with pytest.raises(SettingsError, match=re.escape(said)) as error:
            read_prices(path)
        assert '"input": 2.5' in str(error.value)
    write_run(tmp_path / "a", "org/a", {"culturalvqa": [vqa(0)]})
    assert main(["report", str(tmp_path / "a"), "-o", str(tmp_path / "out"), "--prices", str(path)]) == 1
    assert "models.m.cached" in capsys.readouterr().err
