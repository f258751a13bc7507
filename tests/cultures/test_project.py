"""The folder of a project: a new one has everything to decide, and what was saved in one outlives a crash."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from support.toy_culture import project, written

from culture_tasks.cli.main import main
from culture_tasks.cultures.labels import read_labels
from culture_tasks.cultures.project import CONFIG, ENTRIES, Project, append_objects, read_objects
from culture_tasks.errors import DataError

NEW = ["culture", "new", "ethiopia", "--like", "toy", "--language"]


def test_a_new_project_opens_with_defaults_labels_and_a_guide(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*NEW, "am", "--title", 'The "Horn"\n\x7f\u202e of\\n']) == 0
    project = Project.open(tmp_path / "ethiopia")
    assert (project.config.place, project.config.title) == ("ET", 'The "Horn" of\\n')
    assert project.config.options == {"blanks": 2, "script": ""}
    text = (tmp_path / "ethiopia" / "culture.toml").read_text("utf-8")
    assert '# How many questions each person writes. "Two" is enough: \\ no more.\nblanks = 2\n' in text
    assert "# Steps: write, check, rate.\n" in text
    assert {"licence", "consent", "pay", "ethics", "contact"} <= tomllib.loads(text)["card"].keys()
    guide = (tmp_path / "ethiopia" / "README.md").read_text("utf-8")
    assert all(part in guide for part in ("Nobody's paper.", "### 1. Write (`write`)", "Its answers are short."))
    labels = json.loads((tmp_path / "ethiopia" / "labels.json").read_text("utf-8"))
    assert labels["direction"] == "ltr"
    assert {"Save the answers", "A joke", "Write", "Sort by rating", "What it is."} <= labels["labels"].keys()
    assert set(labels["labels"].values()) == {""}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ethiopia"]
    before = text
    assert main([*NEW, "ar"]) == 1
    assert "ethiopia is there already" in capsys.readouterr().err
    assert (tmp_path / "ethiopia" / "culture.toml").read_text("utf-8") == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["culture", "new", "korea", "--like", "toy", "--language", "ko"], "'korea' isn't a country"),
        ([*NEW, "qqq"], "--language 'qqq': no such language"),
        ([*NEW, "am", "--place", "QQ"], "--place 'QQ': no such place"),
        ([*NEW, "am", "--way", "B"], "field 'way': found 'B'"),
        (["culture", "new", "Bad Name", "--like", "toy", "--language", "am", "--place", "ET"], "field 'name'"),
        (["culture", "new", "x", "--like", "toys", "--language", "am", "--place", "ET"], "Did you mean 'toy'?"),
    ],
)
def test_what_cannot_be_made_leaves_nothing_behind(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert ".ethiopia-" not in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "can't be read"),
        ("[]", "Expected an object with 'direction'"),
        ('{"direction": "up", "labels": {}}', "'ltr' or 'rtl'"),
        ('{"direction": "rtl", "labels": {"Save": 3}}', "found 3. Expected a text."),
        ('{"direction": "rtl", "labels": {"{done} of {all}": "{done} من"}}', "Expected {done} and {all} in it"),
    ],
)
def test_labels_that_cannot_be_used_are_named(tmp_path, content, message):
    (tmp_path / "labels.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_labels(tmp_path, "ar")
    assert message in str(error.value)


def test_languages_have_their_direction(tmp_path):
    assert [read_labels(tmp_path, code).direction for code in ("ar", "ur", "dv", "am", "ko")] == [
        *["rtl"] * 3,
        "ltr",
        "ltr",
    ]


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
