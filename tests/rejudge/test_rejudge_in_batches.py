"""``culture-tasks rejudge --batch``, against a server with files, batches and their faults."""

from __future__ import annotations

import json
import shutil
from itertools import chain, count, product, repeat

import pytest
from support.batch_server import BatchServer, answered, expired, refused
from support.fault_server import fails, raw, resets, resets_midway, says
from support.judging import KEY
from support.rejudged import content, result_files, verdicts_of

from culture_tasks.cli.main import main
from culture_tasks.judges.batch import batch_endpoint, batch_judge
from culture_tasks.judges.cache import VerdictCache

pytestmark = pytest.mark.filterwarnings("ignore")

SEVEN = "Fine.\u2028Really.\x85So.\nRating: [[7]]"  # none of these separators ends a line of a batch file


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
    monkeypatch.setattr(batch_judge, "_FIRST_PAUSE", 0.01)
    yield running
    running.close()


def rejudge(results, *options):
    return main(["rejudge", str(results), "--judge", "openai:judge", "--batch", *options])


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


def sizes(server):
    return [len(server.lines(batch)) for batch in server.batches]


def assert_paid_once(server, results):
    assert len(server.worked_on) == len(set(server.worked_on)) == 10
    assert outcomes(results) == {"scored"}
    assert not list(results.rglob("judge_batches.json"))


def test_a_batch_gives_the_verdicts_that_the_endpoint_gives_at_once(server, results, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_JUDGE_DELIMITERS", "off")  # tags hold a secret of each run
    assert rejudge(results) == 0
    in_a_batch = verdicts(results)
    assert server.asked_live == 1  # the question ahead
    assert_paid_once(server, results)
    assert newest(results)["results"]["care_zh"]["care_rating,none"] == 7.0
    assert costs(results)["asked"]["verdicts"] == 10
    assert costs(results)["asked"]["batch_prompt_tokens"] == costs(results)["asked"]["prompt_tokens"] == 3000
    assert "10 verdicts asked: 3,000 + 50 tokens (3,050 in batches)" in capsys.readouterr().out
    asked = len(server.requests)
    at_once = ["rejudge", str(results), "--judge", "openai:judge"]
    assert main(at_once) == 0  # from the cache
    assert len(server.requests) == asked
    assert costs(results)["kept"]["batch_prompt_tokens"] == 3000
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(tmp_path / "other.sqlite3"))
    assert main(at_once) == 0
    for one, other in zip(in_a_batch, verdicts(results), strict=True):
        assert {**one, "discounts": None} == {**other, "discounts": None}
    sent = ([line["body"] for line in server.lines("batch_0")], [seen.body for seen in server.requests[asked + 1 :]])
    lines, bodies = (sorted(json.dumps(body, sort_keys=True) for body in part) for part in sent)
    assert lines == bodies
    assert {line["url"] for line in server.lines("batch_0")} == {"/v1/chat/completions"}


def same(body):
    return len(body["messages"]) == 2 and body["max_tokens"] < 4096


PASSING = {
    "expired": (expired, 10, same),
    "without a result": (lambda line: None, 10, same),
    "failed": (lambda line: refused(line, 500), 10, same),
    "broken off": (lambda line: answered(line, SEVEN, finish_reason="error"), 16, same),
    "unreadable": (lambda line: answered(line, "Hm."), 16, lambda body: body["messages"][-2]["content"] == "Hm."),
    "cut off": (lambda line: answered(line, "", finish_reason="length"), 16, lambda body: body["max_tokens"] == 4096),
}
"""Results that are no verdict; how many requests are charged in all; and what is sent again for them."""


@pytest.mark.parametrize(("otherwise", "charged", "again"), PASSING.values(), ids=PASSING)
def test_good_results_of_a_batch_are_kept_and_the_rest_sent_again(server, results, otherwise, charged, again):
    answers = chain([otherwise] * 6, repeat(lambda line: answered(line, SEVEN)))
    server.ending, server.answer = "expired", lambda line: next(answers)(line)
    assert rejudge(results) == 0
    assert sizes(server) == [10, 6]
    assert all(again(line["body"]) for line in server.lines("batch_1"))
    assert (outcomes(results), len(server.worked_on), server.asked_live) == ({"scored"}, charged, 1)


