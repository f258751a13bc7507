"""Where data come from: the user's folder first, then the Hub, with one clear error where neither has them."""

from __future__ import annotations

import json
from dataclasses import replace

import datasets
import pytest

from culture_tasks.data import tables
from culture_tasks.data.rows import TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import DataError, DataUnavailableError
from culture_tasks.settings import Settings

TABLE = Table(
    model=TableRow,
    folder="bench",
    stems=("test", "data/other"),
    hub="owner/Bench",
    config="arabic",
    additions=("answers",),
)


def read(table, folder):
    (found,) = table.read(Settings(data=folder))
    return found


def files(table, folder):
    return table.files(Settings(data=folder))


def put(folder, name, rows=({"a": "x"},)):
    path = folder / "bench" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(rows)))
    return path


@pytest.fixture
def hub(monkeypatch):
    """Stands in for the reading from the Hub: what it was asked for."""
    asked = []

    def load_split(*arguments):
        asked.append(arguments)
        return datasets.Dataset.from_dict({"a": [] if arguments[2] == "empty" else ["from the Hub"]}), "c0ffee"

    monkeypatch.setattr(tables, "load_split", load_split)
    return asked


def test_without_local_data_the_hub_is_asked_for_config_and_split(tmp_path, hub):
    (tmp_path / "another").mkdir()
    for folder in (None, tmp_path):
        table = read(TABLE, folder)
        assert table.reading.commits == {"owner/Bench": "c0ffee"}
        assert (table.origin, list(table.rows), table.local) == ("owner/Bench (arabic)", [{"a": "from the Hub"}], False)
    instead = "Put bench/test.json into a folder and name it with CULTURE_TASKS_DATA."
    assert hub == [("owner/Bench", "arabic", "test", None, instead)] * 2
    with pytest.raises(DataError, match=r"owner/Bench \(arabic\), split empty: holds no rows"):
        read(replace(TABLE, split="empty"), None)
    with pytest.raises(DataUnavailableError, match=r"not on the Hub. Put bench/test.json into a folder and name it"):
        read(replace(TABLE, hub=None), tmp_path)


def test_a_local_file_of_the_first_name_in_any_case_goes_before_the_hub(tmp_path, hub):
    for name in ("Data/Other.json", "TEST.JSON"):
        path = put(tmp_path, name)
        table = read(TABLE, tmp_path)
        assert (table.origin, list(table.rows), table.local) == (str(path), [{"a": "x"}], True)
    assert hub == []


@pytest.mark.parametrize(
    ("names", "folder", "said"),
    [
        (["test.json", "test.csv"], "", r"test\.json and test\.csv both match. Keep one"),
        (["test.json"], "bench", "Name the folder that holds it"),
        ([], "nowhere", r"CULTURE_TASKS_DATA=.*nowhere: no such folder. Name an existing one, or unset"),
        (["tset.json"], "", r"bench: holds no test.json \(or .jsonl, .csv, .parquet\). Put the file there, or remove"),
    ],
)
def test_a_folder_that_can_not_be_used_is_refused_and_says_why(tmp_path, hub, names, folder, said):
    for name in names:
        put(tmp_path, name)
    with pytest.raises(DataError, match=said):
        read(TABLE, tmp_path / folder)
    assert hub == []


def test_linked_folders_are_entered_but_not_those_that_lead_back_up(tmp_path, hub):
    bench = put(tmp_path, "readme.txt").parent
    real = put(tmp_path / "disk", "test.json")
    (bench / "data").symlink_to(real.parent)
    real.rename(real.with_name("other.json"))
    for name, target in (("up", tmp_path), ("self", bench), ("data/back", bench), ("data/again", real.parent)):
        (bench / name).symlink_to(target)
    assert files(TABLE, tmp_path) == [bench / "data" / "other.json"]
    (bench / "alias").symlink_to(bench / "data")
    assert files(replace(TABLE, stems=("*er",)), tmp_path) == [bench / "alias" / "other.json"]
    put(tmp_path, "a/other.json")
    with pytest.raises(DataError, match=r"other\.json and other\.json both match"):
        files(replace(TABLE, stems=("*er",)), tmp_path)
    assert hub == []


def test_an_addition_leaves_the_rest_to_the_hub_or_stands_beside_a_local_file(tmp_path):
    assert files(TABLE, None) == []
    for name in ("Answers.csv", "answers.json"):
        put(tmp_path, name)
        assert files(TABLE, tmp_path) == []
    assert files(TABLE, tmp_path) == [] != [put(tmp_path, "test.json")] == files(TABLE, tmp_path)


class Row(TableRow):
    a: Text


def test_all_parts_of_a_table_beside_the_first_are_read_as_one(tmp_path):
    table = replace(TABLE, model=Row, parts=("test-*", "*/test-*"), release=Release(rows=4))
    for name in ("data/test-1.csv", "data/test-2.csv", "data/z/test-3.csv", "data/test-1.parquet"):
        put(tmp_path, name).write_text("a\nx\ny\n")
    rows = table.rows(Settings(data=tmp_path))
    assert [row.a for row in rows.rows] == ["x", "y"] * 2
    assert rows.where(3) == f"{tmp_path / 'bench' / 'data' / 'test-2.csv'}, row 3"
    put(tmp_path, "data/test-2.csv").write_text("a\nx\n \n")
    with pytest.raises(DataError, match=r"test-2.csv, row 3, field 'a': found ' '"):
        table.rows(Settings(data=tmp_path))
