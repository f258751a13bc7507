"""``culture-tasks rejudge`` in batches, against a server with files, batches and their faults."""

from __future__ import annotations

import json
import shutil
from itertools import chain, repeat

import pytest
from support.batch_server import BatchServer, answered, expired, refused
from support.fault_server import fails, raw, resets, resets_midway, says
from support.judging import KEY
from support.rejudged import content, result_files, samples_of, verdicts_of

from culture_tasks.cli.main import main
from culture_tasks.judges.batch import batch_endpoint, batch_rounds
from culture_tasks.judges.batch.batch_endpoint import read_results
from culture_tasks.judges.completions import Completion
from culture_tasks.judges.endpoint.addresses import Secrets

pytestmark = pytest.mark.filterwarnings("ignore")

SEVEN = "Fine.\u2028Really.\x85So.\nRating: [[7]]"  # none of these separators ends a line of a batch file


class Killed(BaseException):
    """A kill that no handler sees."""


@pytest.fixture
def results(written, tmp_path):
    """Responses that no judge has graded."""
    written("lm_eval", folder=tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def server(monkeypatch, tmp_path):
    running = BatchServer()
    running.answer = lambda line: answered(line, SEVEN)
    running.live = lambda seen: says(SEVEN)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", running.url)
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(tmp_path / "cache" / "verdicts.sqlite3"))
    monkeypatch.setenv("CULTURE_JUDGE_PATIENCE", "20")
    monkeypatch.setattr(batch_endpoint, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(batch_rounds, "_FIRST_PAUSE", 0.01)
    yield running
    running.close()


def rejudge(results, *options):
    return main(["rejudge", str(results), "--judge", "openai:judge", *options])


def state_file(results):
    [file] = results.rglob("judge_batches.json")
    return file


def newest(results):
    return content(result_files(results)[-1])


def costs(results):
    return newest(results)["judge_costs"]["tasks"]["care_zh"]


def verdicts(results):
    return verdicts_of(result_files(results)[-1])


def outcomes(results):
    return {verdict["outcome"] for verdict in verdicts(results)}


def most(body):
    """The most tokens that a request may take: a byte each, and a whole reply."""
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) + 1024


def is_odd(line):
    """Whether a request is one of those that a test treats in another way: some of them, the same in each run."""
    return len(line["body"]["messages"][1]["content"]) % 2 == 1


def sizes(server):
    return [len(server.lines(batch)) for batch in server.batches]


def assert_paid_once(server, results):
    assert len(server.worked_on) == len(set(server.worked_on)) == 10
    assert outcomes(results) == {"scored"}


def test_a_batch_gives_the_verdicts_that_the_endpoint_gives_at_once(server, results, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_JUDGE_DELIMITERS", "off")  # tags hold a secret of each run
    assert rejudge(results, "--batch") == 0
    in_a_batch = verdicts(results)
    assert server.asked_live == 1  # the question ahead
    assert_paid_once(server, results)
    assert newest(results)["results"]["care_zh"]["care_rating,none"] == 7.0
    assert not list(results.rglob("judge_batches.json"))
    assert costs(results)["asked"]["verdicts"] == 10
    assert costs(results)["asked"]["batch_prompt_tokens"] == costs(results)["asked"]["prompt_tokens"] == 3000
    assert "10 verdicts asked: 3,000 + 50 tokens (3,050 in batches)" in capsys.readouterr().out
    asked = len(server.requests)
    assert rejudge(results) == 0  # from the cache
    assert len(server.requests) == asked
    assert costs(results)["kept"]["batch_prompt_tokens"] == 3000
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(tmp_path / "other.sqlite3"))
    assert rejudge(results) == 0
    for one, other in zip(in_a_batch, verdicts(results), strict=True):
        assert {**one, "discounts": None} == {**other, "discounts": None}
    sent = ([line["body"] for line in server.lines("batch_0")], [seen.body for seen in server.requests[asked + 1 :]])
    lines, at_once = (sorted(json.dumps(body, sort_keys=True) for body in bodies) for bodies in sent)
    assert lines == at_once
    assert {line["url"] for line in server.lines("batch_0")} == {"/v1/chat/completions"}


