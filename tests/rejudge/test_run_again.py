"""A run whose verdicts were not all scored, repeated: both harnesses, a real server, a real cache."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from support.fault_server import FaultServer, fails, late, says
from support.rejudged import result_files, verdicts_of, write

from culture_tasks.cli.main import main
from culture_tasks.judges.selection import close_judges

pytestmark = pytest.mark.filterwarnings("ignore")

GOOD = says("Fine.\nRating: [[8]]")
UNSCORED = {
    "unparsable": says("I like it."),
    "refused": fails(400, code="content_filter"),
    "failed": fails(422),
}
DOCUMENTS = 10


class Judge(FaultServer):
    """Grades; the first verdicts after the check, one for each, end otherwise until it is well."""

    def __init__(self):
        super().__init__()
        self.endings = {}
        self.decide = self.reply
        self.well = False

    def reply(self, seen):
        if self.well or not self.requests[1:]:
            return GOOD
        user = next(message["content"] for message in seen.body["messages"] if message["role"] == "user")
        left = [ending for ending in UNSCORED if ending not in self.endings.values()]
        ending = self.endings.setdefault(user, left[0] if left else "scored")
        return UNSCORED.get(ending, GOOD)


@pytest.fixture
def judge(tmp_path, monkeypatch, fixture_data):
    server = Judge()
    monkeypatch.setenv("CULTURE_JUDGE", "openai:judge")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(tmp_path / "verdicts.sqlite3"))
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    yield server
    close_judges()
    server.close()


def outcomes(results):
    return sorted(verdict["outcome"] for verdict in verdicts_of(results))


@pytest.mark.parametrize(("harness", "same_process"), [("lm_eval", True), ("lmms_eval", False)])
def test_run_again_asks_only_for_what_is_missing(judge, harness, same_process, tmp_path):
    def run(name):
        return outcomes(write(harness, tmp_path / name, "care_zh"))

    assert run("first") == sorted([*UNSCORED, *["scored"] * (DOCUMENTS - len(UNSCORED))])
    if not same_process:
        close_judges()
    judge.well = True
    check = 0 if same_process else 1
    judge.requests.clear()
    assert run("second") == ["scored"] * DOCUMENTS
    assert len(judge.requests) == check + len(UNSCORED)
    assert main(["rejudge", str(tmp_path / "first"), "--failed-only"]) == 0
    assert outcomes(result_files(tmp_path / "first")[-1]) == ["scored"] * DOCUMENTS
    assert len(judge.requests) == check + len(UNSCORED)


@pytest.fixture
def without_collections():
    """A KeyboardInterrupt inside a callback of the garbage collector, which hypothesis has, is dropped by Python."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collections")
@pytest.mark.parametrize("cache", ["verdicts.sqlite3", "off"])
def test_after_ctrl_c_one_line_says_how_to_go_on(judge, cache, tmp_path, monkeypatch, capsys, caplog):
    write("lm_eval", tmp_path / "runs", "care_zh")
    close_judges()
    judge.requests.clear()
    file = cache if cache == "off" else str(tmp_path / "fresh" / cache)
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", file)
    monkeypatch.setenv("CULTURE_JUDGE_CONCURRENCY", "1")
    capsys.readouterr()
    caplog.clear()

    def decide(seen):
        if len(judge.requests) == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return late(60, GOOD) if len(judge.requests) >= 6 else GOOD

    judge.decide = decide
    assert main(["rejudge", str(tmp_path / "runs")]) == 130
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("Interrupted. The same command goes on")
    assert caplog.records == []
    judge.decide = lambda seen: GOOD
    judge.requests.clear()
    assert main(["rejudge", str(tmp_path / "runs")]) == 0
    check, kept = 1, 0 if cache == "off" else 4
    assert len(judge.requests) == check + DOCUMENTS - kept
