"""Data sets whose rows are at hand as Python objects."""

import copy
import pickle

import datasets
import pytest

from culture_tasks.harness.decoded import DecodedDataset
from culture_tasks.harness.loading import load_for_evaluation

ROWS = [{"id": "a", "references": ["x", "y"], "number": None}, {"id": "b", "references": [], "number": 2}]


@pytest.fixture
def data():
    return DecodedDataset(ROWS)


def plain():
    return datasets.Dataset.from_list(ROWS)


def test_it_is_the_data_set_of_its_rows_whatever_a_reader_changes(data):
    assert isinstance(data, datasets.Dataset)
    assert list(data) == list(plain()) == ROWS
    assert (len(data), data.features) == (2, plain().features)
    assert (data[1], data[-1], data[0:1], data["id"][:]) == (plain()[1], plain()[-1], plain()[0:1], ["a", "b"])
    data[0]["id"] = "changed"
    next(iter(data))["id"] = "changed"
    assert list(data) == ROWS
    with pytest.raises(IndexError):
        data[2]


DERIVED = {
    "removed": lambda data: data.remove_columns(["number"]),
    "selected": lambda data: data.select([1]),
    "filtered": lambda data: data.filter(lambda row: row["id"] == "b"),
    "mapped": lambda data: data.map(lambda row: {"more": row["id"] * 2}),
    "joined": lambda data: datasets.concatenate_datasets([data, data]),
    "formatted": lambda data: data.with_format("numpy", columns=["id"]),
    "copied": copy.copy,
    "deep-copied": copy.deepcopy,
    "pickled": lambda data: pickle.loads(pickle.dumps(data)),
}


@pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
def test_what_is_derived_from_it_is_what_is_derived_from_any(data, derive):
    assert list(derive(data)) == list(derive(plain()))
    assert list(data) == ROWS


@pytest.mark.parametrize("name", ["care_ar", "culturalvqa_lens"])
def test_documents_are_what_arrow_would_give(name):
    loaded = load_for_evaluation(name)
    assert type(loaded) is DecodedDataset
    assert list(loaded) == list(copy.deepcopy(loaded))
