"""Where data come from: the user's folder first, then the Hub, with one clear error where neither has them."""

from __future__ import annotations

import json

import datasets
import pytest

from culture_tasks.data import sources
from culture_tasks.data.sources import Source, addition, local_file, read_source
from culture_tasks.errors import DataError, DataUnavailableError

SOURCE = Source("bench", ("test", "data/other"), "owner/Bench", config="arabic", additions=("answers",))


def put(folder, name, rows=({"a": "x"},)):
    path = folder / "bench" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(rows)))
    return path


@pytest.fixture
def hub(monkeypatch):
    """Stands in for the reading from the Hub; ``hub.result`` is what it gives."""

    class Hub:
        result = datasets.Dataset.from_dict({"a": ["from the Hub"]})
        asked = ()

        def load_split(self, *arguments):
            self.asked = arguments
            return self.result

    one = Hub()
    monkeypatch.setattr(sources, "load_split", one.load_split)
    return one


def test_without_a_folder_the_hub_is_asked_for_config_and_split(hub):
    table = read_source(SOURCE, None)
    assert (table.origin, list(table.rows), table.local) == ("owner/Bench (arabic)", [{"a": "from the Hub"}], False)
    instead = "Put bench/test.json into a folder and name it with CULTURE_TASKS_DATA."
    assert hub.asked == ("owner/Bench", "arabic", "test", instead)


def test_a_folder_without_this_benchmark_leaves_it_to_the_hub(tmp_path, hub):
    (tmp_path / "another").mkdir()
    assert local_file(SOURCE, tmp_path) is None
    assert not read_source(SOURCE, tmp_path).local


def test_a_local_file_goes_before_the_hub(tmp_path, hub):
    path = put(tmp_path, "test.json")
    table = read_source(SOURCE, tmp_path)
    assert (table.origin, list(table.rows), table.local) == (str(path), [{"a": "x"}], True)
    assert hub.asked == ()


@pytest.mark.parametrize("name", ["test.json", "TEST.JSON", "data/other.jsonl", "Data/Other.csv", "test.parquet"])
def test_the_file_may_have_any_of_the_names_in_any_case(tmp_path, name):
    path = put(tmp_path, name)
    assert local_file(SOURCE, tmp_path) == path


def test_the_first_name_goes_before_the_others(tmp_path):
    for name in ("data/other.json", "test.parquet"):
        best = put(tmp_path, name)
        assert local_file(SOURCE, tmp_path) == best


def test_two_files_of_one_name_are_refused(tmp_path):
    put(tmp_path, "test.json")
    put(tmp_path, "test.csv")
    with pytest.raises(DataError, match=r"test\.json and test\.csv both match. Keep one"):
        local_file(SOURCE, tmp_path)


def test_the_folder_of_one_benchmark_is_not_taken_for_the_data_folder(tmp_path):
    folder = put(tmp_path, "test.json").parent
    with pytest.raises(DataError, match="Name the folder that holds it"):
        local_file(SOURCE, folder)


def test_a_data_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"CULTURE_TASKS_DATA=.*nowhere: no such folder. Name an existing one, or unset"
    ):
        local_file(SOURCE, tmp_path / "nowhere")


def test_a_file_in_place_of_the_data_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        local_file(SOURCE, put(tmp_path, "test.json"))


def test_a_benchmark_folder_without_its_file_is_refused_and_says_which(tmp_path, hub):
    put(tmp_path, "tset.json")
    said = r"bench: holds no test.json \(or .jsonl, .csv, .parquet\). Put the file there, or remove the folder to use"
    with pytest.raises(DataError, match=said):
        read_source(SOURCE, tmp_path)


def test_a_folder_with_nothing_but_an_addition_leaves_the_rest_to_the_hub(tmp_path, hub):
    path = put(tmp_path, "Answers.csv")
    assert local_file(SOURCE, tmp_path) is None
    assert addition(SOURCE, tmp_path) == path


def test_an_addition_stands_beside_a_local_file(tmp_path):
    put(tmp_path, "test.json")
    assert addition(SOURCE, tmp_path) is None
    path = put(tmp_path, "answers.jsonl")
    assert addition(SOURCE, tmp_path) == path
    assert addition(SOURCE, None) is None


def test_data_by_request_alone_say_where_to_put_them(tmp_path):
    source = Source("bench", ("test",), None)
    with pytest.raises(
        DataUnavailableError, match=r"not on the Hub. Put bench/test.json into a folder and name it with"
    ):
        read_source(source, tmp_path)


def test_an_empty_split_is_refused(hub):
    hub.result = datasets.Dataset.from_dict({"a": []})
    with pytest.raises(DataError, match=r"owner/Bench \(arabic\), split test: holds no rows"):
        read_source(SOURCE, None)


def test_offline_without_local_data_is_one_error():
    with pytest.raises(DataUnavailableError, match="owner/Bench"):
        read_source(Source("bench", ("test",), "owner/Bench"), None)