def test_submitted_here_and_collected_on_another_machine_in_two_rounds(server, results, tmp_path, monkeypatch, capsys):
    def live(seen):
        if "max_tokens" in seen.body:
            return fails(400, message="Unsupported parameter: 'max_tokens'", param="max_tokens")
        return says(SEVEN)

    server.live, server.waits = live, True
    server.answer = lambda line: answered(line, SEVEN if len(line["body"]["messages"]) > 2 else "no")
    for _ in range(2):  # the second time, all is on its way
        assert rejudge(results, "--submit") == 0
        assert "--collect" in capsys.readouterr().out
    assert sizes(server) == [10]
    assert all("max_completion_tokens" in line["body"] for line in server.lines("batch_0"))
    texts = [line["body"]["messages"][-1]["content"] for line in server.lines("batch_0")]
    secrets = {text.partition("<response-")[2][:12] for text in texts}
    assert not any(secret in state_file(results).read_text("utf-8") for secret in secrets)
    elsewhere = shutil.copytree(results, tmp_path / "another" / "machine")
    shutil.rmtree(results)
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(tmp_path / "another" / "verdicts.sqlite3"))
    asked_live = server.asked_live
    assert rejudge(elsewhere, "--collect") == 3
    assert "Batches not done: 1 (in progress); 0 of 0 requests" in capsys.readouterr().out
    server.work()
    assert rejudge(elsewhere, "--collect") == 3
    assert "10 requests are still open" in capsys.readouterr().out
    assert len(result_files(elsewhere)) == 1
    server.waits = False
    assert server.asked_live == asked_live
    assert rejudge(elsewhere, "--submit") == 0
    assert rejudge(elsewhere, "--collect") == 0
    assert outcomes(elsewhere) == {"scored"}
    assert costs(elsewhere)["asked"]["prompt_tokens"] == 6000  # both rounds
    assert not list(elsewhere.rglob("judge_batches.json"))
    judge = samples_of(result_files(elsewhere)[-1])[0]["record"]["judge"]
    assert set(judge["sampling"]) == {"max_completion_tokens", "temperature"}


PASSING = {
    "expired": expired,
    "without a result": lambda line: None,
    "failed": lambda line: refused(line, 500),
    "unreadable": lambda line: answered(line, "I can't say."),
    "broken off": lambda line: answered(line, SEVEN, finish_reason="error"),
    "cut off by thinking": lambda line: answered(line, "", finish_reason="length"),
}


@pytest.mark.parametrize(("result", "otherwise"), PASSING.items(), ids=PASSING)
def test_good_results_of_a_batch_are_kept_and_the_rest_sent_again(server, results, result, otherwise):
    answers = chain([otherwise] * 6, repeat(lambda line: answered(line, SEVEN)))
    server.ending, server.answer = "expired", lambda line: next(answers)(line)
    assert rejudge(results, "--batch") == 0
    assert sizes(server) == [10, 6]
    assert outcomes(results) == {"scored"}
    assert server.asked_live == 1
    again = verdicts(results)
    if result == "unreadable":
        assert all(line["body"]["messages"][-2]["content"] == "I can't say." for line in server.lines("batch_1"))
        again = [run for run in again if run.get("asked_again")]
    elif result == "broken off":
        assert len(server.worked_on) == 16
        return
    elif result == "cut off by thinking":
        assert {line["body"]["max_tokens"] for line in server.lines("batch_1")} == {4096}
        again = [run for run in again if run.get("max_tokens") == 4096]
    else:
        assert_paid_once(server, results)
        return
    assert [tuple(run["tokens"]) for run in again] == [(600, 10)] * 6


def test_lines_that_contradict_each_other_are_no_verdict(server):
    lines = [{"custom_id": name} for name in ("same", "other", "failed")]
    results = [answered(line, SEVEN) for line in (*lines, lines[0])]
    results += [answered(lines[1], "Rating: [[1]]"), answered(lines[1], SEVEN), refused(lines[2], 500)]
    content = b"".join(json.dumps(result).encode() + b"\n" for result in results)
    found, damaged = read_results(content, Secrets())
    assert [isinstance(result, Completion) for result in found.values()] == [True, False, False]
    assert {found[name].retry for name in ("other", "failed")} == {True}
    assert damaged == 0


def test_a_batch_that_counts_more_answers_than_it_has_lines_is_collected(server, results):
    server.waits = True
    assert rejudge(results, "--submit") == 0
    server.work()
    [batch] = server.batches.values()
    batch["request_counts"]["completed"] += 3
    assert rejudge(results, "--collect") == 0
    assert outcomes(results) == {"scored"}


