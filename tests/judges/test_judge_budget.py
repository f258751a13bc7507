"""A budget: what is spent never exceeds it, what came is kept, and the message says how to go on."""

from __future__ import annotations

import json
import math

import pytest
from support.fault_server import GOOD, completion, fails, hangs, raw, resets
from support.judging import BRIEF, QUICK
from support.written_runs import write_lm_eval

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.cli.main import main
from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.endpoint.budget import forget_budgets, refused_requests, shared_budget
from culture_tasks.judges.local.in_process import InProcessJudge
from culture_tasks.settings import Settings


@pytest.fixture(autouse=True)
def new_budget():
    forget_budgets()


def costs(prompt_tokens, completion_tokens):
    body = completion(GOOD)
    body["usage"] = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return raw(json.dumps(body))


def verdicts(judge, items):
    return [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items]]


def most(seen):
    """The most tokens that a request may take: a byte each, and a whole reply."""
    return len(json.dumps(seen.body, ensure_ascii=False, separators=(",", ":")).encode()) + seen.body["max_tokens"]


@pytest.mark.parametrize("share", [1.0, 0.7, 0.1])
@pytest.mark.parametrize("concurrency", [1, 16])
def test_what_is_spent_never_exceeds_the_budget(server, judge_for, items, share, concurrency):
    spent = []

    def decide(seen):
        spent.append(int(share * most(seen)))
        return costs(spent[-1], 0)

    server.decide = decide
    judge = judge_for(judge_budget="40,000 tokens", judge_concurrency=concurrency)
    found = verdicts(judge, items(300))
    scored = [verdict for verdict in found if verdict.outcome == "scored"]
    assert sum(spent) <= 40_000
    assert sum(spent) > 40_000 - most(server.requests[0]) - 200  # and no more is left than a request might take
    assert len(scored) == len(server.requests) == len(spent)
    refused = [verdict for verdict in found if verdict.outcome == "failed"]
    assert len(scored) + len(refused) == 300
    assert all("the budget of 40,000 tokens (CULTURE_JUDGE_BUDGET) is used up" in each.error for each in refused)
    assert refused_requests().startswith(f"{len(refused)} requests to the judge were not sent: ")


def test_a_larger_budget_goes_on_where_the_smaller_one_stopped(server, judge_for, items, caplog):
    server.decide = lambda seen: costs(2000, 500)
    judge = judge_for(judge_budget="30000 tokens")
    first = [verdict.outcome for verdict in verdicts(judge, items(30))]
    judge.close()
    answered = len(server.requests)
    assert 0 < answered == first.count("scored") < 30
    [warning] = [record.getMessage() for record in caplog.records if "is used up" in record.getMessage()][:1]
    assert "raise the budget and grade the logged samples with `culture-tasks rejudge`" in warning
    forget_budgets()
    judge = judge_for(judge_budget="300000 tokens")
    assert {verdict.outcome for verdict in verdicts(judge, items(30))} == {"scored"}
    assert len(server.requests) == 30


def test_money_is_counted_by_the_file_of_prices(server, judge_for, items, tmp_path):
    prices = {"currency": "EUR", "models": {"judge": {"input": 1000, "output": 0, "cached_input": 1000}}}
    (tmp_path / "prices.json").write_text(json.dumps(prices), encoding="utf-8")
    server.decide = lambda seen: costs(1000, 100)  # 1 EUR each
    judge = judge_for(judge_budget="10 eur", judge_prices=str(tmp_path / "prices.json"))
    found = verdicts(judge, items(40))
    scored = sum(verdict.outcome == "scored" for verdict in found)
    assert 7 <= scored <= 10
    assert f"the budget of 10 EUR (CULTURE_JUDGE_BUDGET) is used up: {scored:.2f} EUR spent" in refused_requests()


@pytest.mark.parametrize(
    ("behaviour", "is_charged"),
    [(resets, True), (raw("{}"), True), (fails(500), False), (fails(400), False), (costs(0, 0), True)],
)
def test_a_request_that_may_be_charged_counts_in_full(server, judge_for, item, behaviour, is_charged):
    server.decide = lambda seen: behaviour
    judge = judge_for(judge_budget="1000000 tokens", patience=BRIEF, judge_ask_again=0)
    verdicts(judge, [item])
    budget = shared_budget(judge._settings)
    counted = sum(map(most, server.requests)) if is_charged else 0
    assert f": {counted:,} tokens spent" in budget.reason


def test_a_timeout_counts_in_full_and_no_connection_counts_nothing(server, judge_for, item):
    server.decide = lambda seen: hangs
    judge = judge_for(judge_budget="1000000 tokens", patience=BRIEF, judge_timeout=0.2)
    verdicts(judge, [item])
    assert f": {sum(map(most, server.requests)):,} tokens spent" in shared_budget(judge._settings).reason
    forget_budgets()
    judge = judge_for(judge_budget="1000000 tokens", patience=BRIEF, openai_base_url="http://127.0.0.1:9/v1")
    verdicts(judge, [item])
    assert ": 0 tokens spent" in shared_budget(judge._settings).reason


