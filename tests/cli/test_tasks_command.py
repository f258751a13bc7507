"""``culture-tasks tasks``: every task, and where its data are now."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from types import SimpleNamespace

import datasets
import pytest

from culture_tasks.benchmarks.registry import benchmark_of, entries
from culture_tasks.cli.main import main
from culture_tasks.cli.task_table import HEADER, alike, rows
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


def test_local_data_are_seen(capsys, monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    for row in table(capsys):
        if row["task"].startswith(("`care", "`culturalvqa")):
            assert row["data now"] == "local"


def test_without_local_data_nothing_is_promised(capsys):
    """Whether the Hub has the data is not known before they are downloaded."""
    for row in table(capsys):
        if row["task"].startswith(("`care", "`culturalvqa")):
            assert row["data now"] == "not downloaded"


def test_a_data_folder_that_is_missing_is_said_in_the_table(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path / "nowhere"))
    assert all("no such folder" in row["data now"] for row in table(capsys))


def test_a_benchmark_folder_without_its_file_is_said_in_its_rows_only(capsys, monkeypatch, tmp_path):
    (tmp_path / "care").mkdir()
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    for row in table(capsys):
        if row["task"].startswith("`care"):
            assert "holds no Arabic-test.json" in row["data now"]
        if row["task"].startswith("`culturalvqa"):
            assert row["data now"] == "not downloaded"


@pytest.mark.parametrize("width", [80, 100, 140])
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


def test_all_tasks_have_lines_of_their_own_where_asked(capsys):
    assert main(["tasks", "--all"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert set(entries()) <= set(names)
    assert main(["tasks", "--all", "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {cells(line)[0].strip("`") for line in lines if line.startswith("| `")} == set(entries())


def test_what_to_do_about_missing_data_is_said_once(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["tasks"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("put it into blend/ of CULTURE_TASKS_DATA") == 1
    assert text.count("put it into cedar/ of CULTURE_TASKS_DATA") == 1


def test_as_json_every_name_has_its_own_entry(capsys, monkeypatch, fixture_data):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    assert main(["tasks", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed.keys() == entries().keys()
    assert listed["care"]["members"] == ["care_ar", "care_ja", "care_zh"]
    assert listed["care_ar"] == {
        "name": "care_ar",
        "kind": "task",
        "benchmark": "care",
        "modality": "text",
        "languages": ["ar"],
        "metric": "care_rating",
        "about": "question alone, sampled (App. B)",
        "members": [],
        "lm_eval": True,
        "lmms_eval": True,
        "data_now": "local",
    }


def point(name, value, load):
    return SimpleNamespace(name=name, value=value, load=load)


def ours():
    return point("culture_tasks", "culture_tasks.harness.lmms_eval.plugin:register", lambda: None)


def broken():
    raise ImportError("no module named 'gone'")


@pytest.mark.parametrize("load", [broken, lambda: broken])
def test_another_plug_in_that_fails_is_named(capsys, monkeypatch, load):
    points = [point("other", "other.models:register", load), ours(), point("good", "good:models", lambda: list)]
    monkeypatch.setattr(index_probe, "entry_points", lambda group: points)
    assert main(["tasks"]) == 0
    said = capsys.readouterr().out
    assert (
        "The lmms-eval plug-in 'other' (other.models:register) fails to load: ImportError: no module named 'gone'. "
        "lmms-eval stops loading plug-ins there, so it may not know our tasks. Repair or remove it." in said
    )
    assert "'good'" not in said
    assert "reinstall" not in said


def test_a_missing_entry_point_of_ours_is_said(capsys, monkeypatch):
    monkeypatch.setattr(index_probe, "entry_points", lambda group: [])
    assert main(["tasks"]) == 0
    assert "lmms-eval doesn't see this package: reinstall it" in capsys.readouterr().out


def test_this_installation_s_entry_point_is_there(capsys):
    assert main(["tasks"]) == 0
    assert "plug-in" not in capsys.readouterr().out


def test_what_is_available_is_said_in_a_few_words(tmp_path):
    assert availability((ON_THE_HUB,), None) == "not downloaded"
    assert availability((BY_REQUEST,), None) == "missing: put it into asked/ of CULTURE_TASKS_DATA"
    assert availability((ON_THE_HUB, ON_THE_HUB), None) == "not downloaded"
    (tmp_path / "asked").mkdir()
    (tmp_path / "asked" / "test.json").write_text("[]")
    assert availability((BY_REQUEST,), tmp_path) == "local"
    assert availability((BY_REQUEST, ON_THE_HUB), tmp_path) == "local and not downloaded"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
    ],
)
def test_local_data_are_looked_into(tmp_path, content, said):
    (tmp_path / "asked").mkdir()
    (tmp_path / "asked" / "test.json").write_bytes(content)
    assert said in availability((BY_REQUEST,), tmp_path)


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


def test_the_folder_of_downloads_is_the_library_s_own(tmp_path, monkeypatch):
    """The path that this package looks at is the one that a builder of the Hub's data would write to."""
    from datasets.packaged_modules.json.json import Json

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    builder = Json(cache_dir=str(tmp_path), dataset_name="CulturalVQA", repo_id="mair-lab/CulturalVQA", hash=COMMIT)
    folder = Path(builder.cache_dir)
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps({"config_name": "default", "splits": {"test": {}}}))
    (folder / "cultural_vqa-test.arrow").touch()
    assert availability((Source("culturalvqa", ("test",), "mair-lab/CulturalVQA"),), None) == "downloaded"


def test_the_table_of_the_readme_has_no_column_of_this_machine():
    assert {len(row) for row in rows()} == {len(HEADER)}


def test_listing_tasks_downloads_and_configures_nothing(capsys, monkeypatch):
    monkeypatch.setattr(sources, "load_split", broken)
    handlers = list(logging.getLogger("culture_tasks").handlers)
    assert main(["tasks"]) == 0
    assert logging.getLogger("culture_tasks").handlers == handlers
