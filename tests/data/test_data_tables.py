"""Reading tables: the good files in four formats, and one clear error for each kind of bad file."""

from __future__ import annotations

import csv
import json
import logging
from typing import Literal

import pyarrow
import pyarrow.parquet
import pytest
from pydantic import BaseModel

from culture_tasks.data.tables import (
    Label,
    OptionalIdentifier,
    OptionalText,
    Table,
    Text,
    extra_columns,
    from_dataset,
    read_batches,
    read_file,
    unique,
    validated,
)
from culture_tasks.errors import DataError

ROWS = [
    {"question": 'What is "x, y"?\nSecond line', "answer": "naan"},
    {"question": "ما اسم هذا الطبق؟ 这道菜 😀", "answer": "para\u2028graph\u2029next\x85line\x0bvt\x1cfs"},
]


class Row(BaseModel):
    question: Text
    answer: Label
    kind: Literal["food", "drink"] | None = None
    note: OptionalText = None
    id: OptionalIdentifier = None


def write(path, rows):
    if path.suffix == ".json":
        path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def refused(path, image_column=None):
    """Returns the message of the error that the file gives."""
    with pytest.raises(DataError) as caught:
        read_file(path, image_column)
    assert str(path) in str(caught.value)
    return str(caught.value)


def invalid(rows, model=Row, aliases=None, **table):
    with pytest.raises(DataError) as caught:
        validated(Table("data/../x.json", rows, **table), model, aliases)
    assert "data/../x.json" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv", ".parquet", ".JSON", ".Csv"])
def test_each_format_gives_the_rows_as_they_were_written(tmp_path, ending):
    path = write(tmp_path / f"data{ending.lower()}", ROWS)
    path = path.rename(tmp_path / f"other{ending}")
    assert list(read_file(path).rows) == ROWS


def test_texts_keep_the_white_space_around_them_and_labels_do_not():
    [row] = validated(Table("x.json", [{"question": " ما\u3000\n", "answer": " naan ", "note": "\tn"}]), Row)
    assert (row.question, row.answer, row.note) == (" ما\u3000\n", "naan", "\tn")
    for blank in ("", " \u3000\n"):
        assert "field 'question'" in invalid([{"question": blank, "answer": "naan"}])
        assert "Expected a text that isn't empty. Correct" in invalid([{"question": blank, "answer": "naan"}])


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv"])
def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path, ending):
    path = write(tmp_path / f"data{ending}", ROWS)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert list(read_file(path).rows) == ROWS


def test_windows_line_ends_and_blank_lines_are_no_rows(tmp_path):
    lines = tmp_path / "data.jsonl"
    lines.write_bytes(b'{"a": 1}\r\n\r\n  \r\n{"a": 2}\r\n')
    fields = tmp_path / "data.csv"
    fields.write_bytes(b'a,b\r\n1,"x\r\ny"\r\n\r\n2,z\r\n')
    assert [row["a"] for row in read_file(lines).rows] == [1, 2]
    assert list(read_file(fields).rows) == [{"a": "1", "b": "x\ny"}, {"a": "2", "b": "z"}]


def test_nested_json_stays_as_it_is(tmp_path):
    rows = [{"question": "q", "meta": {"list": [1, [2, {"deep": None}]], "text": "t"}}]
    assert list(read_file(write(tmp_path / "data.json", rows)).rows) == rows


@pytest.mark.parametrize("name", ["data[1].parquet", "da*ta.parquet", "data?.parquet"])
def test_a_parquet_file_may_have_any_name(tmp_path, name):
    (tmp_path / "[folder]").mkdir()
    assert list(read_file(write(tmp_path / "[folder]" / name, ROWS)).rows) == ROWS


def test_a_parquet_file_that_changed_is_read_anew(tmp_path):
    path = tmp_path / "data.parquet"
    assert list(read_file(write(path, ROWS)).rows) == ROWS
    assert list(read_file(write(path, ROWS[:1])).rows) == ROWS[:1]


