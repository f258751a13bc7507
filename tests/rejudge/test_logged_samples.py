"""The samples of a file that a judge grades: the requests to the judge, parts of the data, and what can't be used."""

import json

import pytest
from support.sample_files import JUDGE, vqa_record

from culture_tasks.errors import DataError
from culture_tasks.results.logged_samples import judged_samples
from culture_tasks.results.samples import samples_of

RUN = {"response": "feijoada", "outcome": "scored", "rating": 2.0}
UNSCORED = ("unparsable", "refused", "failed", "unjudged")
SCALE = vqa_record(1, 1.0)["scale"]


def sample(**changes):
    record = vqa_record(
        1, 1.0, runs=[RUN, *(RUN | {"outcome": outcome, "rating": None} for outcome in UNSCORED)], **changes
    )
    return {"doc_id": 0, "record": record}


@pytest.fixture
def read(tmp_path):
    def written(*samples):
        path = tmp_path / "samples.jsonl"
        path.write_text(
            "\n".join(json.dumps(sample | {"doc_id": place}) for place, sample in enumerate(samples)), encoding="utf-8"
        )
        return judged_samples(samples_of(path, None))

    return written


def test_a_record_says_who_is_asked_what(read):
    [judged] = read(sample(judge_language="Chinese"))
    assert (judged.record.metric, judged.rubric.name, judged.record.scale.high) == ("lave", "lave", 1.0)
    assert list(judged.scored) == [0]
    requests = judged.expected(failed_only=False)
    assert [(rubric.name, item.question, item.references, item.response) for rubric, item in requests] == [
        ("lave", "question 1?", ("this", "that"), "feijoada")
    ] * 5
    assert requests[0][1].language == "Chinese"
    assert len(judged.expected(failed_only=True)) == 4


def test_a_failed_response_that_was_graded_is_asked_of_nobody(read):
    failed = RUN | {"response": "[LMMS_EVAL_REQUEST_FAILED after 3 retries] Error code: 503"}
    [judged] = read(sample() | {"record": vqa_record(1, 0.75, runs=[RUN, failed], run_scores=[1.0, 0.5])})
    assert [len(judged.expected(failed_only=failed_only)) for failed_only in (False, True)] == [1, 0]
    record = judged.record
    assert (list(judged.scored), record.score, record.run_scores) == ([0], 1.0, (1.0, None))
    assert record.outcomes == {"scored": 1, "failed": 1}
    [alone] = read(sample() | {"record": vqa_record(1, 1.0, runs=[failed])})
    assert (alone.record.score, alone.record.outcomes) == (None, {"failed": 1})


def test_a_new_record_takes_the_place_of_what_older_versions_logged(read):
    older = {"lave": sample()["record"], "lave_brazil": {}, "lave_india": None, "lave_coverage": {}, "exact_match": 1.0}
    [judged] = read(older | {"metrics": ["lave", "lave_brazil", "exact_match"]})
    assert judged.record.metric == "lave"
    new = judged.regraded({"score": 0.5})
    assert new == {"doc_id": 0, "exact_match": 1.0, "record": {"score": 0.5}, "metrics": ["exact_match", "record"]}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (sample(metric=None), "line 2, field 'metric': found None"),
        (sample() | {"record": vqa_record(2, 1.0, runs=[RUN | {"rating": 99}])}, "rating from 1 to 2, found 99.0"),
        (sample() | {"record": vqa_record(2, 1.0, runs=[RUN | {"rating": None}])}, "rating from 1 to 2, found None"),
        (sample(scale=SCALE | {"low": None}), "expected a judge, and a scale with both ends"),
        (sample(judge=JUDGE | {"rubric": "lave5"}), "judges: no rubric 'lave5'. Did you mean"),
        ({"doc_id": 1}, "no judged record, while others have one"),
    ],
)
def test_a_sample_that_cannot_be_graded_is_named(read, second, message):
    with pytest.raises(DataError, match=r"samples\.jsonl, line 2") as caught:
        read(sample(), second)
    assert message in str(caught.value)
