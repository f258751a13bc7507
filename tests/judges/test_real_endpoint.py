"""A real compatible endpoint: ``transformers serve`` with a tiny model on loopback."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
from support.judging import ask, ask_all

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.rubric.parsers import Reading
from culture_tasks.judges.rubric.verdicts import JudgeItem

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn")),
        reason="needs transformers[serving]",
    ),
]


@pytest.fixture(scope="module")
def endpoint(tiny_lm):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(tiny_lm)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, **quiet) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def wait_for(url, process):
    for _ in range(600):
        assert process.poll() is None, "transformers serve has ended"
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail("transformers serve does not answer")


def test_a_tiny_model_grades_and_an_unknown_one_is_found(endpoint, judge_for, tiny_lm):
    judge = judge_for(str(tiny_lm), openai_base_url=endpoint, judge_timeout=60.0, judge_concurrency=4)
    items = [JudgeItem(f"What is dish {number}?", ("b",), "x" * number) for number in range(6)]
    # A toy knows no ratings: what counts is that every reply came and was read for what it is.
    with pytest.raises(JudgeUnreachableError, match=r"no rating that can be read|cut off"):
        judge.check([(LAVE, items[0])])
    verdicts = ask_all(judge, items)
    assert {verdict.outcome for verdict in verdicts} <= {"scored", "unparsable", "failed"}
    replied = [verdict for verdict in verdicts if verdict.completion]
    assert replied
    assert all(verdict.usage.completion_tokens > 0 for verdict in replied)
    judge.close()
    warm = judge_for(str(tiny_lm), openai_base_url=endpoint)
    lenient = replace(LAVE, reader=lambda reply, scale: Reading(1, reply))
    assert ask(warm, items[verdicts.index(replied[0])], lenient).cached
    with pytest.raises(JudgeUnreachableError, match="no-such-model"):
        judge_for("no-such-model", openai_base_url=endpoint, judge_timeout=60.0).check([(LAVE, items[0])])