def test_a_missing_file_is_named_with_the_allowed_endings(tmp_path):
    assert "no such file. Expected" in refused(tmp_path / "data.json")
    assert "no such file" in refused(tmp_path)


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    assert "'.xlsx' can't be read. Allowed are .json, .jsonl, .csv, .parquet" in refused(tmp_path / "data.xlsx")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.json", "[]"),
        ("data.jsonl", ""),
        ("data.jsonl", "\n \n"),
        ("data.csv", ""),
        ("data.csv", "question,answer\n"),
    ],
)
def test_a_file_without_rows_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert "holds no rows. Expected at least one" in refused(tmp_path / name)


def test_a_parquet_file_without_rows_is_refused(tmp_path):
    schema = pyarrow.schema({"question": pyarrow.string()})
    pyarrow.parquet.write_table(schema.empty_table(), tmp_path / "data.parquet")
    assert "holds no rows" in refused(tmp_path / "data.parquet")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data.json", "", ", line 1, column 1: not JSON (Expecting value)"),
        ("data.json", '[{"a": 1},\n {"a" 2}]', ", line 2, column 7: not JSON (Expecting ':' delimiter)"),
        ("data.json", "{}", "holds one object. Expected a list of objects"),
        ("data.json", '"text"', "holds one text"),
        ("data.json", '[{"a": 1}, [2]]', ", row 2: found [2]. Expected an object"),
        ("data.json", "[null]", ", row 1: found null"),
        ("data.json", "[" * 100_000 + "]" * 100_000, "JSON that can't be read (maximum recursion depth exceeded"),
        ("data.json", '[{"a": ' + "1" * 5_000 + "}]", "JSON that can't be read (Exceeds the limit"),
        ("data.jsonl", '{"a": 1}\n\n{"a": }\n', ", line 3, column 7: not JSON"),
        ("data.jsonl", '{"a": 1}\nnull\n', ", row 2: found null"),
        ("data.jsonl", '[{"a": 1}]', ', row 1: found [{"a": 1}]. Expected an object'),
        ("data.csv", 'a,b\n1,"x\n2,y\n', ", line 3: not CSV (unexpected end of data)"),
        ("data.csv", 'a,b\n1,"x"y\n', ", line 2: not CSV"),
        ("data.csv", 'a;b\n1;"x, y"\n', "columns are separated by semicolons, as in 'a;b'. Expected commas"),
        ("data.csv", "sep=;\na;b\n1;2\n", "columns are separated by semicolons"),
        ("data.csv", "a\tb\n1\t2\n", "columns are separated by tabs"),
        ("data.csv", "a,b\n1,2\n1,2,3\n", ", row 3: 3 fields, while the header has 2 columns"),
        ("data.csv", "a,b\n1\n", ", row 2: 1 fields, while the header has 2 columns"),
        ("data.csv", "a,b,a\n1,2,3\n", "2 columns are named 'a'"),
        ("data.csv", "a\n" + "x" * 200_000 + "\n", ", line 2: not CSV (field larger than field limit"),
        ("data.parquet", "", "not a readable Parquet file"),
        ("data.parquet", "PAR1 and more that is none PAR1", "not a readable Parquet file"),
    ],
)
def test_a_broken_file_is_named_with_the_place_and_the_reason(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    assert said in refused(tmp_path / name)


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = write(tmp_path / "data.parquet", ROWS * 500)
    path.write_bytes(path.read_bytes()[:-200])
    assert "not a readable Parquet file" in refused(path)


def test_parquet_with_damaged_pages_is_refused(tmp_path):
    path = write(tmp_path / "data.parquet", ROWS * 500)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    assert "not a readable Parquet file" in refused(path)


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv"])
@pytest.mark.parametrize(("encoding", "place"), [("latin-1", 8), ("utf-16", 0)])
def test_text_that_is_not_utf8_is_refused_with_the_byte(tmp_path, ending, encoding, place):
    path = tmp_path / f"data{ending}"
    path.write_bytes('[{"a": "é"}]'.encode(encoding))
    assert f"not UTF-8 text at byte {place}. Save the file as UTF-8" in refused(path)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "data.json", ROWS)
    monkeypatch.setattr("pathlib.Path.read_text", forbidden)
    assert "can't be read (Permission denied)" in refused(path)


