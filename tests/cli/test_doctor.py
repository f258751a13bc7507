"""``culture-tasks doctor``: what it finds, what it says to do, its exit status, and what it must not show."""

from __future__ import annotations

import json
import shutil
from importlib import metadata
from types import SimpleNamespace

import datasets
import pytest
from support.fault_server import FaultServer, fails, hangs, says
from support.judging import KEY

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.cli import doctor
from culture_tasks.cli.doctor import Finding, examine
from culture_tasks.cli.main import main
from culture_tasks.judges.endpoint import endpoint_judge
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.pages import pictures
from culture_tasks.settings import Settings

DATA = {benchmark.title for benchmark in benchmarks().values()}


@pytest.fixture(autouse=True)
def nothing_at_hand(tmp_path, monkeypatch):
    """Nothing was downloaded, and no endpoint is waited for."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "none")
    monkeypatch.setattr(endpoint_judge, "_PATIENCE_BEFORE_A_RUN", Patience(longest=0.2, first=0.01, cap=0.02))


@pytest.fixture
def server(monkeypatch):
    running = FaultServer()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{KEY}@127.0.0.1:{running.port}/v1?token={KEY}")
    yield running
    running.close()


def finding(subject, **options) -> Finding:
    return next(found for name, found in examine(**options) if name == subject)


def states(*subjects):
    return [finding(subject).state for subject in subjects]


def test_the_settings_file_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert finding("settings").facts == {"file": None}
    (tmp_path / "culture-tasks.toml").write_text('judge = "none"\nsubset = 4\n', encoding="utf-8")
    found = finding("settings")
    assert (found.state, found.facts["keys"]) == ("ok", ["judge", "subset"])
    assert found.found == f"{tmp_path / 'culture-tasks.toml'}: judge, subset; environment variables prevail"
    assert finding("judge").facts == {"judge": "none"}


def test_without_a_judge_there_is_something_to_fix_and_all_fits_a_screen(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CULTURE_JUDGE_CACHE")
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 1
    said, err = capsys.readouterr()
    for part in ("fix   judge", "-> Set OPENAI_API_KEY", "1 to fix"):
        assert part in said
    lines = said.splitlines()
    assert (len(lines) <= 45, max(map(len, lines)) <= 80, err) == (True, True, "")
    assert not (tmp_path / ".cache" / "culture-tasks").exists()


def test_the_judge_is_asked_one_question_and_its_verdict_is_shown(server, monkeypatch, capsys):
    server.script(says("Rating: [[10]]"))
    monkeypatch.setenv("CULTURE_JUDGE", "openai:judge")
    judge = finding("judge")
    assert judge.state == "ok"
    assert judge.found.startswith("openai:judge: rated a right answer 10 on a scale of 1 to 10 (care_")
    assert (judge.facts["score"], judge.facts["tokens"]) == (10.0, 15)
    assert len(server.requests) == 1
    assert "What is the capital of Japan?" in server.requests[0].text
    assert main(["doctor"]) == main(["doctor", "--json"]) == 0
    assert KEY not in capsys.readouterr().out
    assert not Settings.from_environment().cache_file.exists()


def test_a_judge_that_rates_a_right_answer_low_limits_the_rate_or_is_no_model_is_noted(server, monkeypatch):
    server.script(says("Rating: [[4]]"))
    assert states("judge") == ["note"]
    server.script(fails(429))
    assert "limits the rate" in finding("judge").found
    sent = len(server.requests)
    assert "not asked" in finding("judge", ask_judge=False).found
    assert main(["doctor", "--no-judge"]) == 0
    for judge in ("lexical", "none"):
        monkeypatch.setenv("CULTURE_JUDGE", judge)
        assert states("judge") == ["note"]
    assert len(server.requests) == sent


def test_a_judge_that_can_not_grade_is_to_be_mended_and_no_secret_is_shown(server, monkeypatch, capsys):
    def broken(spec, settings):
        raise RuntimeError(f"no route to {settings.openai_base_url}")

    server.script(fails(401, message=f"bad key {KEY}"))
    judge = finding("judge")
    assert (judge.state, judge.found) == ("fix", "can't be used")
    assert "Correct the key (OPENAI_API_KEY)" in judge.remedy
    for options in ([], ["--json"]):
        assert main(["doctor", *options]) == 1
        said = capsys.readouterr()
        assert KEY not in said.out + said.err
    server.script(hangs)
    monkeypatch.setattr(doctor, "_JUDGE_SECONDS", 0.2)
    assert states("judge") == ["fix"]
    monkeypatch.setattr(doctor, "make_judge", broken)
    assert finding("judge") == Finding("fix", "can't be looked at (RuntimeError)")


def test_a_wrong_setting_is_said_and_the_rest_is_looked_at(monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE_TIMEOUT", "soon")
    findings = dict(examine())
    assert findings["settings"].state == "fix"
    assert "CULTURE_JUDGE_TIMEOUT='soon'" in findings["settings"].remedy
    assert "judge" not in findings
    assert {"packages", "GPU", "fonts", "disk", "Hub"} <= set(findings)


def test_data_are_looked_at_by_benchmark(monkeypatch, tmp_path, fixture_data):
    found = {subject: each for subject, each in examine() if subject in DATA}
    assert set(found) == DATA
    assert found["CARE"].found == "data: not downloaded; the first run downloads them"
    remedy = "Put it into cedar/ of CULTURE_TASKS_DATA. Source: local folder; the full data by request."
    assert found["CEDAR"] == Finding("note", "data: missing", remedy, found["CEDAR"].facts)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    assert {(each.state, each.found) for subject, each in examine() if subject in DATA} == {("ok", "data: local")}
    shutil.copytree(fixture_data / "care", tmp_path / "care")
    (tmp_path / "care" / "Arabic-test.json").write_text("")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    care = finding("CARE")
    assert (care.state, care.found) == ("fix", "data: 1 of 3 tables unusable, 2 of 3 tables local")
    assert care.remedy == f"{tmp_path / 'care' / 'Arabic-test.json'}: is empty."
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path / "nowhere"))
    assert states("data") == ["fix"]
    assert not DATA & dict(examine()).keys()


def test_data_are_read_where_that_is_asked_for(monkeypatch, tmp_path, fixture_data):
    for folder in ("care", "cedar"):
        shutil.copytree(fixture_data / folder, tmp_path / folder)
    file = tmp_path / "care" / "Arabic-test.json"
    rows = json.loads(file.read_text(encoding="utf-8"))
    rows[2]["answer"] = ""
    file.write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    findings = dict(examine(read_data=True))
    care, blocked = findings["CARE"], findings["CulturalVQA"]  # which would be downloaded, and there is no network
    assert (care.state, care.remedy) == ("fix", "`culture-tasks data check care` lists all.")
    assert "row 3, field 'answer'" in care.found
    assert (findings["CEDAR"].state, findings["CEDAR"].found) == ("ok", "data: read, and usable")
    assert (blocked.state, "HF_HUB_OFFLINE" in blocked.remedy) == ("fix", True)


def test_a_verdict_cache_that_can_not_be_used_is_to_be_mended(monkeypatch, tmp_path):
    file = tmp_path / "verdicts.sqlite3"
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(file))
    assert (states("verdict cache"), file.exists()) == (["ok"], False)
    file.write_bytes(b"no database" * 1000)
    assert states("verdict cache") == ["fix"]
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", "off")
    assert states("verdict cache") == ["note"]
    monkeypatch.setenv("CULTURE_JUDGE_CACHE", str(tmp_path / "deep" / "verdicts.sqlite3"))
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: path != tmp_path)
    assert states("verdict cache") == ["fix"]


def test_packages_are_compared_with_what_is_required_and_extras_are_listed(monkeypatch):
    packages = finding("packages")
    assert packages.state == "ok"
    assert packages.facts["versions"]["lm-eval"] == metadata.version("lm-eval")
    required = ["datasets>=999", "gone", "torch", 'gone; extra == "video"', 'torch; extra == "vllm"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: required)
    packages = finding("packages")
    assert (packages.state, packages.remedy) == ("fix", "pip install 'datasets>=999' 'gone'")
    assert f"not as needed: datasets {metadata.version('datasets')}, gone missing" in packages.found
    assert (packages.facts["extras"]["video"], packages.facts["extras"]["vllm"]) == (False, True)
    assert "not installed: video" in finding("extras").found


def test_fonts_gpu_and_disk_are_looked_at_and_a_look_that_fails_is_a_finding(monkeypatch):
    import torch

    monkeypatch.setattr(pictures, "choose", lambda texts: pictures.Fonts((), "中" if "中文" in texts else ""))
    missing = finding("fonts")
    assert (missing.state, missing.found) == ("note", "none for Chinese")
    assert "fonts-noto-cjk" in missing.remedy

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for program, state in ((None, "note"), ("/usr/bin/nvidia-smi", "fix")):
        monkeypatch.setattr(doctor.shutil, "which", lambda name, program=program: program)
        assert states("GPU") == [state]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    card = SimpleNamespace(name="H200", total_memory=141e9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: card)
    assert finding("GPU").found == "2 × H200 (141 GB)"

    for gigabytes, state in ((500, "ok"), (5, "note"), (0.5, "fix")):
        room = SimpleNamespace(free=gigabytes * 1e9)
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _, room=room: room)
        assert states("disk") == [state]

    def broken():
        raise RuntimeError("libcudart.so:\nno such file")

    monkeypatch.setattr(doctor, "_gpu", broken)
    assert finding("GPU") == Finding("fix", "can't be looked at (RuntimeError: libcudart.so: no such file)")


def test_json_has_every_finding_and_no_token(capsys, monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE", "none")
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    assert finding("Hub").facts["logged_in"]
    assert main(["doctor", "--json"]) == 0
    text = capsys.readouterr().out
    assert "hf_very_secret" not in text
    said = json.loads(text)
    assert said["well"]
    assert {each["subject"] for each in said["findings"]} == dict(examine()).keys()
    assert set(said["findings"][0]) == {"subject", "state", "found", "remedy", "facts"}


@pytest.mark.slow
def test_a_plug_in_or_a_harness_that_fails_is_named_with_what_it_does_to_us(tmp_path, monkeypatch):
    (tmp_path / "other_models.py").write_text("def register():\n    raise RuntimeError('no licence')\n")
    info = tmp_path / "other_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other_models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lmms_eval.models]\nother_models = other_models:register\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    other = doctor._harness("lmms_eval")
    names = other.facts["names"]
    assert other.found.startswith(f"doesn't know {names} of our {names} tasks and groups, such as ")
    said = "The lmms-eval plug-in 'other_models' (other_models:register) fails to load: RuntimeError: no licence. "
    assert (other.state, other.remedy.startswith(said)) == ("fix", True)
    (tmp_path / "lm_eval").mkdir()
    (tmp_path / "lm_eval" / "__init__.py").write_text("raise ImportError('libtorch is gone')")
    broken = doctor._harness("lm_eval")
    assert (broken.state, broken.found) == ("fix", "can't be started: ImportError: libtorch is gone")


def test_names_that_a_harness_takes_from_elsewhere_and_a_missing_plug_in_are_said(monkeypatch):
    facts = {"names": 3, "missing": [], "taken": {}}
    for taken, state, said in (
        ({}, "ok", "knows all 3 of our tasks and groups through `culture-tasks lm-eval run`"),
        (
            {"care": "/other/care.yaml"},
            "fix",
            "takes 1 of our 3 names from elsewhere, such as care from /other/care.yaml",
        ),
    ):
        probe = SimpleNamespace(returncode=0, stdout=json.dumps(facts | {"taken": taken}), stderr="")
        monkeypatch.setattr(doctor.subprocess, "run", lambda *_, probe=probe, **__: probe)
        found = finding("lm-eval", deep=True)
        assert (found.state, found.found) == (state, said)
    monkeypatch.setattr(doctor.metadata, "entry_points", lambda group: ())
    assert states("lmms-eval", "lm-eval") == ["fix", "ok"]
