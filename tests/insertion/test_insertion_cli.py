"""The command ``culture-tasks insertion``: the methods, those of other packages too, and fits, from data to a state."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from safetensors import SafetensorError
from support.in_process import run_lmms_eval
from support.tiny_encoders import save_tiny_clip
from support.tiny_world import write_release

from culture_tasks import published
from culture_tasks.cli.main import main
from culture_tasks.insertion.core import state as insertion_state
from culture_tasks.insertion.core.method_registry import ENTRY_POINTS, method_class, method_names
from culture_tasks.insertion.methods import labels, paper_rows

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
LOCALITY = ["crosscult_single_cross_scenario_locality"]

SCOPED = {"epochs": 1, "threshold": 0.5, "replacement_layer": -1, "replacement": None}
SCOPED |= {"classifier_learning_rate": 1e-4, "replacement_learning_rate": 1e-5}
MEND = {"epochs": 1, "layers": 3, "weights": "mlp.up_proj+mlp.down_proj", "learning_rate": 1e-6, "edit_rate": 1e-4}
MEND |= {"rank": 1920, "edit_weight": 0.1, "generality_weight": 0.1, "locality_weight": 1.0, "clip_norm": 100.0}
PUBLISHED = {
    "finetune": {"steps": 20, "learning_rate": 1e-3},
    "ike": {"demonstrations": 16, "encoder": "sentence-transformers/all-MiniLM-L6-v2"},
    "mcki": {"route_dim": 1024, "logit_scale": 20.0, "cross_language_weight": 1.0, "cross_scenario_weight": 1.5},
    "mend": {**MEND, "cases_per_step": 2, "hidden_layers": 1},
    "mscke": {**SCOPED, "encoder": "openai/clip-vit-large-patch14"},
    "serac": {**SCOPED, "encoder": "sentence-transformers/all-MiniLM-L6-v2", "max_text_length": 512},
}


def test_the_methods_of_the_papers_tables_are_the_published_rows():
    rows = dict.fromkeys(row.keys["method"] for row in published.load("crosscult_table_2").rows)
    assert [labels()[name] for name in paper_rows()] == list(rows)
    assert set(paper_rows()) <= set(method_names())


def test_the_published_settings_are_the_defaults():
    for name, published_values in PUBLISHED.items():
        config = method_class(name).read_config({}).model_dump()
        assert {**config, **published_values} == config


def test_methods_are_listed_with_options_each_with_a_sentence(capsys):
    assert main(["insertion", "methods"]) == 0
    said = capsys.readouterr().out
    assert "demonstrations=16 (int): Retrieved demonstrations" in said
    assert "Needs a state: culture-tasks insertion fit --method mcki" in said
    methods = said.split("\n\n")
    assert [method.split("\n")[0] for method in methods] == list(method_names())
    for method in methods:
        _, about, _, *options = method.strip().split("\n")
        assert all(line.endswith(".") for line in (about, *options))


@pytest.fixture
def packages(monkeypatch, tmp_path):
    """The package of docs/python.md and one that is broken, as pip leaves them."""
    blocks = re.findall(r"^```(toml|python)\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [settings] = (text for kind, text in blocks if kind == "toml")
    [code] = (text for _, text in blocks if "class NormsMethod" in text)
    points = tomllib.loads(settings)["project"]["entry-points"][ENTRY_POINTS]
    for package, named in (("norms", points), ("proverbs", {"reminder": "proverbs.gone:ReminderMethod"})):
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        lines = [f"[{ENTRY_POINTS}]", *(f"{name} = {value}" for name, value in named.items())]
        (folder / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "norms_insertion.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("packages", "evaluating")
def test_the_method_of_the_page_inserts_with_its_options_and_a_broken_one_hides_no_other(checkpoint, capsys):
    assert main(["insertion", "methods"]) == 0
    listed = capsys.readouterr().out
    assert "Can't be used: insertion: proverbs.gone:ReminderMethod can't be used" in listed
    assert "norms (norms_insertion)\n  Norms: the scales of a layer's norms are trained on each sample." in listed
    assert "steps=10 (int): Steps on each insertion sample." in listed
    said = []
    for option in ("learning_rate=0.05", "steps=1"):
        text = f"pretrained={checkpoint},device=cpu,answers=off,method=norms,{option}"
        results = run_lmms_eval("knowledge_insertion", LOCALITY, model_args=text, bootstrap_iters=0, limit=4)
        said.append([sample["resps"][0][0][:2] for sample in results["samples"][LOCALITY[0]]])
        assert results["insertion_costs"]["insertions"] > 0
    assert any(after != before for after, before in said[0])
    assert said[0] != said[1]


@pytest.fixture
def release(tmp_path):
    return write_release(tmp_path / "world", range(2), range(3))


@pytest.fixture
def fit(checkpoint, release, tmp_path, capsys):
    def run(*more, method="mcki", option="route_dim=8"):
        options = ["--model", str(checkpoint), "--data", str(release), "--output", str(tmp_path / "state")]
        status = main(["insertion", "fit", "--method", method, *options, "--device", "cpu", "--set", option, *more])
        return status, capsys.readouterr()

    return run


def test_fits_once_the_disk_has_room_and_is_done_the_next_time(fit, tmp_path, monkeypatch):
    def full(*_, **__):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(insertion_state, "save_file", full)
        assert "state.safetensors can't be written (I/O error: No space left" in fit()[1].err
    status, shown = fit()
    assert status == 0
    assert "mcki on 12 cases" in shown.out
    before = (tmp_path / "state" / "state.json").read_bytes()
    status, shown = fit()
    assert (status, shown.out.strip()) == (0, f"{tmp_path / 'state'}: is already fitted")
    assert (tmp_path / "state" / "state.json").read_bytes() == before
    state = json.loads(before)
    assert state["data"]["count"] == 12
    costs = {"cases", "seconds", "peak_gib"}
    assert set(state["report"]) == {"requests", "loss", "threshold", "training_accuracy"} | costs
    assert state["report"]["cases"] == 12
    assert state["report"]["seconds"] is None  # it found the features of the first try
    assert state["report"]["peak_gib"] > 0.01

    status, shown = fit("--limit", "4", option="route_dim=4")
    assert status == 1
    assert "holds the state of another fit (route_dim 8, expected 4; " in shown.err
    assert "; count of the data 12, expected 4). Name another" in shown.err
    assert fit("--limit", "4", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("more", "change", "message"),
    [
        ([], {"method": "mkci"}, "Did you mean 'mcki'"),
        ([], {"method": "base"}, "Options: none"),
        ([], {"option": "route_dims=8"}, "Did you mean 'route_dim'"),
        ([], {"option": "route_dim"}, "Expected OPTION=VALUE"),
        (["--benchmark", "care"], {}, "no training cases of the benchmark 'care'. Choose one of crosscult"),
        (["--model", "no/such/model"], {}, "'no/such/model' can't be loaded as a model of images and text"),
        (["--device", "cuda:99"], {}, "insertion: device='cuda:99' can't be used"),
        (
            ["--set", "encoder=clip"],
            {"method": "ike", "option": "max_text_length=8"},
            "ike: the sentence encoder 'clip' can't be used (CLIPModel isn't a model of texts alone). Download one",
        ),
    ],
)
def test_mistakes_are_explained(fit, tmp_path, monkeypatch, more, change, message):
    monkeypatch.chdir(tmp_path)
    if "encoder=clip" in more:
        save_tiny_clip(tmp_path / "clip")
    status, said = fit(*more, **change)
    assert status == 1
    assert message in said.err


def _arguments(checkpoint, data, out):
    given = ["--method", "mend", "--model", str(checkpoint), "--data", str(data), "--output", str(out)]
    chosen = ["--set", "layers=2", "--set", "rank=4", "--set", "epochs=5", "--checkpoint-minutes", "0"]
    return ["insertion", "fit", *given, *chosen]


@pytest.mark.slow
def test_a_killed_fit_goes_on_to_the_same_state(checkpoint, release, tmp_path, capsys):
    whole, out = tmp_path / "whole", tmp_path / "killed"
    assert main([*_arguments(checkpoint, release, whole), "--device", "cpu"]) == 0
    capsys.readouterr()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = ["-m", "culture_tasks.cli.main", *_arguments(checkpoint, release, out)]
    killed = subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.PIPE, text=True)
    while not (out / "training.safetensors").exists():
        assert killed.poll() is None, killed.stderr.read()
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not (out / "state.json").exists()
    assert main([*_arguments(checkpoint, release, out), "--device", "cpu"]) == 0
    assert "mend: training (from step " in capsys.readouterr().err
    assert _fitted(out) == _fitted(whole)
    assert not list(out.glob("training.safetensors*"))


def _fitted(folder):
    """What must be the same: the hash of what was trained, and what was measured, except for time and memory."""
    description = json.loads((folder / "state.json").read_text())
    measured = {name: value for name, value in description["report"].items() if name not in ("seconds", "peak_gib")}
    return description["tensors"], measured
