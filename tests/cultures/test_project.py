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


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("language = .*", 'language = "qqq"', "field 'language': found 'qqq'. Expected a code, such as ko"),
        ("place = .*", 'place = "Korea"', "field 'place': found 'Korea'. Expected a code, such as KR"),
        ("title = .*", "title = 3", "field 'title': found 3. Expected a text of one line."),
        ("title = .*", r'title = "a\\nb"', r"field 'title': found 'a\nb'. Expected a text of one line."),
        ("seed = .*", "seed = -1", "field 'seed': found -1. Expected a whole number"),
        ("seed = .*", "sed = 1", "unknown field 'sed'. Did you mean 'seed'?"),
        (r"\[people\]", "people = 3\n[card]", "field 'people': found 3. Expected a section [people]."),
        (r"\[people\]", "[card]\npay = 3\n[people]", "section [card], field 'pay': found 3. Expected a text."),
        ("a = .*", '"A. B" = []', "field 'A. B': Expected a code of letters"),
        ("a = .*", "a = 3", "field 'a': found 3. Expected a list of steps"),
        ("a = .*", 'a = ["chek"]', "no step 'chek'. Did you mean 'check'?"),
        (r"\[options\]", "[options]\nblank = 1", "unknown option 'blank'. Did you mean 'blanks'?"),
        (r"\[options\]", '[options]\nblanks = "1"', "field 'blanks': found '1'. Expected a whole number."),
        (r"\[options\]", "[options]\nblanks = -2", "field 'blanks': found -2. Expected a number from 0 on."),
    ],
)
def test_a_decision_that_cannot_be_kept_is_named(tmp_path, before, after, message):
    path = project(tmp_path, "a").folder / CONFIG
    path.write_text(re.sub(before, after, path.read_text("utf-8"), count=1), encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
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