def test_ranks_share_the_budget(server, judge_for, items, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    spent = []

    def decide(seen):
        spent.append(most(seen))
        return costs(spent[-1], 0)

    server.decide = decide
    found = verdicts(judge_for(judge_budget="80000 tokens"), items(100))
    assert 10_000 < sum(spent) <= 20_000
    assert "of which this process has 1/4" in next(verdict.error for verdict in found if verdict.error)


def test_judges_of_a_process_share_the_budget(server, judge_for, items):
    server.decide = lambda seen: costs(most(seen), 0)
    first, second = judge_for(judge_budget="30000 tokens"), judge_for("other", judge_budget="30000 tokens")
    verdicts(first, items(100))
    asked = len(server.requests)
    assert {verdict.outcome for verdict in verdicts(second, items(5))} == {"failed"}
    assert len(server.requests) == asked


def test_cached_verdicts_cost_nothing(server, judge_for, items):
    server.decide = lambda seen: costs(2000, 500)
    judge = judge_for()
    verdicts(judge, items(20))
    judge.close()
    judge = judge_for(judge_budget="1 token")
    assert {verdict.outcome for verdict in verdicts(judge, items(20))} == {"scored"}
    assert refused_requests() == ""


def test_a_budget_too_small_for_the_first_question_is_said_before_inference(judge_for, item, server):
    with pytest.raises(JudgeUnreachableError, match=r"budget of 5 tokens .* Raise CULTURE_JUDGE_BUDGET"):
        judge_for(judge_budget="5 tokens").check([(LAVE, item)])
    assert server.requests == []


def test_a_judge_without_a_price_is_refused_at_once(judge_for):
    with pytest.raises(
        SettingsError, match=r"CULTURE_JUDGE_BUDGET=5 USD: the judge 'own' has no price by tokens"
    ) as said:
        judge_for("own", judge_budget="5")
    assert "CULTURE_JUDGE_PRICES=FILE" in str(said.value)
    judge_for("own", judge_budget="5000 tokens")
    judge_for("gpt-4o", judge_budget="5")


@pytest.mark.parametrize("text", ["0", "-5", "x", "5 EUR", "5 tokens USD", "", "1e3", "5$", "nan", "tokens"])
def test_amounts_that_are_none_are_refused(judge_for, text):
    with pytest.raises(SettingsError, match="expected an amount of money above 0, as 5 or 5 USD"):
        judge_for("gpt-4o", judge_budget=text)


def test_a_judge_in_this_process_takes_no_budget():
    with pytest.raises(SettingsError, match="counts no tokens"):
        InProcessJudge("hf,pretrained=x", Settings(judge_budget="5"))


@pytest.mark.filterwarnings("ignore")
def test_a_run_ends_with_the_rest_counted_and_rejudge_goes_on(
    server, tmp_path, monkeypatch, fixture_data, capsys, caplog
):
    for name, value in {
        "CULTURE_JUDGE": "openai:judge",
        "OPENAI_BASE_URL": server.url,
        "CULTURE_TASKS_DATA": str(fixture_data),
        "CULTURE_JUDGE_BUDGET": "15000 tokens",
    }.items():
        monkeypatch.setenv(name, value)

    def decide(seen):
        body = completion("Rating: [[6]]")
        body["usage"] = {"prompt_tokens": 2500, "completion_tokens": 500}
        return raw(json.dumps(body))

    server.decide = decide
    write_lm_eval(tmp_path, ["care_zh"], lambda prompt, _: prompt)
    [file] = tmp_path.rglob("results_*.json")
    row = json.loads(file.read_text(encoding="utf-8"))["results"]["care_zh"]
    assert 0 < row["care_rating_unscored,none"] < 10
    assert row["care_rating,none"] is None or math.isnan(row["care_rating,none"])
    assert "requests to the judge were not sent: the budget of 15,000 tokens" in caplog.text
    asked = len(server.requests)
    monkeypatch.setenv("CULTURE_JUDGE_BUDGET", "1000000 tokens")
    forget_budgets()
    assert main(["rejudge", str(tmp_path), "--failed-only"]) == 0
    printed = capsys.readouterr().out
    assert "6.0000" in printed
    assert "not sent" not in printed
    assert len(server.requests) - asked == row["care_rating_unscored,none"] + 1  # one question is asked ahead


def test_patience_is_of_no_use_without_money(server, judge_for, items):
    """A refused request ends at once, however patient the judge is."""
    server.decide = lambda seen: costs(most(seen), 0)
    found = verdicts(judge_for(judge_budget="9000 tokens", patience=QUICK, judge_concurrency=2), items(500))
    assert sum(verdict.outcome == "failed" for verdict in found) > 490
