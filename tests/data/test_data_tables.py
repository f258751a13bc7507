"""Reading tables: the good files in four formats, and one clear error for each kind of bad file."""

from __future__ import annotations

import logging
import os
from typing import Literal

import datasets
import pandas
import pyarrow
import pyarrow.parquet
import pytest

from culture_tasks.data.files import Rows, from_dataset, read_file
from culture_tasks.data.reading import fingerprint
from culture_tasks.data.rows import Label, OptionalIdentifier, OptionalText, TableRow, Text, validated
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

ROWS = [
    {"question": 'What is "x, y"?\nSecond line', "answer": "naan"},
    {"question": "ما اسم هذا الطبق؟ 这道菜 😀", "answer": "para\u2028graph\u2029next\x85line\x0bvt\x1cfs"},
]
GOOD = {"question": "q", "answer": "a"}
IMAGE = {"bytes": b"any", "path": None}


class Row(TableRow):
    question: Text
    answer: Label
    kind: Literal["food", "drink"] | None = None
    note: OptionalText = None
    id: OptionalIdentifier = None


def write(path, rows):
    frame = pandas.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=path.suffix == ".jsonl", force_ascii=False)
    return path


def refused(path, image_column=None):
    """Returns the message of the error that the file gives."""
    with pytest.raises(DataError) as caught:
        read_file(path, image_column)
    assert str(path) in str(caught.value)
    return str(caught.value)


def invalid(rows, aliases=None):
    with pytest.raises(DataError) as caught:
        validated(Rows("data/../x.json", rows), Row, aliases)
    assert "data/../x.json" in str(caught.value)
    return str(caught.value)


# Reading files


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv", ".parquet", ".JSON", ".Csv"])
def test_each_format_gives_the_rows_as_they_were_written(tmp_path, ending):
    path = write(tmp_path / f"data{ending.lower()}", ROWS).rename(tmp_path / f"ot[h]*er{ending}")
    assert list(read_file(path).rows) == ROWS
    if ending != ".parquet":  # a byte order mark is no part of the first column
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        assert list(read_file(path).rows) == ROWS


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.csv", 'a;b\n"1;0";"x, y"\n', [{"a": "1;0", "b": "x, y"}]),
        ("a.csv", '"a";"b"\r\n1;0\r\n', [{"a": "1", "b": "0"}]),
        ("a.csv", "a\tb\n1\tx; y\n", [{"a": "1", "b": "x; y"}]),
        ("a.csv", '"a, c";b\n1;2\n', [{"a, c": "1", "b": "2"}]),
        ("a.csv", 'a,b\r\n1,"x\r\ny"\r\n\r\n2,z\r\n', [{"a": "1", "b": "x\ny"}, {"a": "2", "b": "z"}]),
        ("a.jsonl", '{"a": 1}\r\n\r\n  \r\n{"a": 2}\r\n', [{"a": 1}, {"a": 2}]),
    ],
)
def test_other_separators_and_line_ends_are_read_and_blank_lines_are_no_rows(tmp_path, name, content, rows):
    (tmp_path / name).write_bytes(content.encode())
    assert list(read_file(tmp_path / name).rows) == rows


def test_a_parquet_file_is_read_anew_and_without_a_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "data.parquet" / "no folder")
    for rows in (ROWS, ROWS[::-1]):
        path = write(tmp_path / "data.parquet", rows)
        os.utime(path, (1e9, 1e9))
        assert list(read_file(path).rows) == rows


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data.json", "[]", "holds no rows. Expected at least one"),
        ("data.csv", "question,answer\n", "holds no rows"),
        ("data.json", "", ", line 1, column 1: not JSON (Expecting value)"),
        ("data.json", '[{"a": 1},\n {"a" 2}]', ", line 2, column 7: not JSON (Expecting ':' delimiter)"),
        ("data.json", "{}", ", line 1: found {}. Expected a list of objects"),
        ("data.json", '[{"a": 1}, [2]]', ", row 2: found [2]. Expected an object"),
        ("data.json", "[" * 100_000 + "]" * 100_000, ", line 1: not JSON that can be read (maximum recursion"),
        ("data.jsonl", '{"a": 1}\n\n{"a": }\n', ", line 3, column 7: not JSON"),
        ("data.csv", 'a,b\n1,"x\n2,y\n', ", line 3: not CSV (unexpected end of data)"),
        ("data.csv", "a,b\n1,2\n1,2,3\n", ", row 3: found 3 fields. Expected 2, as in the header"),
        ("data.csv", "a,b,a\n1,2,3\n", ", row 1: found two columns of one name in a, b, a"),
        ("data.parquet", "PAR1 and more that is none PAR1", "not a readable Parquet file"),
        ("data.csv", b'[{"a": "\xe9"}]', "not UTF-8 text at byte 8. Save the file as UTF-8"),
        ("data.txt", "", "no data file by its name. Expected a file with one of the endings .json, .jsonl, .csv, .par"),
        ("nowhere.json", None, "no such file. Expected"),
        ("../data.json", None, "a folder. Expected"),  # a folder
    ],
)
def test_a_file_that_can_not_be_used_is_named_with_the_place_and_the_reason(tmp_path, name, content, said):
    folder = tmp_path / "data.json"
    folder.mkdir()
    if content is not None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert said in refused(folder / name)


