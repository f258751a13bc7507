"""Records whose verdicts come later."""

import copy
import json
import pickle
import threading
from types import SimpleNamespace

import pytest

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.harness.records import JudgedDocument, completed
from culture_tasks.harness.session import Session, hold_session
from culture_tasks.judges.rubric.verdicts import Verdict
from culture_tasks.settings import Settings

PERCENT = Scale("percent", 0.0, 100.0, times=100.0)
RUBRIC = SimpleNamespace(model="gpt", lowest=1, highest=3)
RECORD = {
    "record": 2,
    "question": "Tea?",
    "references": [],
    "judge": {"backend": "openai"},
    "runs": [{"response": "yes", "outcome": "scored", "rating": 2.0, "tokens": [0, 0]}],
    "outcomes": {"scored": 1},
    "score": 0.5,  # the middle of 1 to 3 is 50 percent
}


class LateJudge:
    """A judge that counts how often its verdicts are asked for."""

    def __init__(self, wait=lambda: None):
        self.calls, self.wait = 0, wait

    def identity(self, _):
        return SimpleNamespace(json={"backend": "openai"})

    def submit(self, _, item):
        assert item.response == "yes"
        return self

    def verdict(self):
        self.calls += 1
        self.wait()
        return Verdict("scored", 2.0)


def pending(judge):
    hold_session(Session(Settings(judge="lexical"), lambda _: judge))
    return JudgedDocument({"question": "Tea?", "references": []}, RUBRIC, ["yes"], PERCENT)


@pytest.mark.parametrize(
    "complete",
    [
        lambda record: completed([record])[0],
        lambda record: "score" in record and record,
        copy.deepcopy,
        lambda record: pickle.loads(pickle.dumps([record]))[0],
    ],
    ids=["harness", "contains", "copy", "pickle"],
)
def test_nothing_is_waited_for_before_a_harness_needs_it(complete):
    judge = LateJudge()
    record = pending(judge)
    logged = {"record": record}  # the other place where a harness keeps it
    assert judge.calls == 0
    assert isinstance(record, dict)
    assert complete(record) == RECORD
    assert json.loads(json.dumps(logged)) == {"record": RECORD}
    completed([record])
    assert judge.calls == 1
    assert type(pickle.loads(pickle.dumps(record))) is dict


def test_two_threads_get_the_same():
    barrier = threading.Barrier(2)
    record, found = pending(LateJudge(lambda: barrier.wait(timeout=10))), []
    threads = [threading.Thread(target=lambda: found.append(record.record().get("score"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert found == [0.5, 0.5]