IMAGE = {"bytes": b"any", "path": None}


@pytest.mark.parametrize("cell", [IMAGE, b"any"])
def test_embedded_images_are_kept_apart_from_the_rows(tmp_path, cell):
    path = write(tmp_path / "data.parquet", [{"question": "q", "image": cell}])
    table = read_file(path, "image")
    assert list(table.rows) == [{"question": "q"}]
    assert table.images.column_names == ["image"]


@pytest.mark.parametrize("cell", ["a.png", None])
def test_names_of_image_files_stay_in_the_rows(tmp_path, cell):
    table = read_file(write(tmp_path / "data.parquet", [{"question": "q", "image": cell}]), "image")
    assert list(table.rows) == [{"question": "q", "image": cell}]
    assert table.images is None


@pytest.mark.parametrize("cell", [3, ["a.png"], {"url": "x"}])
def test_an_image_column_of_another_type_is_refused(tmp_path, cell):
    path = write(tmp_path / "data.parquet", [{"question": "q", "image": cell}])
    assert "column 'image': holds" in refused(path, "image")
    assert "Expected images" in refused(path, "image")


def test_the_hub_s_image_type_counts_as_embedded():
    import datasets

    features = datasets.Features({"question": datasets.Value("string"), "image": datasets.Image()})
    data = datasets.Dataset.from_dict({"question": ["q"], "image": [IMAGE]}, features=features)
    table = from_dataset(data, "hub", "image", local=False)
    assert list(table.rows) == [{"question": "q"}]
    assert table.images is not None


def test_aliases_stand_for_their_fields():
    rows = validated(Table("x", [{"q": "1", "answer": "a"}]), Row, {"q": "question"})
    assert rows == [Row(question="1", answer="a")]


def test_a_column_under_two_names_is_refused():
    said = invalid([{"q": "1", "question": "2", "answer": "a"}], aliases={"q": "question"})
    assert "row 1: the columns 'q' and 'question' mean the same. Remove or rename one" in said


def test_a_missing_column_is_named_with_the_nearest_and_all_that_are_there():
    said = invalid([{"question": "q", "anwser": "a"}])
    assert "no column 'answer'. Did you mean 'anwser'? Found are anwser, question. Expected question, answer" in said


def test_an_unknown_column_of_a_local_file_is_refused():
    said = invalid([{"question": "q", "answer": "a", "knd": "food"}])
    assert "unknown column 'knd'. Did you mean 'kind'? Allowed are question, answer, kind" in said


def test_unknown_columns_of_local_files_are_left_out_where_they_are_allowed(caplog):
    table = Table("mine.json", [{"question": "q", "answer": "a", "new": 1}])
    with extra_columns("allow"), caplog.at_level(logging.WARNING):
        assert validated(table, Row) == validated(table, Row) == [Row(question="q", answer="a")]
    assert [record.getMessage() for record in caplog.records] == ["mine.json: unknown columns are ignored: new"]
    with extra_columns("refuse"), pytest.raises(DataError, match="CULTURE_TASKS_EXTRA_COLUMNS=allow"):
        validated(table, Row)


