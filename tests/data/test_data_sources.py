"""Where data come from: the user's folder first, then the Hub; what is the user's own, and what a check finds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import datasets
import pytest

from culture_tasks.benchmarks.registry import benchmarks, task_named
from culture_tasks.data import tables
from culture_tasks.data.files import read_file
from culture_tasks.data.reading import DataReading
from culture_tasks.data.rows import TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import DataError, DataUnavailableError
from culture_tasks.settings import Settings


class Row(TableRow):
    a: Text
    question: str = ""


TABLE = Table(model=Row, folder="bench", stems=("test", "data/other", "data/part-*"), hub="owner/Bench", config="ar")


def read(table, folder):
    return table.read(Settings(data=folder))


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
        data = {"a": [] if arguments[2] == "empty" else ["from the Hub"]}
        return datasets.Dataset.from_dict(data), DataReading(commits={arguments[0]: "c0ffee"})

    monkeypatch.setattr(tables, "load_split", load_split)
    return asked


def test_without_a_folder_of_the_user_s_the_hub_is_asked_for_config_and_split(tmp_path, hub):
    for folder in (None, tmp_path):
        found = read(TABLE, folder)
        assert found.reading.commits == {"owner/Bench": "c0ffee"}
        assert (found.origin, list(found.rows), found.local) == ("owner/Bench (ar)", [{"a": "from the Hub"}], False)
    instead = "Put bench/test.json (or .jsonl, .csv, .parquet) into the folder that CULTURE_TASKS_DATA names."
    assert hub == [("owner/Bench", "ar", "test", None, instead)] * 2
    with pytest.raises(DataError, match=r"owner/Bench \(ar\), split empty: holds no rows"):
        read(replace(TABLE, split="empty"), None)
    with pytest.raises(DataUnavailableError, match=r"not on the Hub. Put bench/test.json \(or .jsonl"):
        read(replace(TABLE, hub=None), tmp_path)


def test_a_folder_without_the_table_is_refused_unless_it_holds_what_complements_the_hub_s(tmp_path, hub):
    put(tmp_path, "answers.json")
    with pytest.raises(DataUnavailableError, match=r"/bench: holds no test.json .* or remove the folder to use owner"):
        read(TABLE, tmp_path)
    assert list(read(replace(TABLE, additions=("answers",)), tmp_path).rows) == [{"a": "from the Hub"}]


def test_a_local_file_of_the_first_name_in_any_case_goes_before_the_hub(tmp_path, hub):
    for name in ("Data/Other.json", "TEST.JSON"):
        path = put(tmp_path, name)
        found = read(TABLE, tmp_path)
        assert (found.origin, list(found.rows), found.local) == (str(path), [{"a": "x"}], True)
    assert hub == []


@pytest.mark.parametrize(
    ("names", "folder", "said"),
    [
        (["test.json", "test.csv"], "", r"test\.json and .*test\.csv both match. Keep one"),
        (["data/part-1.json", "data/part-2.csv"], "", r"part-1\.json and .*part-2\.csv both match"),
        (["test.json"], "bench", r"CULTURE_TASKS_DATA=.*: no such folder with bench/ in it"),
        ([], "nowhere", r"CULTURE_TASKS_DATA=.*nowhere: no such folder with bench/ in it"),
    ],
)
def test_a_folder_that_can_not_be_used_is_refused_and_says_why(tmp_path, hub, names, folder, said):
    for name in names:
        put(tmp_path, name)
    with pytest.raises(DataError, match=said):
        read(TABLE, tmp_path / folder)
    assert hub == []


def test_linked_folders_are_entered_but_not_those_that_lead_back_up(tmp_path):
    bench = put(tmp_path, "readme.txt").parent
    real = put(tmp_path / "disk", "test.json")
    (bench / "data").symlink_to(real.parent)
    real.rename(real.with_name("other.json"))
    for name, target in (("up", tmp_path), ("self", bench), ("data/back", bench), ("data/again", real.parent)):
        (bench / name).symlink_to(target)
    assert TABLE.files(Settings(data=tmp_path)) == [bench / "data" / "other.json"]


def test_all_files_that_match_a_wildcard_are_read_as_one(tmp_path):
    for name in ("part-1", "part-2"):
        put(tmp_path, f"data/{name}.csv").write_text("a\nx\ny\n")
    found = TABLE.rows(Settings(data=tmp_path))
    assert [row.a for row in found.rows] == ["x", "y"] * 2
    assert found.where(3) == f"{tmp_path / 'bench' / 'data' / 'part-2.csv'}, row 3"
    put(tmp_path, "data/part-2.csv").write_text("a\nx\n \n")
    with pytest.raises(DataError, match=r"part-2.csv, row 3, field 'a': found ' '"):
        TABLE.rows(Settings(data=tmp_path))


def test_ids_are_those_of_the_rows_or_their_numbers_and_each_occurs_once(tmp_path):
    table = replace(TABLE, id="a", id_of=lambda row: None if row.a == "-" else row.a)

    def ids(*names):
        put(tmp_path, "test.json", [{"a": name} for name in names])
        return table.rows(Settings(data=tmp_path)).ids

    assert (ids("-", "-"), ids("b", "a")) == (["0", "1"], ["b", "a"])
    with pytest.raises(DataError, match=r"test.json, row 3, field 'a': 'x' is also the id of .*, row 1"):
        ids("x", "b", "x")
    with pytest.raises(DataError, match=r"test.json, row 2, field 'a': found nothing. Expected an id in each"):
        ids("x", "-")
    (tmp_path / "bench" / "test.json").write_text('{"y": {"question": "?"}}')  # as BLEnD's answers are released
    assert table.rows(Settings(data=tmp_path)).ids == ["y"]


# The user's own data


@pytest.mark.parametrize(
    ("release", "count", "known", "difference"),
    [
        (Release(200), 200, 0, ""),
        (Release(200), 198, 0, ""),  # within 1 %
        (Release(200), 197, 0, "197 rows, and the release has 200"),
        (Release(200), 203, 0, "203 rows, and the release has 200"),
        (Release(200, grows=True), 203, 0, ""),
        (Release(200, grows=True), 3, 0, "3 rows, and the release has 200 or more"),
        (Release(200, questions=20), 200, 20, ""),
        (Release(200, questions=20), 200, 19, "other questions than the release"),
    ],
)
def test_the_number_of_rows_and_known_questions_tell_the_user_s_own_data(
    tmp_path, monkeypatch, release, count, known, difference
):
    digests = frozenset(hashlib.sha256(str(number).encode()).hexdigest()[:16] for number in range(known))
    monkeypatch.setattr(tables, "released_questions", lambda: digests)
    put(tmp_path, "test.json", [{"a": "x", "question": str(number)} for number in range(count)])
    found = replace(TABLE, release=release).rows(Settings(data=tmp_path))
    assert found.reading.differences == ({"test.json": difference} if difference else {})


def test_the_bundled_data_are_no_release_in_any_task(fixture_data):
    for name in ("care_en_ja", "culturalvqa", "cedar_multimodal", "blend", "blend_mcq", "crosscult_diagnostic"):
        assert task_named(name).data.load(Settings(data=fixture_data)).reading.differences, name


# A check of tables


def test_a_misspelt_column_is_told_once_and_not_with_each_of_its_rows(tmp_path):
    put(tmp_path, "test.json", [{"a": "x"}, {"A name": "y"}])
    [problem] = TABLE.check(Settings(data=tmp_path), set())[1]
    assert "test.json: unknown column 'A name'." in problem


@pytest.mark.parametrize("change", ["repeated", "misspelt", "without"])
def test_a_loading_stops_at_the_first_problem_that_the_check_lists(tmp_path, fixture_data, change):
    ours = [benchmark for benchmark in benchmarks().values() if benchmark.task_files is None]
    tasks = [task for benchmark in ours for task in benchmark.tasks()]
    for table in dict.fromkeys(table for task in tasks for table in task.data.sources if table.id):
        if change == "repeated" and table.folder == "care":  # whose rows have no ids
            continue
        (path,) = table.files(Settings(data=fixture_data))
        rows = [dict(row) for row in read_file(path, None, table.id).rows]
        required = next(name for name, field in table.model.model_fields.items() if field.is_required())
        column = next(name for name in rows[0] if table.aliases.get(name, name.lower()) == required)
        if change == "repeated":
            rows, said = [*rows, rows[0]], f"row {len(rows) + 1}, field "
        elif change == "misspelt":
            rows, said = [{f"{name}x": value for name, value in row.items()} for row in rows], f"no column {required!r}"
        else:
            said = f"row {len(rows)}, field {required!r}: found nothing. Expected a value."
            del rows[-1][column]
        copy = (tmp_path / path.relative_to(fixture_data)).with_suffix(".json")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(json.dumps(rows))
        _, (first, *_) = table.check(Settings(data=tmp_path), set())
        assert said in first, table.name
        with pytest.raises(DataError) as caught:
            table.rows(Settings(data=tmp_path))
        assert str(caught.value) == first