def test_refused_lines_say_why_and_hold_no_key_and_expired_ones_are_given_up_after_three_batches(server, results):
    answers = [
        lambda line: refused(line, 400, message=f"bad words by {KEY}", code="content_filter"),
        lambda line: refused(line, 401, message=f"key {KEY} is wrong"),
        expired,
    ]
    server.answer = lambda line: answers[len(line["body"]["messages"][1]["content"]) % 3](line)
    assert rejudge(results) == 0
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
def test_results_that_can_not_be_fetched_are_paid_for_again_only_when_told(server, results, capsys, spoil):
    work = server.work

    def work_and_spoil():
        work()
        [batch] = server.batches.values()
        file = batch["output_file_id"]
        kept.update(batch=batch, file=file, files=dict(server.files))
        spoil(server, batch)

    kept, server.work = {}, work_and_spoil
    for _ in range(2):
        assert rejudge(results) == 1
        assert "whose results can't be fetched, so they aren't sent again" in capsys.readouterr().err
    assert len(result_files(results)) == len(server.batches) == 1
    server.work = work
    told = shutil.copytree(results, results.parent / "told")
    assert rejudge(told, "--resend") == 0
    assert len(server.batches) == 2
    assert outcomes(told) == {"scored"}
    server.files |= kept["files"]
    kept["batch"]["output_file_id"] = kept["file"]
    assert rejudge(results) == 0
    assert len(server.batches) == 2
    assert outcomes(results) == {"scored"}


class Killed(BaseException):
    """A kill that no handler sees."""


STEPS = [
    *((batch_endpoint.BatchEndpoint, step) for step in ("upload", "begin", "status", "content")),
    (batch_judge.BatchJudge, "_save"),
    (VerdictCache, "put_many"),
]


@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[step for _, step in STEPS])
def test_a_command_that_is_killed_pays_for_nothing_twice(server, results, monkeypatch, owner, step):
    """Killed before and after its first and second call in turn; half of the replies have to be asked again."""

    def answer(line):
        is_first = len(line["body"]["messages"]) == 2
        return answered(line, "I can't say." if is_first and len(str(line["body"])) % 2 else SEVEN)

    server.answer = answer
    monkeypatch.setattr(batch_endpoint, "MOST_LINES", 4)
    original = getattr(owner, step)
    for call, when in product((1, 2), ("before", "after")):
        calls = count(1)

        def dies(self, *arguments, call=call, when=when, calls=calls):
            is_last = next(calls) == call
            result = original(self, *arguments) if when == "after" or not is_last else None
            if is_last:
                raise Killed
            return result

        monkeypatch.setattr(owner, step, dies)
        with pytest.raises(Killed):
            rejudge(results)
    monkeypatch.setattr(owner, step, original)
    assert rejudge(results) == 0
    assert len(server.worked_on) == len(set(server.worked_on)) > 10
    assert outcomes(results) == {"scored"}
    parts = costs(results)["asked"], costs(results)["kept"]
    assert sum(part["prompt_tokens"] for part in parts) == 300 * len(server.worked_on)


def test_a_lost_reply_to_the_beginning_of_a_batch_begins_no_second_one(server, results):
    lost = []

    def fault(seen):
        if seen.method == "POST" and seen.path == "/v1/batches" and not lost:
            lost.append(server._begin(seen))  # the endpoint has begun it, and the connection breaks
            return resets
        return None

    server.fault = fault
    assert rejudge(results) == 0
    assert sizes(server) == [10]
    assert_paid_once(server, results)


@pytest.mark.parametrize(
    ("path", "behaviour"),
    [
        ("/v1/batches", fails(500)),
        ("/v1/batches/batch_0", fails(429)),
        ("/content", resets_midway),
    ],
)
def test_passing_faults_of_every_call_are_survived(server, results, path, behaviour):
    failed = []

    def fault(seen):
        fails_now = seen.path.partition("?")[0].endswith(path) and len(failed) < 2
        failed.extend([seen] if fails_now else [])
        return behaviour if fails_now else None

    server.fault = fault
    assert rejudge(results) == 0
    assert (len(failed), sizes(server)) == (2, [10])
    assert outcomes(results) == {"scored"}


GONE = fails(404, message=f"no such thing, {KEY}")
NO_MONEY = fails(429, message="No quota", code="insufficient_quota")
UPLOAD, BEGIN = "can't upload a batch file", "can't begin a batch"
REFUSALS = {
    "no files": ("/v1/files", GONE, f"{UPLOAD}: HTTP 404 unknown model or URL: no such thing, ***"),
    "no money": ("/v1/batches", NO_MONEY, f"{BEGIN}: HTTP 429 rate limit: No"),
    "another layout": ("/v1/files", raw('{"id": 3}'), f"{UPLOAD}: the reply isn't laid out as OpenAI's"),
    "no status": ("/v1/batches/batch_0", raw("null"), "can't look at a batch"),
    "elsewhere": ("/v1/files", raw("{}", 307, {"Location": "/v1/elsewhere"}), f"{UPLOAD}: the endpoint redirects"),
}


