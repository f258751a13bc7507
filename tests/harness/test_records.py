"""Records whose verdicts come later."""

import copy
import json
import pickle
import threading

import pytest

from culture_tasks.harness.records import PendingRecord, completed


class Document:
    """A document that counts how often its verdicts are asked for."""

    def __init__(self, wait=lambda: None):
        self.calls, self.wait = 0, wait

    def record(self):
        self.calls += 1
        self.wait()
        return {"record": 2, "score": 1.0, "runs": [{"rating": 2}]}


WHOLE = Document().record()


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
    document = Document()
    record = PendingRecord(document)
    logged = {"record": record}  # the other place where a harness keeps it
    assert document.calls == 0
    assert isinstance(record, dict)
    whole = complete(record)
    assert whole == WHOLE
    assert json.loads(json.dumps(logged)) == {"record": WHOLE}
    completed([record])
    assert document.calls == 1
    assert type(pickle.loads(pickle.dumps(record))) is dict


def test_two_threads_get_the_same():
    barrier = threading.Barrier(2)
    record, found = PendingRecord(Document(lambda: barrier.wait(timeout=10))), []
    threads = [threading.Thread(target=lambda: found.append(record.complete().get("score"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert found == [1.0, 1.0]
