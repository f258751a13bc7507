"""A new project: everything to decide is in it, and nothing is overwritten."""

from __future__ import annotations

import json
import tomllib

import pytest

from culture_tasks.cli.main import main
from culture_tasks.cultures.labels import read_labels
from culture_tasks.cultures.project import Project
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
