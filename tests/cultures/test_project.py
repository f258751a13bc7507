"""The files of a project that only grow: what a crash cut short harms nothing that was saved."""

from __future__ import annotations

import re

import pytest
from support.toy_culture import project, written

from culture_tasks.cultures.project import CONFIG, ENTRIES, Project, append_objects, read_objects
from culture_tasks.errors import DataError


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_line_that_a_crash_cut_short_is_left_out_and_replaced(tmp_path, cut):
    path = tmp_path / "lines"
    append_objects(path, [{"a": "كلمة"}, {"b": "ቃል\u2028"}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    kept = [content for _, content in read_objects(path)]
    whole_lines = whole[:-cut].count(b"\n") + (whole[-cut:].startswith(b"\n"))
    assert kept == [{"a": "كلمة"}, {"b": "ቃል\u2028"}][:whole_lines]
    append_objects(path, [{"c": 1}])
    assert [content for _, content in read_objects(path)] == [*kept, {"c": 1}]


@pytest.mark.parametrize(("field", "code"), [("language", "qqq"), ("place", "Korea")])
def test_a_code_that_is_none_is_named(tmp_path, field, code):
    path = project(tmp_path, "a").folder / CONFIG
    path.write_text(re.sub(rf"{field} = .*", f'{field} = "{code}"', path.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(DataError, match=f"field '{field}': found '{code}'. Expected a code, such as"):
        Project.open(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"), [("{", "line 2: not a JSON object"), ('{"step": "x"}', "line 2: no field 'row'")]
)
def test_a_damaged_line_is_named(tmp_path, line, message):
    opened = project(tmp_path, "a")
    opened.add(written(1, "a"), "test")
    with (tmp_path / ENTRIES).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    opened.add(written(2, "a"), "test")
    with pytest.raises(DataError, match=message):
        opened.entries()