def test_refused_lines_say_why_and_hold_no_key_and_expired_ones_are_given_up_after_three_batches(server, results):
    answers = [
        lambda line: refused(line, 400, message=f"bad words by {KEY}", code="content_filter"),
        lambda line: refused(line, 401, message=f"key {KEY} is wrong"),
        expired,
    ]
    server.answer = lambda line: answers[len(line["body"]["messages"][1]["content"]) % 3](line)
    assert rejudge(results, "--batch") == 0
    lost = [run["error"] for run in verdicts(results) if "***" not in run["error"]]
    assert sizes(server) == [10, len(lost), len(lost)]  # the others would be no better in another batch
    assert outcomes(results) == {"refused", "failed"}
    assert all("This request could not be executed" in error for error in lost)
    assert KEY not in "".join(path.read_text("utf-8") for path in results.rglob("*") if path.is_file())


SPOILT = {
    "no file": lambda server, batch: batch.update(output_file_id=None),
    "a file that is gone": lambda server, batch: server.files.pop(batch["output_file_id"]),
    "a cut file": lambda server, batch: server.files.update(
        {batch["output_file_id"]: server.files[batch["output_file_id"]][:2_000]}
    ),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_results_that_can_not_be_fetched_are_paid_for_again_only_when_told(server, results, monkeypatch, capsys, spoil):
    monkeypatch.setenv("CULTURE_JUDGE_PATIENCE", "0")
    server.waits = True
    assert rejudge(results, "--submit") == 0
    server.work()
    [batch], files = server.batches.values(), dict(server.files)
    file = batch["output_file_id"]
    spoil(server, batch)
    server.waits = False
    for option in ("--collect", "--batch", "--submit"):
        assert rejudge(results, option) == 3
        said = "10 requests are in batches that have ended and whose results can't be fetched"
        assert said in capsys.readouterr().out
    assert content(state_file(results))["batches"][0]["results"] == "not fetched"
    assert len(result_files(results)) == len(server.batches) == 1
    told = shutil.copytree(results, results.parent / "told")
    assert rejudge(told, "--batch", "--resend") == 0
    assert len(server.batches) == 2
    assert outcomes(told) == {"scored"}
    server.files |= files
    batch["output_file_id"] = file
    assert rejudge(results, "--collect") == 0
    assert len(server.batches) == 2
    assert outcomes(results) == {"scored"}


def test_files_are_split_by_the_endpoint_s_limits(server, results, monkeypatch):
    monkeypatch.setattr(batch_endpoint, "MOST_BYTES", 12_000)
    assert rejudge(results, "--batch") == 0
    files = [server.files[batch["input_file_id"]] for batch in server.batches.values()]
    assert len(files) > 2
    assert all(len(text) <= 12_000 for text in files)
    assert_paid_once(server, results)


def test_a_client_that_is_killed_pays_for_nothing_twice(server, results, monkeypatch):
    """Killed before and after each of its steps in turn, until the command gets through."""
    monkeypatch.setattr(batch_endpoint, "MOST_LINES", 4)
    done, alive = set(), {"left": 1}
    for step in ("upload", "begin", "status", "content", "find"):
        original = getattr(batch_endpoint.BatchEndpoint, step)

        def dies(self, *arguments, step=step, original=original):
            for when in ("before", "after"):
                result = original(self, *arguments) if when == "after" else None
                if (step, when) not in done and alive["left"]:
                    done.add((step, when))
                    alive["left"] -= 1
                    raise Killed
            return result

        monkeypatch.setattr(batch_endpoint.BatchEndpoint, step, dies)
    for _ in range(100):
        alive["left"] = 1
        try:
            assert rejudge(results, "--batch") == 0
            break
        except Killed:
            continue
    assert {("upload", "after"), ("begin", "before"), ("begin", "after")} <= done
    assert_paid_once(server, results)
    assert costs(results)["asked"]["prompt_tokens"] == 3000


def test_a_lost_reply_to_the_beginning_of_a_batch_begins_no_second_one(server, results):
    lost = []

    def fault(seen):
        if seen.method == "POST" and seen.path == "/v1/batches" and not lost:
            lost.append(server._begin(seen))  # the endpoint has begun it, and the connection breaks
            return resets
        return None

    server.fault = fault
    assert rejudge(results, "--batch") == 0
    assert sizes(server) == [10]
    assert len(server.worked_on) == 10


@pytest.mark.parametrize(
    ("path", "behaviour"),
    [
        ("/v1/files", resets),
        ("/v1/batches", fails(500)),
        ("/v1/batches", resets),
        ("/v1/batches/batch_0", fails(429)),
        ("/content", resets_midway),
        ("/content", fails(404)),  # results that come late
    ],
)
def test_passing_faults_of_every_call_are_survived(server, results, path, behaviour):
    failed = []

    def fault(seen):
        fails_now = seen.path.endswith(path) and len(failed) < 2
        failed.extend([seen] if fails_now else [])
        return behaviour if fails_now else None

    server.fault = fault
    assert rejudge(results, "--batch") == 0
    assert (len(failed), sizes(server)) == (2, [10])
    assert outcomes(results) == {"scored"}


GONE = fails(404, message=f"no such thing, {KEY}")
NO_MONEY = fails(429, message="No quota", code="insufficient_quota")
UPLOAD, BEGIN = "can't upload a batch file", "can't begin a batch"
REFUSALS = {
    "no files": ("/v1/files", GONE, f"{UPLOAD}: HTTP 404: no such thing, ***"),
    "no batches": ("/v1/batches", GONE, f"{BEGIN}: HTTP 404: no such thing, ***"),
    "no money": ("/v1/batches", NO_MONEY, f"{BEGIN}: HTTP 429: No"),
    "another layout": ("/v1/files", raw('{"id": 3}'), f"{UPLOAD}: the reply names nothing"),
    "no status": ("/v1/batches/batch_0", raw("null"), "can't look at a batch"),
    "elsewhere": ("/v1/files", raw("{}", 307, {"Location": "/v1/elsewhere"}), f"{UPLOAD}: HTTP 307"),
}


@pytest.mark.parametrize(("path", "behaviour", "said"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_said_at_once_without_the_key_and_nothing_is_lost(server, results, path, behaviour, said, capsys):
    server.fault = lambda seen: behaviour if seen.path == path else None
    assert rejudge(results, "--batch") == 1
    error = capsys.readouterr().err
    assert said in error
    assert KEY not in error
    assert sum(seen.path == path and seen.method == "POST" for seen in server.requests) <= 1
    assert not any(seen.path == "/v1/elsewhere" for seen in server.requests)  # a key must not travel on
    server.fault = lambda seen: None
    assert rejudge(results, "--batch") == 0
    assert_paid_once(server, results)


def test_a_batch_that_is_refused_as_a_whole_is_an_error_and_can_be_sent_again(server, results, capsys):
    server.waits = True
    assert rejudge(results, "--submit") == 0
    message = f"Enqueued token limit reached for {KEY}"
    server.batches["batch_0"] |= {"status": "failed", "errors": {"object": "list", "data": [{"message": message}]}}
    assert rejudge(results, "--collect") == 1
    assert "the endpoint refused batch batch_0: Enqueued token limit reached for ***" in capsys.readouterr().err
    server.waits = False
    assert rejudge(results, "--batch") == 0
    assert outcomes(results) == {"scored"}


@pytest.mark.parametrize(
    ("environment", "options", "said"),
    [
        ({}, ["--judge", "lexical", "--batch"], "lexical has no batches"),
        ({}, ["--judge", "openai:a", "--judge", "openai:b", "--batch"], "batches ask one judge"),
        ({"CULTURE_JUDGE_CACHE": "off"}, ["--judge", "openai:a", "--batch"], "batches need the verdict cache"),
        ({}, ["--judge", "openai:a", "--collect"], "no batches of these results were sent"),
        ({}, ["--judge", "openai:a", "--collect", "--resend"], "--resend needs --batch or --submit"),
        (
            {"OPENAI_BASE_URL": "", "AZURE_OPENAI_ENDPOINT": "https://x.azure.com", "OPENAI_API_VERSION": "1"},
            ["--judge", "openai:a", "--batch"],
            "Azure offers batches at its OpenAI-compatible address",
        ),
    ],
)
def test_a_request_for_batches_that_can_not_be_is_refused_at_once(
    server, results, monkeypatch, capsys, environment, options, said
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["rejudge", str(results), *options]) == 1
    assert said in capsys.readouterr().err
    assert server.requests == []


def test_another_endpoint_judge_or_damaged_state_is_an_error(server, results, monkeypatch, capsys):
    server.waits = True
    rejudge(results, "--submit")
    server.work()
    assert main(["rejudge", str(results), "--judge", "openai:other", "--collect"]) == 1
    assert "was sent to the judge 'judge', and the judge now is other" in capsys.readouterr().err
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("/v1", "/v2"))
    assert rejudge(results, "--collect") == 1
    assert "and the endpoint now is" in capsys.readouterr().err
    state_file(results).write_text("{", encoding="utf-8")
    assert rejudge(results, "--collect") == 1
    assert "which batches were sent: restore it" in capsys.readouterr().err


def test_results_of_other_settings_are_noticed_and_not_forgotten(server, results, monkeypatch, capsys):
    assert rejudge(results, "--submit") == 0
    monkeypatch.setenv("CULTURE_JUDGE_EXTRA_BODY", '{"max_tokens": 77}')
    assert rejudge(results, "--collect") == 3
    assert "10 results belong to other samples or settings" in capsys.readouterr().out
    assert rejudge(results, "--batch") == 0
    assert "10 results of batches belong to other samples or settings" in capsys.readouterr().err
    assert len(server.worked_on) == 20
    monkeypatch.delenv("CULTURE_JUDGE_EXTRA_BODY")
    assert rejudge(results, "--collect") == 0
    assert outcomes(results) == {"scored"}
    assert len(server.worked_on) == 20


def test_batches_that_were_sent_with_other_paths_are_not_sent_again(server, results, capsys):
    second = shutil.copytree(results, results / "second")
    assert rejudge(results, "--submit") == 0
    sent = state_file(results)
    [file] = second.rglob("results_*.json")
    asked = len(server.requests)
    assert rejudge(file, "--submit") == 1
    assert f"were sent with other paths ({sent})" in capsys.readouterr().err
    assert len(server.requests) == asked
    rejudge(file)
    assert f"Batches of these results were sent ({sent})" in capsys.readouterr().err


def test_two_commands_at_a_time_send_nothing_twice(server, results, monkeypatch, capsys):
    """The second one sends all between the look of the first one at what was sent and its sending."""
    original = batch_rounds.BatchRounds.submit

    def late(self):
        with monkeypatch.context() as patch:
            patch.setattr(batch_rounds.BatchRounds, "submit", original)
            assert rejudge(results, "--submit") == 0
        return original(self)

    server.waits = True
    monkeypatch.setattr(batch_rounds.BatchRounds, "submit", late)
    assert rejudge(results, "--submit") == 1
    assert "another command has changed it" in capsys.readouterr().err
    assert len(server.batches) == 1


@pytest.mark.parametrize("spoilt", [None, "lost", "unusable", "uncounted"])
def test_a_budget_bounds_all_that_batches_may_have_charged(server, results, monkeypatch, capsys, spoilt):
    budget = 50_000 if spoilt else 20_000
    monkeypatch.setenv("CULTURE_JUDGE_BUDGET", f"{budget} tokens")
    monkeypatch.setenv("CULTURE_JUDGE_PATIENCE", "1")

    def answer(line):
        body = {} if spoilt == "unusable" else answered(line, SEVEN)["response"]["body"]
        full = {"prompt_tokens": most(line["body"]) - 1024, "completion_tokens": 1024}
        return {**answered(line), "response": {"status_code": 200, "body": body | {"usage": {} if spoilt else full}}}

    server.answer = answer
    if spoilt == "lost":
        original = server.put
        server.put = lambda lines: original([{**line, "custom_id": "x"} for line in lines])
    rejudge(results, "--batch")
    sent = [line["body"] for batch in server.batches for line in server.lines(batch)]
    assert sum(map(most, sent)) <= budget
    if spoilt:
        assert 10 <= len(sent) < 30
        return
    scored = [run["outcome"] for run in verdicts(results)].count("scored")
    assert 0 < scored == len(server.worked_on) < 10
    assert sum(sum(run["tokens"]) for run in verdicts(results)) <= 20_000
    assert "requests to the judge were not sent: the budget of 20,000 tokens" in capsys.readouterr().out


def test_no_log_has_the_secrets_of_the_address(server, results, monkeypatch, caplog):
    secret = "hidden-query-value-123"
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}?code={secret}")
    with caplog.at_level("DEBUG"):
        assert rejudge(results, "--batch") == 0
    assert any(secret in seen.path for seen in server.requests if "batches" in seen.path)
    assert caplog.records
    assert secret not in caplog.text
    assert KEY not in caplog.text