def test_an_object_with_one_name_twice_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"question": "q", "answer": "a"}\n{"question": "q", "question": "r"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.jsonl, line 2: .*'question' occurs 2 times in one object"):
        read_file(path)


def test_an_unknown_column_of_the_hub_is_left_aside():
    table = Table("hub", [{"question": "q", "answer": "a", "new": 1}], local=False)
    assert validated(table, Row) == [Row(question="q", answer="a")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "q"}, "row 2, field 'answer': found nothing. Expected a value."),
        ({"question": "q", "answer": None}, "row 2, field 'answer': found None. Expected a text."),
        ({"question": "q", "answer": 1995}, "row 2, field 'answer': found 1995. Expected a text."),
        ({"question": "q", "answer": ["a"]}, "row 2, field 'answer': found ['a']. Expected a text."),
        ({"question": "q", "answer": " \n"}, "row 2, field 'answer': found ' \\n'. Expected a text that isn't empty."),
        ({"question": "\ud800", "answer": "a"}, "row 2, field 'question': found '\\ud800'. Expected Unicode text"),
        ({"question": "q", "answer": "a", "kind": "x"}, "row 2, field 'kind': found 'x'. Input should be 'food' or"),
        ({"question": "q", "answer": "a", "id": 1.5}, "row 2, field 'id': found 1.5. Expected a text."),
        ({"question": "q", "answer": "a", "id": True}, "row 2, field 'id': found True. Expected a text."),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_row_field_found_and_needed(row, said):
    message = invalid([{"question": "q", "answer": "a"}, row])
    assert said in message
    assert message.endswith(". Correct the row, or remove it.")


def test_rows_of_a_csv_file_are_numbered_as_a_spreadsheet_shows_them(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("question,answer\nq,a\nq,\n")
    with pytest.raises(DataError, match=r"data\.csv, row 3, field 'answer': found ''"):
        validated(read_file(path), Row)


def test_a_part_of_a_table_keeps_the_numbers_of_its_rows():
    with pytest.raises(DataError, match="x, row 4, field 'answer'"):
        validated(Table("x", [{"question": "q", "answer": ""}] * 5, first_row=2).part([2]), Row)


def test_blank_optional_texts_and_ids_count_as_missing_and_numbers_as_ids():
    rows = validated(Table("x", [{"question": "q", "answer": "a", "note": " ", "id": ""}]), Row)
    assert (rows[0].note, rows[0].id) == (None, None)
    assert validated(Table("x", [{"question": "q", "answer": "a", "id": 7}]), Row)[0].id == "7"


def test_ids_are_numbered_where_no_row_has_one():
    assert list(unique(Table("x", [{}] * 2), [None, None], "id")) == ["0", "1"]
    assert list(unique(Table("x", [{}] * 2), ["b", "a"], "id")) == ["b", "a"]


def test_an_id_that_comes_twice_is_refused_with_both_rows():
    with pytest.raises(DataError, match=r"x, row 3, field 'id': 'a' is also the id of x, row 1"):
        list(unique(Table("x", [{}] * 3), ["a", "b", "a"], "id"))


def test_ids_in_some_rows_only_are_refused():
    with pytest.raises(DataError, match=r"x, row 2, field 'id': found nothing, while x, row 1 has 'a'"):
        list(unique(Table("x", [{}] * 2), ["a", None], "id"))


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8])
def test_batches_are_the_same_rows_with_the_same_numbers(tmp_path, ending, size):
    path = write(tmp_path / f"data{ending}", [{"a": f"row {number}"} for number in range(7)])
    whole, batches = read_file(path), list(read_batches(path, size))
    assert [row for batch in batches for row in batch.rows] == list(whole.rows)
    assert {len(batch.rows) for batch in batches[:-1]} <= {size}
    numbered = [batch.where(index) for batch in batches for index in range(len(batch.rows))]
    assert numbered == [whole.where(index) for index in range(7)]


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
def test_a_batch_comes_before_what_stands_after_it_is_read(tmp_path, ending):
    path = write(tmp_path / f"data{ending}", [{"a": "1", "b": "2"}] * 4)
    path.write_text(path.read_text(encoding="utf-8").rstrip() + "\n{broken", encoding="utf-8")
    batches = read_batches(path, 2)
    assert [len(next(batches).rows), len(next(batches).rows)] == [2, 2]
    with pytest.raises(DataError, match=r"data\.\w+, (line 5|row 6)"):
        next(batches)


def test_lines_after_the_first_may_be_no_utf8_at_a_byte_that_is_named(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n{"a": "\xe9"}\n')
    assert "not UTF-8 text at byte 19" in refused(path)


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".json"])
def test_batches_of_a_file_without_rows_are_refused(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    path.write_text("[]" if ending == ".json" else "\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no rows"):
        list(read_batches(path, 10))
