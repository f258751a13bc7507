"""``culture-tasks tasks``: every task, and where its data are now."""

from __future__ import annotations

import json
import logging
import re
from types import SimpleNamespace

import datasets
import pytest

from culture_tasks.benchmarks.registry import benchmark_of, entries
from culture_tasks.cli.main import main
from culture_tasks.cli.tasks import HEADER, alike
from culture_tasks.data import sources
from culture_tasks.data.sources import Source, availability
from culture_tasks.harness import index_probe

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ON_THE_HUB = Source("bench", ("test",), "owner/CamelCase-eval", config="arabic")
BY_REQUEST = Source("asked", ("test",), None)


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(capsys):
    assert main(["tasks", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [dict(zip(cells(lines[0]), cells(line), strict=True)) for line in lines[2:] if line.startswith("|")]


def test_the_table_has_every_task_and_its_columns(capsys):
    body = table(capsys)
    assert list(body[0]) == [*HEADER, "data now"]
    text = " ".join(row["task"] for row in body)
    shown = [name for name in entries() if f"`{name}`" in text]
    left_out = sum(int(number) for number in re.findall(r"… (\d+) more …", text))
    assert len(shown) + left_out == len(entries())
    assert {name for name in entries() if benchmark_of(name).name in ("care", "culturalvqa")} <= set(shown)
    assert all(all(row.values()) for row in body)


@pytest.mark.parametrize(
    ("data", "care", "culturalvqa"),
    [
        (None, "not downloaded", "not downloaded"),  # whether the Hub has them is known only after a download
        ("{fixtures}", "local", "local"),
        ("{mine}", "holds no Arabic-test.json", "not downloaded"),
        ("{mine}/nowhere", "no such folder", "no such folder"),
    ],
)
def test_the_table_says_where_the_data_are_now(capsys, monkeypatch, tmp_path, fixture_data, data, care, culturalvqa):
    (tmp_path / "care").mkdir()
    if data is not None:
        monkeypatch.setenv("CULTURE_TASKS_DATA", data.format(fixtures=fixture_data, mine=tmp_path))
    for row in table(capsys):
        for benchmark, said in (("care", care), ("culturalvqa", culturalvqa)):
            assert not row["task"].startswith(f"`{benchmark}") or said in row["data now"]


@pytest.mark.parametrize("width", [80, 140])
def test_by_default_the_tasks_are_listed_by_benchmark_in_the_terminal_s_width(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["tasks"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= width
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line.strip()]
    for together in alike():
        assert names.count(together[0].name) == 1
        assert not any(entry.name in names for entry in together[1:])
    assert {benchmark_of(name).title for name in entries()} <= {line.partition(" (")[0] for line in text.splitlines()}
    assert "care           + 3   question alone, sampled (App. B)" in text
    assert " ".join(text.split()).count("put it into cedar/ of CULTURE_TASKS_DATA") == 1


def test_all_tasks_have_lines_of_their_own_where_asked(capsys):
    assert main(["tasks", "--all"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert set(entries()) <= set(names)
    assert main(["tasks", "--all", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {cells(line)[0].strip("`") for line in lines if line.startswith("| `")} == set(entries())


def test_as_json_every_name_has_its_own_entry(capsys, monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    assert main(["tasks", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed.keys() == entries().keys()
    assert listed["care"]["members"] == ["care_ar", "care_ja", "care_zh"]
    expected = {"kind": "task", "benchmark": "care", "modality": "text", "languages": ["ar"], "metric": "care_rating"}
    expected |= {"about": "question alone, sampled (App. B)", "lm_eval": True, "lmms_eval": True, "members": []}
    assert listed["care_ar"] == {"name": "care_ar", "data_now": "local", **expected}


def test_a_plug_in_that_is_missing_or_fails_is_named(capsys, monkeypatch):
    def broken():
        raise ImportError("no module named 'gone'")

    def point(name, value, load):
        return SimpleNamespace(name=name, value=value, load=load)

    def said(*points):
        if points:
            monkeypatch.setattr(index_probe, "entry_points", lambda group: points[0])
        assert main(["tasks"]) == 0
        return capsys.readouterr().out

    assert "plug-in" not in said()  # this installation's is there
    ours = point("culture_tasks", "culture_tasks.harness.lmms_eval.plugin:register", lambda: None)
    good = point("good", "good:models", lambda: list)
    for load in (broken, lambda: broken):
        text = said([point("other", "other.models:register", load), ours, good])
        assert "The lmms-eval plug-in 'other' (other.models:register) fails to load: ImportError: no module " in text
        assert "lmms-eval stops loading plug-ins there, so it may not know our tasks. Repair or remove it." in text
        assert not any(word in text for word in ("'good'", "reinstall"))
    assert "lmms-eval doesn't see this package: reinstall it" in said([])


def test_what_is_available_is_said_in_a_few_words(tmp_path):
    assert availability((ON_THE_HUB, ON_THE_HUB), None) == "not downloaded"
    assert availability((BY_REQUEST,), None) == "missing: put it into asked/ of CULTURE_TASKS_DATA"
    file = tmp_path / "asked" / "test.json"
    file.parent.mkdir()
    for content, said in (
        ("[]", "local"),
        (" \n", "is empty"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
    ):
        file.write_text(content)
        assert said in availability((BY_REQUEST,), tmp_path)
    file.write_text("[]")
    assert availability((BY_REQUEST, ON_THE_HUB), tmp_path) == "local and not downloaded"


def test_downloaded_data_are_found_where_the_library_puts_them(tmp_path, monkeypatch):
    """``datasets`` writes names in snake case below the owner, and each configuration apart."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    folder = tmp_path / "owner___camel_case-eval" / "arabic" / "0.0.0" / COMMIT
    folder.mkdir(parents=True)
    assert availability((ON_THE_HUB,), None) == "not downloaded"
    info = json.dumps({"config_name": "arabic", "splits": {"train": {}, "test": {"shard_lengths": [5, 5]}}})
    (folder / "dataset_info.json").write_text(info)
    (folder / "camel_case-eval-train.arrow").touch()
    (folder / "camel_case-eval-test-00000-of-00002.arrow").touch()
    unfinished = folder.with_name(f"{COMMIT}.incomplete")
    unfinished.mkdir()
    (unfinished / "dataset_info.json").write_text(json.dumps({"config_name": "arabic", "splits": {"test": {}}}))
    (unfinished / "camel_case-eval-test.arrow").touch()
    assert availability((ON_THE_HUB,), None) == "not downloaded"
    (folder / "camel_case-eval-test-00001-of-00002.arrow").touch()
    assert availability((ON_THE_HUB,), None) == "downloaded"
    other = Source("bench", ("test",), "owner/CamelCase-eval", config="chinese")
    assert availability((other,), None) == "not downloaded"


def test_a_download_of_another_revision_than_the_chosen_one_does_not_count(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    folder = tmp_path / "geyang627___care-eval" / "arabic" / "0.0.0" / COMMIT
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"config_name": "arabic", "splits": {"test": {}}}))
    (folder / "care-eval-test.arrow").touch()
    for revision, said in ((COMMIT, "downloaded"), ("f" * 40, "not downloaded")):
        monkeypatch.setenv("CULTURE_TASKS_REVISION", f"geyang627/CARE-eval={revision}")
        assert main(["tasks", "--json"]) == 0
        listed = {each["name"]: each["data_now"] for each in json.loads(capsys.readouterr().out)}
        assert listed["care_ar"] == said


def test_listing_tasks_downloads_and_configures_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sources, "load_split", lambda *_, **__: pytest.fail("downloaded"))
    handlers = list(logging.getLogger("culture_tasks").handlers)
    assert main(["tasks"]) == 0
    assert logging.getLogger("culture_tasks").handlers == handlers
