"""Columns and metrics out of logged records."""

from __future__ import annotations

import math

import pytest

from culture_tasks.benchmarks.cedar.labels import EMOTIONS
from culture_tasks.benchmarks.cedar.records import columns, language_metrics, pooled_metrics
from culture_tasks.benchmarks.cedar.reported import of_language, pooled, table_of
from culture_tasks.errors import DataError


def record(**changed):
    return {
        "benchmark": "cedar",
        "id": "1",
        "language": "en",
        "gold": "awe",
        "prediction": "awe",
        "minority": "",
        "supported": True,
        **changed,
    }


def test_columns_are_in_the_records_order():
    run = columns([record(), record(language="ar", prediction=None, gold="fear", supported=False)])
    assert run.predictions == ("awe", None)
    assert run.golds == ("awe", "fear")
    assert run.languages == ("en", "ar")
    assert run.supported == (True, False)
    assert run.minorities == ()
    assert run.of_supported().languages == ("en",)
    assert run.of_supported().minorities == ()


def test_minority_labels_are_those_of_each_record():
    run = columns([record(minority="fear"), record(minority="none")])
    assert run.minorities == ("fear", None)
    assert language_metrics(run)["top2_macro_f1"] == 1.0


def test_unsupported_languages_are_in_no_pooled_metric():
    run = columns([record(), record(language="ar", prediction="pain", supported=False)])
    assert pooled_metrics(run)["acc"] == 1.0
    assert math.isnan(pooled_metrics(run)["acc_ar"])
    assert language_metrics(run)["acc"] == 0.5


def test_no_records_give_nan():
    assert all(math.isnan(value) for value in pooled_metrics(columns([])).values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"benchmark": "care"}, "record 1, field 'benchmark'"),
        ({"gold": "joy"}, "record 1, field 'gold'.*found 'joy'"),
        ({"prediction": "joy"}, "record 1, field 'prediction'"),
        ({"language": "de"}, "record 1, field 'language'"),
        ({"minority": None}, "record 1, field 'minority'"),
    ],
)
def test_another_record_is_refused(changed, said):
    with pytest.raises(DataError, match=said):
        columns([record(), record(**changed)])


def test_what_is_no_record_is_refused():
    with pytest.raises(DataError, match="record 0, field 'benchmark'"):
        columns([{}])
    with pytest.raises(DataError, match="Needed are the 'acc' records"):
        columns([100.0])


def test_equal_records_are_counted_together_from_tuples_and_lists():
    table = table_of([("en", "awe", None), ["en", "awe", None], None, ("zh", "fear", "awe")])
    assert table.counts.sum() == 3
    assert table.of("en")[EMOTIONS.index("awe"), len(EMOTIONS)] == 2
    assert table.of("zh")[EMOTIONS.index("fear"), EMOTIONS.index("awe")] == 1


def test_names_are_all_different():
    for reported in (pooled(), of_language()):
        names = [metric.name for metric in reported]
        assert len(set(names)) == len(names)
    assert len(pooled()) == 2 + 7 + 2 + 14 + 4
    assert len(of_language()) == 2 + 14 + 4
