"""What is read from logged samples, which anybody may have written."""

from pathlib import Path

import pytest

from culture_tasks.errors import DataError
from culture_tasks.harness.scoring import RECORD_VERSION
from culture_tasks.rejudge.logged_samples import judged_samples

FILE = Path("samples.jsonl")
SCALE = {"unit": "share", "low": 0.0, "high": 1.0, "better": "higher", "neutral": None, "digits": 3, "times": 1.0}
RUN = {"response": "feijoada", "outcome": "scored", "rating": 2.0, "tokens": [7, 3], "rationale": "a dish of Brazil"}


def record(**changes):
    return {
        "record": RECORD_VERSION,
        "benchmark": "culturalvqa",
        "metric": "lave",
        "scale": SCALE,
        "question": "What is it?",
        "references": ["feijoada"],
        "judge": {"rubric": "lave", "backend": "openai", "model": "judge-1"},
        "runs": [RUN, RUN | {"outcome": "failed", "rating": None}],
        **changes,
    }


def sample(**changes):
    return {"doc_id": 0, "lave": record(**changes), "lave_brazil": {}, "lave_india": None, "lave_coverage": {}}


def test_a_record_says_who_is_asked_what():
    [judged] = judged_samples([sample(judge_language="Chinese")], FILE)
    assert (judged.metric, judged.rubric.name, judged.scale.high) == ("lave", "lave", 1.0)
    assert judged.parts == {"brazil": True, "india": False}
    assert list(judged.scored) == [0]
    kept = judged.scored[0].verdict()
    assert (kept.score, kept.usage.prompt_tokens, kept.rationale) == (2.0, 7, "a dish of Brazil")
    asked = judged.expected(failed_only=False)
    assert [(rubric.name, item.question, item.references, item.response) for rubric, item in asked] == [
        ("lave", "What is it?", ("feijoada",), "feijoada")
    ] * 2
    assert asked[0][1].language == "Chinese"
    assert len(judged.expected(failed_only=True)) == 1


def test_parts_are_those_of_text_overlap_where_that_graded():
    logged = {"lave_lexical": record(judge={"rubric": "lave", "backend": "lexical"}), "lave_lexical_food": {}}
    [judged] = judged_samples([logged | {"lave_coverage": {}, "lave_lexical_run_sd": {}}], FILE)
    assert judged.parts == {"food": True}


def test_samples_without_a_judge_are_left_alone():
    assert judged_samples([{"acc": {"record": RECORD_VERSION, "runs": []}}, {"acc": 1.0}], FILE) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"record": 1}, r"line 2: the record has layout 1; this version reads"),
        ({"metric": None}, r"line 2, field 'metric': found None"),
        ({"question": {"a": 1}}, r"line 2, field 'question'"),
        ({"references": "feijoada"}, r"line 2, field 'references': found 'feijoada'"),
        ({"runs": []}, r"line 2, field 'runs'"),
        ({"runs": [RUN | {"response": 7}]}, r"line 2, field 'runs\.0\.response': found 7"),
        ({"runs": [RUN | {"outcome": "splendid"}]}, r"line 2, field 'runs\.0\.outcome'"),
        ({"runs": [RUN | {"rating": 99}]}, r"line 2: found the rating 99\.0\. Needed is one from 1 to 2"),
        ({"runs": [RUN | {"rating": None}]}, r"line 2: found the rating None"),
        ({"runs": [RUN | {"tokens": [-1, 0]}]}, r"line 2, field 'runs\.0\.tokens\.0'"),
        ({"scale": 3}, r"line 2, field 'scale'"),
        ({"scale": SCALE | {"low": None}}, r"line 2, field 'scale'.*both ends"),
        ({"scale": SCALE | {"times": 0}}, r"line 2, field 'scale'.*positive factor"),
        ({"judge": {"rubric": "lave5", "backend": "openai"}}, r"line 2: judges: no rubric 'lave5'\. Did you mean"),
        ({"judge": "me"}, r"line 2, field 'judge'"),
    ],
)
def test_a_damaged_record_is_named(changes, said):
    with pytest.raises(DataError, match=said):
        judged_samples([sample(), sample(**changes)], FILE)


def test_a_sample_without_its_record_is_named():
    with pytest.raises(DataError, match=r"samples\.jsonl, line 2: no judged record, while others have one"):
        judged_samples([sample(), {"doc_id": 1}], FILE)
