"""``culture-tasks doctor``: what it finds, what it says to do, its exit status, and what it must not show."""

from __future__ import annotations

import json
from importlib import metadata

import datasets
import pytest
from support.fault_server import FaultServer, fails, says
from support.judging import KEY

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.cli import doctor
from culture_tasks.cli.doctor import Finding, examine
from culture_tasks.cli.main import main
from culture_tasks.harness import plug_ins
from culture_tasks.judges.endpoint import endpoint_judge
from culture_tasks.judges.endpoint.pacing import Patience
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
    assert (judge.facts["score"], judge.facts["tokens"]) == (10.0, 305)
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
    assert main(["doctor", "--json"]) == 1
    said = capsys.readouterr()
    assert KEY not in said.out + said.err
    content = json.loads(said.out)
    assert (content["well"], set(content["findings"][0])) == (False, {"subject", "state", "found", "remedy", "facts"})
    monkeypatch.setattr(doctor, "make_judge", broken)
    assert finding("judge") == Finding("fix", "can't be looked at (RuntimeError)")


def test_a_wrong_setting_is_said_and_the_rest_is_looked_at(monkeypatch):
    monkeypatch.setenv("CULTURE_JUDGE_TIMEOUT", "soon")
    findings = dict(examine())
    assert findings["settings"].state == "fix"
    assert "CULTURE_JUDGE_TIMEOUT='soon'" in findings["settings"].remedy
    assert "judge" not in findings
    assert {"packages", "lm-eval", "lmms-eval"} <= set(findings)


def test_data_are_looked_at_by_benchmark(monkeypatch, tmp_path, fixture_data):
    found = {subject: each for subject, each in examine() if subject in DATA}
    assert set(found) == DATA
    assert found["CARE"].found == "data: not downloaded; the first run downloads them"
    remedy = "Put it into cedar/ of CULTURE_TASKS_DATA. Source: local folder; the full data by request."
    assert found["CEDAR"] == Finding("note", "data: missing", remedy, found["CEDAR"].facts)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    assert {(each.state, each.found) for subject, each in examine() if subject in DATA} == {("ok", "data: local")}
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path / "nowhere"))
    assert states("data") == ["fix"]


def test_packages_are_compared_with_what_is_required(monkeypatch):
    packages = finding("packages")
    assert packages.state == "ok"
    assert packages.facts["versions"]["lm-eval"] == metadata.version("lm-eval")
    required = ["datasets>=999", "gone", "torch", 'gone; extra == "video"', 'torch; extra == "vllm"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda _: required)
    packages = finding("packages")
    assert (packages.state, packages.remedy) == ("fix", "pip install 'datasets>=999' 'gone'")
    assert f"not as needed: datasets {metadata.version('datasets')}, gone missing" in packages.found


def test_a_plug_in_that_is_missing_is_said(monkeypatch):
    assert states("lm-eval", "lmms-eval") == ["ok", "ok"]
    monkeypatch.setattr(plug_ins, "entry_points", lambda group: [])
    assert states("lmms-eval", "lm-eval") == ["fix", "ok"]


def test_a_look_that_fails_is_a_finding(monkeypatch):
    def broken():
        raise RuntimeError("libcudart.so:\nno such file")

    monkeypatch.setattr(doctor, "_packages", broken)
    assert finding("packages") == Finding("fix", "can't be looked at (RuntimeError: libcudart.so: no such file)")
