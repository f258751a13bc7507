"""Completions that are kept: nothing lost, nothing asked twice, nothing fatal, nothing silent."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace

import pytest
from support.fault_server import late, says
from support.judging import ask, ask_all

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.registry import rubrics
from culture_tasks.judges.cache import stats
from culture_tasks.judges.completions import Answer, Completion
from culture_tasks.judges.grading import Grading
from culture_tasks.judges.rubric.verdicts import Reading


def test_keys_cover_all_that_changes_the_answer(judge_for, item):
    settings = ({}, {"openai_base_url": "http://x/v1"}, {"openai_base_url": "http://x/v1?v=2"}, {"judge_form": "regex"})
    graders = [judge_for(**changes).grader for changes in settings] + [judge_for("another").grader]
    keys = {Grading(grader, LAVE, item).key for grader in graders}
    keys |= {Grading(graders[0], rubric, item).key for rubric in rubrics().values()}
    keys |= {
        Grading(graders[0], LAVE, replace(item, **{name: "x"})).key for name in ("question", "response", "language")
    }
    keys.add(Grading(graders[0], LAVE, replace(item, references=("x",))).key)
    again = Grading(graders[0], LAVE, item)
    again.take(Answer(Completion("hm")))
    keys.add(again.key)
    assert len(keys) == len(graders) + len(rubrics()) - 1 + 3 + 1 + 1
    assert {len(key) for key in keys} == {32}


def test_a_better_parser_needs_no_new_calls(server, judge_for, item):
    server.script(says("two of two"))
    assert ask(judge_for(), item).outcome == "unparsable"
    better = replace(LAVE, reader=lambda reply, scale: Reading(2, reply))
    verdict = ask(judge_for(), item, better)
    assert (verdict.outcome, verdict.attempts) == ("scored", 0)
    assert len(server.requests) == 2


def test_an_unparsable_verdict_is_asked_for_once_a_run_which_begins_with_its_check(server, judge_for, item):
    server.script(says("hm"))
    for _ in range(2):
        judge = judge_for()
        server.requests.clear()
        assert {verdict.outcome for verdict in [*ask_all(judge, [item] * 3), ask(judge, item)]} == {"unparsable"}
        assert len(server.requests) == 2
    server.script(says())
    judge.check([(LAVE, item)])
    assert ask(judge, item).outcome == "scored"


ASKS = textwrap.dedent(
    """
    import sys
    from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
    from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
    from culture_tasks.judges.rubric.verdicts import JudgeItem
    from culture_tasks.settings import Settings

    url, cache, count = sys.argv[1:]
    settings = Settings(openai_base_url=url, openai_api_key="x", judge_cache=cache, judge_concurrency=16)
    judge = EndpointJudge("judge", settings)
    items = [JudgeItem(f"What is dish {number}?", ("biryani",), f"biryani {number}") for number in range(int(count))]
    tickets = [judge.submit(LAVE, item) for item in items]
    print("submitted", flush=True)
    """
)
WAITS = ASKS + "print({t.verdict().outcome for t in tickets}, sum(t.verdict().attempts for t in tickets), flush=True)\n"
FORKS = WAITS + textwrap.dedent(
    """
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


@pytest.fixture
def start(server, tmp_path):
    """Starts a process that asks the server for verdicts on the items, with the cache file of all judges of a test."""

    def start(script=WAITS, count=400):
        arguments = (server.url, str(tmp_path / "cache" / "verdicts.sqlite3"), str(count))
        command = [sys.executable, "-W", "error", "-c", script, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def until(server, count, then=None):
    """Has the server answer after a moment; returns an event that is set once it got so many requests."""
    reached = threading.Event()

    def decide(request):
        if len(server.requests) >= count:
            reached.set()
        return then if then and len(server.requests) >= 2 * count else late(0.01, says())

    server.decide = decide
    return reached


def test_after_each_of_several_kills_only_requests_in_flight_are_asked_again(server, start, judge_for, items):
    kills, concurrency = 5, 16
    for kill in range(1, kills + 1):
        reached = until(server, 60 * kill)
        run = start()
        assert reached.wait(60)
        run.kill()
        run.communicate()
    server.decide = lambda request: says()
    assert {verdict.outcome for verdict in ask_all(judge_for(judge_concurrency=concurrency), items(400))} == {"scored"}
    assert 400 <= len(server.requests) <= 400 + kills * concurrency


def test_ctrl_c_keeps_what_arrived(server, start, tmp_path):
    # Slow in the end, so that the run can't be over before the signal reaches it.
    halfway = until(server, 100, then=late(30, says()))
    run = start()
    assert halfway.wait(60)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert "Task was destroyed" not in errors
    assert stats(tmp_path / "cache" / "verdicts.sqlite3")[0].completions >= 80


def test_the_interpreter_ends_without_noise_while_requests_are_in_flight(server, start):
    server.decide = lambda request: late(30, says())
    run = start(ASKS)
    output, errors = run.communicate(timeout=60)
    assert (run.returncode, output.strip()) == (0, "submitted")
    assert [line for line in errors.splitlines() if "failed so far" not in line] == []


def test_a_forked_child_has_a_loop_of_its_own(server, start):
    server.decide = lambda request: late(0.5, says()) if "late" in request.text else says()
    output, errors = start(FORKS, 20).communicate(timeout=60)
    assert output.splitlines()[1:] == [
        "{'scored'} 20",
        "child: scored asked before this process was forked: no answer will come here",
        "0 scored",
    ], errors
    assert len([request for request in server.requests if "child" in request.text]) == 1
