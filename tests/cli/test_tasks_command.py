"""``culture-tasks tasks``: every task, and where its data are now."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import datasets
import pytest

from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, entries
from culture_tasks.cli.main import main
from culture_tasks.cli.tasks import families
from culture_tasks.data import tables
from culture_tasks.data.rows import TableRow
from culture_tasks.data.tables import Table
from culture_tasks.data.tables import availability as availability_by_settings
from culture_tasks.harness import plug_ins
from culture_tasks.settings import Settings

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ON_THE_HUB = Table(model=TableRow, folder="bench", stems=("test",), hub="owner/CamelCase-eval", config="arabic")


def availability(tables, folder):
    return availability_by_settings(tables, Settings(data=folder))


def tasks(capsys, *options):
    assert main(["tasks", *options]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "care", "culturalvqa"),
    [
        (None, "not downloaded", "not downloaded"),  # whether the Hub has them is known only after a download
        ("{fixtures}", "local", "local"),
        ("{mine}", "/care: holds no ", "not downloaded"),
        ("{mine}/nowhere", "no such folder", "no such folder"),
    ],
)
def test_it_says_where_the_data_are_now(capsys, monkeypatch, tmp_path, fixture_data, data, care, culturalvqa):
    (tmp_path / "care").mkdir()
    monkeypatch.setattr(tables, "load_split", lambda *_, **__: pytest.fail("downloaded"))
    if data is not None:
        monkeypatch.setenv("CULTURE_TASKS_DATA", data.format(fixtures=fixture_data, mine=tmp_path))
    for row in json.loads(tasks(capsys, "--json")):
        for benchmark, said in (("care", care), ("culturalvqa", culturalvqa)):
            assert row["benchmark"] != benchmark or said in row["data_now"]


def test_by_default_the_tasks_are_listed_by_benchmark_in_the_terminal_s_width(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    text = tasks(capsys)
    assert max(map(len, text.splitlines())) <= 140
    names = re.findall(r"^  (\w+)(?: \+ \d+)?: ", text, re.MULTILINE)
    for together in (family for name in benchmarks() for family in families(name)):
        assert names.count(together[0].name) == 1
        assert not any(entry.name in names for entry in together[1:])
    assert {benchmark_of(name).title for name in entries()} <= {line.partition(" (")[0] for line in text.splitlines()}
    assert "  care + 3: question alone, sampled (App. B); ar, ja, zh; data not downloaded\n" in text
    assert " ".join(text.split()).count("put it into cedar/ of CULTURE_TASKS_DATA") == 1


def test_json_has_every_task(capsys, monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    listed = {each["name"]: each for each in json.loads(tasks(capsys, "--json"))}
    assert listed.keys() == entries().keys()
    assert listed["care"]["members"] == ["care_ar", "care_ja", "care_zh"]
    expected = {"kind": "task", "benchmark": "care", "modality": "text", "languages": ["ar"], "metric": "care_rating"}
    expected |= {"about": "question alone, sampled (App. B)", "lm_eval": True, "lmms_eval": True, "members": []}
    assert listed["care_ar"] == {"name": "care_ar", "data_now": "local", **expected}


def test_a_plug_in_that_is_missing_or_fails_is_named(capsys, monkeypatch):
    def broken():
        raise ImportError("no module named 'gone'")

    assert "plug-in" not in tasks(capsys)  # this installation's is there
    ours = ("culture_tasks", "culture_tasks.harness.lmms_eval.plugin:register", lambda: None)
    good = ("good", "good:models", lambda: list)
    own = (("other", "other.models:register", lambda: broken), ours, good)
    points = [SimpleNamespace(name=name, value=value, load=loads) for name, value, loads in own]
    monkeypatch.setattr(plug_ins, "entry_points", lambda group: points)
    text = tasks(capsys)
    assert "The lmms-eval plug-in 'other' (other.models:register) fails to load: ImportError: no module " in text
    assert "lmms-eval stops loading plug-ins there, so it may not know our tasks. Repair or remove it." in text
    assert not any(word in text for word in ("'good'", "reinstall"))
    monkeypatch.setattr(plug_ins, "entry_points", lambda group: [])
    assert "lmms-eval doesn't see this package: reinstall it" in tasks(capsys)


def test_downloaded_data_are_found_where_the_library_puts_them(tmp_path, monkeypatch, capsys):
    """``datasets`` writes names in snake case below the owner, and each configuration and revision apart."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    folder = tmp_path / "geyang627___care-eval" / "arabic" / "0.0.0" / COMMIT
    source = Table(model=TableRow, folder="care", stems=("test",), hub="geyang627/CARE-eval", config="arabic")
    folder.mkdir(parents=True)
    assert availability((source,), None) == "not downloaded"
    (folder / "care-eval-train.arrow").touch()
    unfinished = folder.with_name(f"{COMMIT}.incomplete")
    unfinished.mkdir()
    (unfinished / "care-eval-test.arrow").touch()
    assert availability((source,), None) == "not downloaded"
    for part in range(2):
        (folder / f"care-eval-test-0000{part}-of-00002.arrow").touch()
    assert availability((source,), None) == "downloaded"
    assert availability((ON_THE_HUB,), None) == "not downloaded"
    for revision, said in ((COMMIT, "downloaded"), ("f" * 40, "not downloaded")):
        monkeypatch.setenv("CULTURE_TASKS_REVISION", f"geyang627/CARE-eval={revision}")
        listed = {each["name"]: each["data_now"] for each in json.loads(tasks(capsys, "--json"))}
        assert listed["care_ar"] == said