@pytest.mark.parametrize(("path", "behaviour", "said"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_said_at_once_without_the_key_and_nothing_is_lost(server, results, path, behaviour, said, capsys):
    server.fault = lambda seen: behaviour if seen.path.partition("?")[0] == path else None
    assert rejudge(results) == 1
    error = capsys.readouterr().err
    assert said in error
    assert KEY not in error
    assert not any(seen.path == "/v1/elsewhere" for seen in server.requests)  # a key must not travel on
    server.fault = lambda seen: None
    assert rejudge(results) == 0
    assert_paid_once(server, results)


def test_a_batch_that_is_refused_as_a_whole_is_an_error_and_can_be_sent_again(server, results, capsys):
    work, message = server.work, f"Enqueued token limit reached for {KEY}"
    server.work = lambda: server.batches["batch_0"].update(status="failed", errors={"data": [{"message": message}]})
    assert rejudge(results) == 1
    assert "the endpoint refused batch batch_0: Enqueued token limit reached for ***" in capsys.readouterr().err
    server.work = work
    assert rejudge(results) == 0
    assert_paid_once(server, results)


def test_a_damaged_file_is_refused(server, results, capsys):
    (results / "judge_batches.json").write_text("{", encoding="utf-8")
    assert rejudge(results) == 1
    assert "which batches were sent: restore it" in capsys.readouterr().err


@pytest.fixture
def interrupted(server, results, monkeypatch):
    """Results whose batch was sent by a command that was killed then."""
    with monkeypatch.context() as patch:
        patch.setattr(batch_endpoint.BatchEndpoint, "status", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            rejudge(results)
    return results


def test_results_of_other_settings_are_noticed_and_not_forgotten(server, interrupted, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_JUDGE_EXTRA_BODY", '{"top_p": 0.5}')
    assert rejudge(interrupted) == 0
    assert "it lists batches of other samples, judges or settings" in capsys.readouterr().err
    assert len(server.worked_on) == 20
    monkeypatch.delenv("CULTURE_JUDGE_EXTRA_BODY")
    assert rejudge(interrupted) == 0
    assert outcomes(interrupted) == {"scored"}
    assert len(server.worked_on) == 20


def test_a_part_of_the_results_finds_the_batches_of_all(server, interrupted, capsys):
    [file] = result_files(interrupted)
    sent = state_file(interrupted)
    sent.rename(interrupted / sent.name)
    moved = shutil.copytree(file.parent, interrupted / "second")
    assert main(["rejudge", str(moved / file.name), "--judge", "lexical"]) == 0
    assert "Batches of these results were sent" in capsys.readouterr().err
    assert rejudge(moved / file.name) == 0
    assert_paid_once(server, interrupted)


def test_two_commands_at_a_time_begin_nothing_twice(server, results, monkeypatch, capsys):
    """The second one sends all between the look of the first one at what was sent and its sending."""
    original = batch_judge.BatchJudge._send

    def late(self, requests):
        with monkeypatch.context() as patch:
            patch.setattr(batch_judge.BatchJudge, "_send", original)
            patch.setattr(batch_judge.BatchJudge, "finish", lambda self: None)
            assert rejudge(results) == 0
        return original(self, requests)

    monkeypatch.setattr(batch_judge.BatchJudge, "_send", late)
    assert rejudge(results) == 1
    assert "another command has changed it" in capsys.readouterr().err
    assert sizes(server) == [10]


def test_a_budget_bounds_all_that_batches_may_have_charged(server, results, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_JUDGE_BUDGET", "20000 tokens")

    def answer(line):
        size = len(json.dumps(line["body"], ensure_ascii=False, separators=(",", ":")).encode())
        usage = {"prompt_tokens": size, "completion_tokens": 1024}  # the most that it can cost
        body = answered(line, SEVEN)["response"]["body"] | {"usage": usage}
        return {**answered(line), "response": {"status_code": 200, "body": body}}

    server.answer = answer
    assert rejudge(results) == 0
    scored = [run["outcome"] for run in verdicts(results)].count("scored")
    assert 0 < scored == len(server.worked_on) < 10
    assert sum(sum(run["tokens"]) for run in verdicts(results)) <= 20_000
    assert "requests to the judge were not sent: " in capsys.readouterr().out


def test_no_log_has_the_secrets_of_the_address(server, results, monkeypatch, caplog):
    secret = "hidden-query-value-123"
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}?code={secret}")
    with caplog.at_level("DEBUG"):
        assert rejudge(results) == 0
    assert any(secret in seen.path for seen in server.requests if "batches" in seen.path)
    assert caplog.records
    assert secret not in caplog.text
    assert KEY not in caplog.text


def test_an_unfinished_batch_is_waited_for_and_said(server, results, monkeypatch, capsys):
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            server.work()

    server.waits = True
    monkeypatch.setattr(batch_judge.time, "sleep", sleep)
    monkeypatch.setattr(batch_judge, "_FIRST_PAUSE", 40.0)
    assert rejudge(results) == 0
    assert pauses == [40.0, 60.0, 60.0]  # half as long again each time, and a minute at most
    assert capsys.readouterr().err.count("1 batches are under way, with 10 requests") == 3
    assert_paid_once(server, results)