def test_damaged_empty_and_forbidden_files_are_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "data.parquet", ROWS * 500)
    whole = path.read_bytes()
    for content in (whole[:-200], whole[:4] + b"\xff" * 36 + whole[40:]):
        path.write_bytes(content)
        assert "not a readable Parquet file" in refused(path)
    pyarrow.parquet.write_table(pyarrow.schema({"question": pyarrow.string()}).empty_table(), path)
    assert "holds no rows" in refused(path)

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_text", forbidden)
    (tmp_path / "data.json").touch()
    assert "can't be read (Permission denied)" in refused(tmp_path / "data.json")


def test_embedded_images_are_kept_apart_from_the_rows_and_names_of_image_files_stay_in_them(tmp_path):
    def written(cell):
        return write(tmp_path / "data.parquet", [{"question": "q", "image": cell}])

    for cell in (IMAGE, b"any"):
        table = read_file(written(cell), "image")
        assert (list(table.rows), table.embedded.column_names) == ([{"question": "q"}], ["image"])
    for cell in ("a.png", None):
        table = read_file(written(cell), "image")
        assert (list(table.rows), table.embedded) == ([{"question": "q", "image": cell}], None)
    for cell in (3, {"url": "x"}):
        assert "column 'image': holds" in refused(written(cell), "image")
    features = datasets.Features({"question": datasets.Value("string"), "image": datasets.Image()})
    data = datasets.Dataset.from_dict({"question": ["q"], "image": [IMAGE]}, features=features)
    table = from_dataset(data, "hub", "image", local=False)
    assert (list(table.rows), table.embedded is None) == ([{"question": "q"}], False)


# Checking rows


def test_texts_keep_the_white_space_around_them_and_blank_optional_ones_count_as_missing():
    rows = [{"question": " ما\u3000\n", "answer": " naan ", "note": "\tn", "id": 7}, GOOD | {"note": " ", "id": ""}]
    row, blank = validated(Rows("x", rows), Row)
    assert (row.question, row.answer, row.note, row.id) == (" ما\u3000\n", "naan", "\tn", "7")
    assert (blank.note, blank.id) == (None, None)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "q"}, "row 2, field 'answer': found nothing. Expected a value."),
        (GOOD | {"answer": None}, "row 2, field 'answer': found None. Expected a text."),
        (GOOD | {"answer": " \n"}, "row 2, field 'answer': found ' \\n'. Expected a text that isn't empty."),
        (GOOD | {"question": "\ud800"}, "row 2, field 'question': found '\\ud800'. Expected Unicode text"),
        (GOOD | {"kind": "x"}, "row 2, field 'kind': found 'x'. Input should be 'food' or"),
        (GOOD | {"id": True}, "row 2, field 'id': found True. Expected a text."),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_row_field_and_remedy(row, said):
    message = invalid([GOOD, row])
    assert said in message
    assert message.endswith(". Correct the row, or remove it.")


def test_columns_are_known_by_their_aliases_and_wrong_ones_are_named_with_the_nearest():
    aliases = {"q": "question"}
    for row in ({"q": "1", "answer": "a"}, {"Question": "1", "ANSWER": "a"}):
        assert validated(Rows("x", [row]), Row, aliases) == [Row(question="1", answer="a")]
    [row] = validated(Rows("hub", [GOOD | {"Answer": "b"}], local=False), Row)
    assert row.answer == "a"  # the column of that name goes first
    for row, said in (
        (GOOD | {"q": "1"}, "x.json: the columns 'q' and 'question' mean the same. Remove or rename one"),
        ({"question": "q", "anwser": "a"}, "no column 'answer'. Did you mean 'anwser'? Found the columns anwser, que"),
        (GOOD | {"knd": "food"}, "unknown column 'knd'. Did you mean 'kind'? Expected one of question, answer, kind"),
    ):
        assert said in invalid([row], aliases)


def test_unknown_columns_are_left_out_where_they_are_allowed_and_of_the_hub(caplog):
    table = Rows("mine.json", [GOOD | {"new": 1}])
    allowed = Settings(extra_columns="allow")
    with caplog.at_level(logging.WARNING):
        assert validated(table, Row, {}, allowed) == validated(table, Row, {}, allowed) == [Row(**GOOD)]
    assert [record.getMessage() for record in caplog.records] == ["mine.json: unknown columns are ignored: new"]
    with pytest.raises(DataError, match="CULTURE_TASKS_EXTRA_COLUMNS=allow"):
        validated(table, Row, {}, Settings())
    assert validated(Rows("hub", [GOOD | {"new": 1}], local=False), Row) == [Row(**GOOD)]


def test_a_fingerprint_never_changes_and_tells_rows_apart():
    # sha256 of '{"a":"\u00e9","b":[1,2]}\n', first 16 digits, from sha256sum
    assert fingerprint([{"b": [1, 2], "a": "é"}]) == fingerprint([{"a": "é", "b": [1, 2]}]) == "f7b3428a905bfe60"
    a, b = {"x": 1}, {"x": 2}
    assert len({fingerprint(rows) for rows in ([a, b], [b, a], [a], [a, a, b], [], [{"x": "1"}])}) == 6
