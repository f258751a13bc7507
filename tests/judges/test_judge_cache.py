"""The verdict cache: nothing lost, nothing asked twice, nothing fatal, nothing silent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter

import pytest
from support.fault_server import fails, late, says

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.judges.cache import cache_files
from culture_tasks.judges.cache.cache_files import Row
from culture_tasks.judges.cache.verdict_cache import CacheThread, VerdictCache
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.rubric.verdicts import Usage


def row(number: int, text: str = "rating=2") -> Row:
    request = ChatRequest("http://x/v1", "judge", [{"role": "user", "content": str(number)}], {"max_tokens": 5})
    completion = Completion(text, "stop", "judge-1", Usage(3, 4), {"max_tokens": 5})
    return Row(request, "lave", completion)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "folder" / "verdicts.sqlite3"


def test_what_is_put_is_read_and_stays(file):
    rows = [row(number) for number in range(1200)]
    thread = CacheThread(file)
    for each in rows:
        thread.put([each])
    keys = [each.request.key for each in rows]
    assert len(thread.get_many(keys).result()) == 1200
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda cache: 1 // 0).result()
    unstorable = row(2000)
    unstorable.request.sample = 2**70
    thread.put([unstorable])
    thread.flush()
    thread.put([row(1, "second")])
    thread.close()
    cache = VerdictCache(file)
    assert cache.get_many([*keys, b"absent"]) == {each.request.key: (each.completion, each.created) for each in rows}
    cache.close()


def test_keys_cover_all_that_changes_the_answer():
    base = {"endpoint": "e", "model": "m", "messages": [{"role": "user", "content": "q"}], "sampling": {"t": 0}}
    others = [
        {"endpoint": "f"},
        {"model": "n"},
        {"messages": [{"role": "system", "content": "q"}]},
        {"sampling": {"t": 1}},
        {"sample": 1},
        {"place": "p"},
    ]
    keys = {ChatRequest(**{**base, **change}).key for change in [{}, *others]}
    assert len(keys) == 7
    assert {len(key) for key in keys} == {32}


def test_a_look_up_that_fails_is_not_the_end(judge_for, item, monkeypatch, caplog):
    monkeypatch.setattr(VerdictCache, "get_many", lambda self, keys: 1 // 0)
    assert judge_for().submit(LAVE, item).verdict().outcome == "scored"
    assert "could not be looked up" in caplog.text


def test_a_warm_rerun_makes_no_network_call(server, judge_for, items):
    judge = judge_for()
    asked = [(LAVE, item) for item in items(300)]
    judge.check(asked, responses_known=True)
    first = [ticket.verdict() for ticket in [judge.submit(*each) for each in asked]]
    judge.close()
    server.requests.clear()
    server.decide = lambda seen: fails(500)
    warm = judge_for()
    warm.check(asked, responses_known=True)
    second = [ticket.verdict() for ticket in [warm.submit(*each) for each in asked]]
    assert server.requests == []
    assert {(verdict.cached, verdict.attempts) for verdict in second} == {(True, 0)}
    assert [verdict.score for verdict in first] == [verdict.score for verdict in second]


def test_a_better_parser_needs_no_new_calls(server, judge_for, item):
    server.script(says("two of two"))
    assert judge_for().submit(LAVE, item).verdict().outcome == "unparsable"
    from dataclasses import replace

    from culture_tasks.judges.rubric.parsers import Reading

    better = replace(LAVE, reader=lambda reply, scale: Reading(2, reply))
    verdict = judge_for().submit(better, item).verdict()
    assert (verdict.outcome, verdict.cached) == ("scored", True)
    assert len(server.requests) == 2


UNSCORED = {
    "unparsable": says("two of two"),
    "refused": says(None, refusal="I'd rather not."),
    "failed": fails(401),
}


def outcomes(judge, items):
    return Counter(ticket.verdict().outcome for ticket in [judge.submit(LAVE, item) for item in items])


@pytest.mark.parametrize("ending", UNSCORED)
def test_the_next_run_asks_for_what_is_missing_and_for_nothing_else(server, judge_for, items, ending):
    asked, missing = items(20), {f"What is dish {number}?" for number in (3, 7, 19)}
    server.decide = lambda seen: UNSCORED[ending] if any(question in seen.text for question in missing) else says()
    judge = judge_for()
    assert outcomes(judge, asked) == {"scored": 17, ending: 3}
    judge.close()
    server.requests.clear()
    server.decide = lambda seen: says()
    assert outcomes(judge_for(), asked) == {"scored": 20}
    assert len(server.requests) == 3
    server.requests.clear()
    assert outcomes(judge_for(), asked) == {"scored": 20}
    assert server.requests == []


def test_a_verdict_that_took_a_reminder_is_kept(server, judge_for, item):
    server.script(says("hm"), says("rating=1"))
    judge_for().submit(LAVE, item).verdict()
    server.script(fails(500))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.cached, verdict.asked_again, verdict.attempts) == (1.0, True, True, 0)


def test_after_a_failed_reminder_the_reminder_alone_is_asked(server, judge_for, item):
    server.script(says("hm"), fails(401))
    assert judge_for().submit(LAVE, item).verdict().outcome == "failed"
    server.script(says("rating=1"))
    server.requests.clear()
    assert judge_for().submit(LAVE, item).verdict().score == 1.0
    assert len(server.requests) == 1
    assert "hm" in server.requests[0].text


def test_what_stays_unparsable_is_asked_once_a_run_which_begins_with_its_check(server, judge_for, item):
    server.script(says("hm"))
    for _ in range(2):
        judge = judge_for()
        server.requests.clear()
        tickets = [judge.submit(LAVE, item) for _ in range(3)]
        assert {ticket.verdict().outcome for ticket in tickets} == {"unparsable"}
        assert judge.submit(LAVE, item).verdict().outcome == "unparsable"
        assert len(server.requests) == 2
    server.script(says())
    judge.check([(LAVE, item)])
    assert judge.submit(LAVE, item).verdict().outcome == "scored"


def test_several_that_wait_for_one_fresh_verdict_share_it(server, judge_for, item):
    server.script(says("hm"))
    judge_for().submit(LAVE, item).verdict()
    server.requests.clear()
    server.decide = lambda seen: late(0.05, says())
    judge = judge_for()
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for _ in range(5)]]
    assert {verdict.outcome for verdict in verdicts} == {"scored"}
    assert len(server.requests) == 1


def test_another_query_may_be_another_model(server, judge_for, item):
    server.script(says("rating=1"), says("rating=2"))
    scores = [judge_for(openai_base_url=f"{server.url}?v={n}").submit(LAVE, item).verdict().score for n in (1, 2, 1)]
    assert scores == [1.0, 2.0, 1.0]


SCRIPT = textwrap.dedent(
    """
    import sys
    from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
    from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
    from culture_tasks.judges.rubric.verdicts import JudgeItem
    from culture_tasks.settings import Settings

    url, cache, count = sys.argv[1:]
    settings = Settings(openai_base_url=url, openai_api_key="x", judge_cache=cache, judge_concurrency=16)
    judge = EndpointJudge("judge", settings)
    items = [JudgeItem(f"What is dish {number}?", ("biryani",), "biryani") for number in range(int(count))]
    tickets = [judge.submit(LAVE, item) for item in items]
    print("submitted", flush=True)
    if __name__ == "__main__" and int(count) > 0:
        print({ticket.verdict().outcome for ticket in tickets}, sum(t.verdict().attempts for t in tickets), flush=True)
    """
)


def start(server, file, count=400, script=SCRIPT):
    command = [sys.executable, "-W", "error", "-c", script, server.url, str(file), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_after_a_kill_only_what_was_in_flight_is_asked_again(server, file):
    server.decide = lambda seen: late(0.01, says())
    halfway = threading.Event()

    def decide(seen):
        if len(server.requests) >= 200:
            halfway.set()
        return late(0.01, says())

    server.decide = decide
    run = start(server, file)
    assert halfway.wait(60)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    asked_before = len(server.requests)
    again = start(server, file)
    output, errors = again.communicate(timeout=60)
    asked_again = len(server.requests) - asked_before
    assert "{'scored'}" in output, errors
    assert asked_before < 400
    # At most what was in flight, or had come back and was being committed, was lost.
    assert 400 - asked_before <= asked_again <= 400 - asked_before + 2 * 16


def test_ctrl_c_keeps_what_arrived(server, file):
    halfway = threading.Event()

    def decide(seen):
        if len(server.requests) >= 100:
            halfway.set()
        # Slow from then on, so that the run can't be over before the signal reaches it.
        return late(30 if len(server.requests) >= 200 else 0.02, says())

    server.decide = decide
    run = start(server, file)
    assert halfway.wait(60)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert "Task was destroyed" not in errors
    assert cache_files.stats(file)[0].completions >= 80


def test_the_interpreter_ends_without_noise_while_requests_are_in_flight(server, file):
    server.decide = lambda seen: late(30, says())
    script = SCRIPT.replace("int(count) > 0", "False")
    run = start(server, file, script=script)
    output, errors = run.communicate(timeout=60)
    assert (run.returncode, output.strip()) == (0, "submitted")
    assert [line for line in errors.splitlines() if "failed so far" not in line] == []


FORK = SCRIPT[: SCRIPT.index("if __name__")] + textwrap.dedent(
    """
    print({ticket.verdict().outcome for ticket in tickets}, flush=True)
    import os
    late = judge.submit(LAVE, JudgeItem("late", ("x",), "y"))
    child = os.fork()
    if not child:
        fresh = judge.submit(LAVE, JudgeItem("child", ("x",), "y")).verdict()
        print("child:", fresh.outcome, late.verdict().error, flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), late.verdict().outcome)
    """
)


def test_a_forked_child_has_a_loop_of_its_own(server, file):
    server.decide = lambda seen: late(0.5, says()) if "late" in seen.text else says()
    run = start(server, file, 20, FORK)
    output, errors = run.communicate(timeout=60)
    assert output.splitlines()[1:] == [
        "{'scored'}",
        "child: scored asked before this process was forked: no answer will come here",
        "0 scored",
    ], errors
    assert len([seen for seen in server.requests if "child" in seen.text]) == 1


def test_two_processes_share_one_cache_and_pay_for_nothing_twice(server, file):
    both_ask = threading.Event()

    async def says_when_both_ask(writer, seen):
        await asyncio.to_thread(both_ask.wait)
        await says()(writer, seen)

    server.decide = lambda seen: says_when_both_ask
    runs = [start(server, file), start(server, file)]
    assert [run.stdout.readline() for run in runs] == ["submitted\n"] * 2
    both_ask.set()
    for run in runs:
        output, errors = run.communicate(timeout=60)
        assert output.startswith("{'scored'}"), errors
        assert errors == ""
    assert cache_files.stats(file)[0].completions == len(server.requests) == 400
    asked_before = len(server.requests)
    output, _ = start(server, file).communicate(timeout=60)
    assert output.splitlines()[1] == "{'scored'} 0"
    assert len(server.requests) == asked_before


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "suspended"])
def test_what_another_process_claimed_is_asked_for_when_no_answer_comes(server, file, ending):
    server.decide = lambda seen: late(30, says())
    script = SCRIPT.replace("judge_concurrency=16", "judge_concurrency=16, judge_patience=1")
    first = start(server, file, script=script)
    while len(server.requests) < 16:
        time.sleep(0.01)
    first.send_signal(ending)
    server.decide = lambda seen: says()
    output, errors = start(server, file, script=script).communicate(timeout=60)
    first.kill()
    first.communicate()
    assert output.splitlines()[1] == "{'scored'} 400", errors
    assert len(server.requests) == 416
