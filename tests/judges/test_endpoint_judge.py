"""Faults to survive, one by one and mixed, against a real server on loopback."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter

import pytest
from support.fault_server import (
    GOOD,
    completion,
    drips,
    fails,
    hangs,
    late,
    raw,
    resets,
    resets_midway,
    says,
)
from support.judging import BRIEF

from culture_tasks.benchmarks.care.rubrics import LITERACY as CARE
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge

PASSING = {
    "429 without Retry-After": fails(429),
    "429 with Retry-After": fails(429, {"Retry-After": "0.05"}),
    "429 with Retry-After-Ms": fails(429, {"Retry-After-Ms": "20"}),
    "429 with reset headers": fails(429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "30ms"}),
    "408": fails(408),
    "409": fails(409),
    "500": fails(500),
    "500 with an HTML page": raw("<html><h1>Oops</h1></html>", 500),
    "503": fails(503),
    "529": fails(529),
    "reset before a reply": resets,
    "reset in the middle of a body": resets_midway,
    "empty body": raw(""),
    "invalid JSON": raw('{"choices": [{"message"'),
    "missing choices": raw('{"id": "x", "choices": []}'),
    "choices of a wrong type": raw('{"choices": "none"}'),
    "null": raw("null"),
    "empty content": says(""),
    "blank content": says("  \n"),
    "null content": says(None),
}

LASTING = {
    "401": (401, "wrong or missing key"),
    "403": (403, "not allowed"),
    "404": (404, "unknown model or URL"),
    "422": (422, "HTTP 422"),
    "400": (400, "bad request"),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_passing_fault_costs_one_more_request(server, judge_for, item, fault):
    server.script(fault, says())
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.score, verdict.attempts) == ("scored", 2.0, 2)
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_lasting_fault_is_counted_as_failed_when_patience_ends(server, judge_for, item, fault):
    server.script(fault)
    verdict = judge_for(patience=BRIEF).submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.score, verdict.attempts) == ("failed", None, len(server.requests))
    assert verdict.attempts > 1
    assert "0.2 s at most (CULTURE_JUDGE_PATIENCE)" in verdict.error
    assert "\n" not in verdict.error


@pytest.mark.parametrize(("status", "meaning"), LASTING.values(), ids=LASTING.keys())
def test_other_errors_fail_at_once(server, judge_for, item, status, meaning):
    server.script(fails(status))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.attempts) == ("failed", 1)
    assert meaning in verdict.error
    assert "something is wrong" in verdict.error


STRAY = {
    "redirect": raw("", 307, {"Location": "http://127.0.0.1:9/"}),
    "error page": raw("<html>Not found</html>", 404),
    "page": raw("<html>Welcome</html>"),
    "over-long body": raw(b"x" * 3_000_000),
    "unknown encoding": raw(b"x", headers={"Content-Encoding": "br"}),
}


@pytest.mark.parametrize("stray", STRAY.values(), ids=STRAY)
def test_a_stray_reply_between_good_ones_costs_one_more_request(server, judge_for, items, stray):
    server.script(says(), stray, says())
    judge = judge_for(judge_concurrency=1)
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(3)]]
    assert {verdict.outcome for verdict in verdicts} == {"scored"}
    assert len(server.requests) == 4


def test_a_request_that_alone_is_turned_away_is_asked_three_times_while_others_are_answered(server, judge_for, items):
    turned_away = raw("", 307, {"Location": "http://127.0.0.1:9/"})
    server.decide = lambda seen: turned_away if "dish 9?" in seen.text else late(0.02, says())
    judge = judge_for(judge_concurrency=1)
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(40)]]
    assert [verdict.outcome for verdict in verdicts].count("failed") == 1
    assert (verdicts[9].outcome, verdicts[9].attempts) == ("failed", 3)
    assert "redirects elsewhere" in verdicts[9].error


def test_an_endpoint_that_turns_everything_away_is_not_asked_on_and_on(server, judge_for, items):
    server.script(says(), raw("<html>Forbidden</html>", 403))
    judge = judge_for(judge_concurrency=1)
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(20)]]
    assert Counter(verdict.outcome for verdict in verdicts) == {"scored": 1, "failed": 19}
    assert len(server.requests) == 1 + 2 * 19


@pytest.mark.parametrize("fault", [hangs, drips], ids=["time-out", "slow drip"])
def test_every_call_has_a_timeout(server, judge_for, item, fault):
    server.script(fault, says())
    verdict = judge_for(judge_timeout=0.3).submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.attempts) == ("scored", 2)


def test_nobody_listens(server, judge_for, item):
    judge = judge_for(patience=BRIEF, openai_base_url="http://127.0.0.1:9/v1")
    verdict = judge.submit(LAVE, item).verdict()
    assert verdict.outcome == "failed"
    assert verdict.attempts > 1
    assert "no reply" in verdict.error


def test_patience_is_a_setting(server, settings_for, item):
    server.script(fails(500))
    judge = EndpointJudge("judge", settings_for(judge_patience=0.0))
    verdict = judge.submit(LAVE, item).verdict()
    judge.close()
    assert (verdict.outcome, verdict.attempts) == ("failed", 2)
    assert "the judge waits 0 s at most (CULTURE_JUDGE_PATIENCE). Its last reply: HTTP 500" in verdict.error


def test_used_up_quota_fails_at_once(server, judge_for, item):
    server.script(fails(429, code="insufficient_quota"))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.attempts) == ("failed", 1)


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_beyond_the_patience_ends_all_requests_at_once(server, judge_for, items, status):
    server.script(fails(status, {"Retry-After": "3600"}))
    judge = judge_for(judge_concurrency=4)
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(500)]]
    assert {verdict.outcome for verdict in verdicts} == {"failed"}
    assert {verdict.attempts for verdict in verdicts} == {0, 1}
    assert all("left alone for 3600 s" in verdict.error for verdict in verdicts)
    assert len(server.requests) <= 4


@pytest.mark.parametrize(
    "reply",
    [
        says("I can't rate this.", "content_filter"),
        says(None, refusal="I'm sorry, I can't help with that."),
        fails(400, code="content_filter"),
        fails(400, code="", innererror={"code": "ResponsibleAIPolicyViolation"}),
    ],
    ids=["finish reason", "refusal field", "code", "Azure's inner code"],
)
def test_content_filter_is_a_refusal_and_is_not_kept(server, judge_for, item, reply):
    server.script(reply)
    judge = judge_for()
    verdict = judge.submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.score, verdict.attempts) == ("refused", None, 1)
    judge.submit(LAVE, item).verdict()
    assert len(server.requests) == 2


@pytest.mark.parametrize("text", ["rating=1, because", "The response says rating=2 and", "rating=2", "The answer is"])
def test_a_cut_off_reply_is_no_verdict(server, judge_for, item, text):
    server.script(says(text, "length"))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.attempts, verdict.asked_again) == ("unparsable", 2, True)
    assert "cut off" in verdict.error


def test_a_cut_off_reply_is_asked_again(server, judge_for, item):
    server.script(says("rating=1, but", "length"), says("rating=2"))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.asked_again, verdict.attempts) == (2.0, True, 2)
    assert judge_for().submit(LAVE, item).verdict().score == 2.0


def test_each_reply_is_read_on_its_own(server, judge_for, item):
    server.script(says("rating=1. The candidate tried to inject 'rating=2'."), says("rating=1"))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.asked_again) == (1.0, True)


def test_an_unreadable_reply_is_asked_again_with_a_reminder(server, judge_for, item):
    server.script(says("Looks right to me."), says("rating=2"))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.asked_again, verdict.attempts) == (2.0, True, 2)
    assert (verdict.usage.prompt_tokens, verdict.usage.completion_tokens) == (20, 10)
    first, second = (request.body["messages"] for request in server.requests)
    assert second[: len(first)] == first
    assert second[len(first) :] == LAVE.reminder_messages("Looks right to me.")


@pytest.mark.parametrize("times", [0, 1, 3])
def test_asking_again_is_bounded(server, judge_for, item, times):
    server.script(says("no idea"))
    verdict = judge_for(judge_ask_again=times).submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.completion) == ("unparsable", "no idea")
    assert len(server.requests) == 1 + times


def test_a_failure_when_asked_again_is_a_failure(server, judge_for, item):
    server.script(says("no idea"), fails(401))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.asked_again) == ("failed", True)


def test_a_wrong_model_name_in_the_reply_is_recorded(server, judge_for, item):
    server.script(says(model="judge-2024"))
    assert judge_for().submit(LAVE, item).verdict().reply_model == "judge-2024"


def test_content_in_parts_is_read(server, judge_for, item):
    server.script(says([{"type": "text", "text": "rating"}, {"type": "text", "text": "=2"}]))
    assert judge_for().submit(LAVE, item).verdict().completion == "rating=2"


def test_redirects_are_not_followed(server, judge_for, item):
    server.script(raw("", 307, {"Location": f"{server.url}/elsewhere"}))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.attempts) == ("failed", 1)
    assert len(server.requests) == 1


def test_unstorable_replies_are_cleaned(server, judge_for, item):
    server.script(raw('{"choices": [{"message": {"content": "a\\ud800b\\u0000c rating=2"}}]}'))
    judge = judge_for()
    first = judge.submit(LAVE, item).verdict()
    again = judge.submit(LAVE, item).verdict()
    assert first.completion == again.completion == "a\ufffdb\ufffdc rating=2"
    assert again.cached


def test_identical_requests_in_flight_are_asked_once(server, judge_for, item):
    server.script(late(0.2, says()))
    judge = judge_for()
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for _ in range(50)]]
    assert len(server.requests) == 1
    assert {verdict.score for verdict in verdicts} == {2.0}
    assert sum(verdict.attempts for verdict in verdicts) == 1


def test_identical_requests_that_are_asked_again_stay_together(server, judge_for, item):
    server.script(late(0.1, says("hm")), late(0.1, says()))
    judge = judge_for()
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for _ in range(20)]]
    assert len(server.requests) == 2
    assert {(verdict.score, verdict.asked_again) for verdict in verdicts} == {(2.0, True)}


def test_identical_requests_of_two_judges_are_asked_once(server, judge_for, item):
    first, second = judge_for(), judge_for()
    assert first.submit(LAVE, item).verdict().attempts == 1
    assert second.submit(LAVE, item).verdict().cached
    assert len(server.requests) == 1


def test_without_a_cache_file_a_process_still_asks_once(server, judge_for, item):
    judge = judge_for(judge_cache="off")
    assert judge.submit(LAVE, item).verdict().attempts == 1
    assert judge.submit(LAVE, item).verdict().cached
    assert len(server.requests) == 1


def test_requests_in_flight_are_bounded(server, judge_for, items):
    server.decide = lambda seen: late(0.02, says())
    judge = judge_for(judge_concurrency=7)
    tickets = [judge.submit(LAVE, item) for item in items(60)]
    assert {ticket.verdict().outcome for ticket in tickets} == {"scored"}
    assert server.most_at_once == 7


def test_a_rate_limit_stops_all_requests_for_a_while(server, judge_for, items):
    server.script(fails(429, {"Retry-After": "0.3"}), says())
    judge = judge_for(judge_concurrency=1)
    tickets = [judge.submit(LAVE, item) for item in items(3)]
    assert {ticket.verdict().outcome for ticket in tickets} == {"scored"}
    assert len(server.requests) == 4


def test_sampling_and_identity(server, judge_for, item):
    judge = judge_for()
    verdict = judge.submit(CARE, item).verdict()
    identity = judge.identity(CARE)
    body = server.requests[0].body
    assert {name: body[name] for name in identity.sampling} == dict(CARE.sampling)
    assert (identity.model, verdict.endpoint, body["model"]) == ("judge", server.url, "judge")
    assert identity.json["delimiters"] is True
    assert identity.json["sampling"] == dict(CARE.sampling)
    assert judge.identity(CARE) != judge_for(judge_delimiters="off").identity(CARE)
    assert judge.identity(CARE) == judge_for(openai_base_url="http://elsewhere:8001/v1").identity(CARE)


def test_parameters_that_a_model_refuses_are_adapted_once(server, judge_for, items):
    def decide(seen):
        if "max_tokens" in seen.body:
            return fails(
                400,
                code="unsupported_parameter",
                param="max_tokens",
                message="Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
            )
        if "temperature" in seen.body:
            return fails(400, code="unsupported_value", message="'temperature' does not support 0.0 with this model.")
        return says()

    server.decide = decide
    judge = judge_for(judge_concurrency=1)
    verdicts = [judge.submit(LAVE, item).verdict() for item in items(3)]
    assert [verdict.attempts for verdict in verdicts] == [3, 1, 1]
    assert dict(judge.identity(LAVE).sampling) == {"max_completion_tokens": 512}
    judge.close()
    warm = judge_for(judge_concurrency=1)
    assert warm.submit(LAVE, items(1)[0]).verdict().cached
    assert dict(warm.identity(LAVE).sampling) == {"max_completion_tokens": 512}


def test_a_closed_judge_leaves_nobody_waiting(server, judge_for, items):
    server.script(hangs)
    judge = judge_for(judge_concurrency=2)
    tickets = [judge.submit(LAVE, item) for item in items(300)]
    judge.close()
    assert {ticket.verdict().outcome for ticket in tickets} == {"failed"}


def test_replies_on_their_way_when_a_judge_is_closed_are_kept(server, judge_for, items):
    arrived = threading.Semaphore(0)

    def decide(seen):
        arrived.release()
        return late(0.1, says())

    server.decide = decide
    judge = judge_for(judge_concurrency=3)
    tickets = [judge.submit(LAVE, item) for item in items(50)]
    for _ in range(3):
        arrived.acquire()
    judge.close()
    outcomes = Counter(ticket.verdict().outcome for ticket in tickets)
    assert outcomes == {"scored": 3, "failed": 47}
    again = judge_for(judge_concurrency=3)
    verdicts = [ticket.verdict() for ticket in [again.submit(LAVE, item) for item in items(50)]]
    assert sum(verdict.cached for verdict in verdicts) == 3
    assert len(server.requests) == 50


def test_a_dead_endpoint_is_given_up(server, judge_for, items):
    server.script(fails(500))
    judge = judge_for(patience=BRIEF, judge_concurrency=4)
    tickets = [judge.submit(LAVE, item) for item in items(500)]
    assert {ticket.verdict().outcome for ticket in tickets} == {"failed"}
    assert len(server.requests) < 100


@pytest.mark.slow
def test_thirty_percent_faults_over_two_thousand_requests(server, judge_for, items):
    chance = random.Random(7)
    faults = [*PASSING.values(), says("Rating: 2"), says("x", "content_filter"), says("The", "length"), hangs, drips]

    def decide(seen):
        return chance.choice(faults) if chance.random() < 0.3 else says(json.dumps({"echo": "{rating}"}) + " " + GOOD)

    server.decide = decide
    judge = judge_for(judge_timeout=1.0, judge_concurrency=64)
    tickets = [judge.submit(LAVE, item) for item in items(2000)]
    verdicts = [ticket.verdict() for ticket in tickets]
    asked = {seen.body["messages"][1]["content"] for seen in server.requests}
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    assert sum(outcomes.values()) == len(asked) == 2000
    assert {verdict.score for verdict in verdicts if verdict.outcome == "scored"} == {2.0}
    assert outcomes["scored"] > 1900


def test_completion_is_what_the_endpoint_sends():
    assert completion("x")["choices"][0]["message"]["content"] == "x"
