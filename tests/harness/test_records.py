"""Records that complete themselves when they are first read."""

import copy
import json
import pickle
import threading

import pytest

from culture_tasks.harness.records import CompleteRecord, CountedRecord, PartRecord, PendingRecord


def pending(calls=None):
    def finish():
        if calls is not None:
            calls.append(1)
        return {"score": 1.0, "runs": [{"rating": 2}]}

    return PendingRecord({"id": "a"}, finish)


READS = {
    "getitem": lambda record: record["score"],
    "get": lambda record: record.get("score"),
    "contains": lambda record: "score" in record,
    "iter": lambda record: list(record),
    "len": len,
    "keys": lambda record: list(record.keys()),
    "values": lambda record: list(record.values()),
    "items": lambda record: list(record.items()),
    "copy": lambda record: record.copy(),
    "equal": lambda record: record == {},
    "repr": repr,
    "json": json.dumps,
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "dict": lambda record: dict(record.items()),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_any_reading_completes_a_record(read):
    record = pending()
    read(record)
    assert type(record) is CompleteRecord
    assert record == {"id": "a", "score": 1.0, "runs": [{"rating": 2}]}


def test_nothing_is_asked_before_it_is_read():
    calls = []
    record = pending(calls)
    assert calls == []
    assert isinstance(record, dict)
    record["id"]
    record["score"]
    assert calls == [1]
    for sent in (record, pending()):  # travels as a plain dictionary, read before or not
        travelled = pickle.loads(pickle.dumps([sent]))[0]
        assert type(travelled) is dict
        assert travelled["score"] == 1.0


def test_two_readers_at_once_get_the_same():
    barrier = threading.Barrier(2)

    def finish():
        barrier.wait(timeout=10)
        return {"score": 1.0}

    record = PendingRecord({"id": "a"}, finish)
    found = []
    threads = [threading.Thread(target=lambda: found.append(dict.get(record.complete(), "score"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert found == [1.0, 1.0]


def test_a_part_completes_its_record_and_shows_what_aggregations_read_and_no_more():
    for read in ("getitem", "get", "contains"):
        record = pending()
        assert READS[read](PartRecord(record)) in (1.0, True)
        assert type(record) is CompleteRecord
    part = PartRecord(pending())
    assert isinstance(part, dict)
    assert ("score" in part, "run_scores" in part, "runs" in part) == (True, False, False)
    assert (part.get("run_scores", "none"), part.get("runs", "none")) == ("none", "none")
    for name in ("run_scores", "runs"):
        with pytest.raises(KeyError):
            part[name]


@pytest.mark.parametrize("travel", [lambda part: part, lambda part: pickle.loads(pickle.dumps(part))])
def test_what_is_counted_shows_no_score(travel):
    counted = travel(CountedRecord(PendingRecord({"id": "a"}, lambda: {"outcomes": {"scored": 1}, "score": 1.0})))
    assert type(counted) is CountedRecord
    assert (counted["outcomes"], counted.get("score"), "score" in counted) == ({"scored": 1}, None, False)


def test_a_log_holds_a_record_once_and_a_part_travels_with_the_few_values_that_aggregations_need():
    for encode in (json.dumps, lambda value: "".join(json.JSONEncoder(indent=0).iterencode(value))):
        record = pending()
        logged = json.loads(encode({"lave": record, "lave_brazil": PartRecord(record)}))
        assert logged == {"lave": record, "lave_brazil": {}}
    travelled = pickle.loads(pickle.dumps(PartRecord(pending())))
    assert travelled.record == {"score": 1.0}
    assert json.dumps(travelled) == "{}"
