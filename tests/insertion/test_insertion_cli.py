"""The command ``culture-tasks insertion``, from the folder of data to the state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from safetensors import SafetensorError
from support.tiny_encoders import save_tiny_clip
from support.tiny_families import save_family
from support.tiny_world import write_release

from culture_tasks.cli.main import main
from culture_tasks.insertion.core import tensor_files


@pytest.fixture
def world(tmp_path):
    return write_release(tmp_path / "world", range(2), range(3))


@pytest.fixture
def fit(checkpoint, world, tmp_path, capsys):
    def run(*more, method="mcki", option="route_dim=8"):
        options = ["--pretrained", str(checkpoint), "--data", str(world), "--out", str(tmp_path / "state")]
        status = main(["insertion", "fit", "--method", method, *options, "--device", "cpu", "--set", option, *more])
        return status, capsys.readouterr()

    return run


def test_fits_and_is_done_the_second_time(fit, tmp_path, capsys):
    status, shown = fit()
    assert status == 0
    assert "mcki on 12 cases" in shown.out
    before = (tmp_path / "state" / "state.json").read_bytes()
    status, shown = fit()
    assert (status, shown.out.strip()) == (0, f"{tmp_path / 'state'}: is already fitted")
    assert (tmp_path / "state" / "state.json").read_bytes() == before
    assert main(["insertion", "show", str(tmp_path / "state")]) == 0
    state = json.loads(capsys.readouterr().out)
    assert (state["data"]["count"], state["tensors"]["fusion.weight"]) == (12, [8, 16])
    costs = {"cases", "seconds", "peak_gib"}
    assert set(state["report"]) == {"requests", "loss", "threshold", "training_accuracy"} | costs
    assert state["report"]["cases"] == 12
    assert state["report"]["seconds"] > 0
    assert state["report"]["peak_gib"] > 0.01

    status, shown = fit("--limit", "4", option="route_dim=4")
    assert status == 1
    assert "holds the state of another fit (route_dim 8, expected 4; " in shown.err
    assert "; count of the data 12, expected 4). Name another" in shown.err
    assert fit("--limit", "4", "--overwrite")[0] == 0


def test_a_method_with_a_model_of_its_own_is_fitted_too(fit, tmp_path, capsys):
    replacement = save_family("internvl", tmp_path / "replacement", seed=1)
    status, said = fit("--set", f"replacement={replacement}", "--limit", "2", method="serac", option="encoder=lexical")
    assert status == 0
    assert '"training_accuracy"' in said.out
    assert main(["insertion", "show", str(tmp_path / "state")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["replacement"]["source"] == str(replacement)
    assert "classifier.projection" in shown["tensors"]


@pytest.mark.parametrize(
    ("more", "change", "message"),
    [
        ([], {"method": "mkci"}, "Did you mean 'mcki'"),
        ([], {"method": "base"}, "Known are none"),
        ([], {"option": "route_dims=8"}, "Did you mean 'route_dim'"),
        ([], {"option": "route_dim"}, "Expected OPTION=VALUE"),
        (["--benchmark", "care"], {}, "no training cases of the benchmark 'care'. Choose one of crosscult"),
        (["--pretrained", "no/such/model"], {}, "'no/such/model' can't be loaded as a model of images and text"),
        (["--device", "cuda:99"], {}, "insertion: device='cuda:99' can't be used"),
        (
            ["--set", "encoder=clip"],
            {"method": "ike", "option": "max_text_length=8"},
            "ike: the sentence encoder 'clip' can't be used (CLIPModel",
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


def test_a_broken_image_is_found_before_the_model_is_loaded(fit, world, tmp_path):
    (world / "crosscult" / "images" / "1-2.png").write_bytes(b"no picture")
    status, said = fit("--pretrained", str(tmp_path / "nothing"))
    assert status == 1
    assert "broken image" in said.err


def test_a_full_disk_is_explained_and_nothing_is_lost(fit, tmp_path, monkeypatch):
    def full(*_, **__):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(tensor_files, "save_file", full)
        status, said = fit(method="ike", option="encoder=lexical")
    assert status == 1
    assert f"{tmp_path / 'state'}: the state can't be written (I/O error: No space left on device" in said.err
    assert fit(method="ike", option="encoder=lexical")[0] == 0


def _arguments(checkpoint, data, out):
    options = {"method": "mend", "pretrained": checkpoint, "data": data, "out": out, "checkpoint-minutes": 0}
    chosen = [part for option in ("layers=2", "rank=4", "epochs=5") for part in ("--set", option)]
    return [
        "insertion",
        "fit",
        *(part for name, value in options.items() for part in (f"--{name}", str(value))),
        *chosen,
    ]


@pytest.mark.slow
def test_a_killed_fit_goes_on_and_two_processes_fit_what_one_does(checkpoint, world, tmp_path, capsys):
    whole, out, shared = (tmp_path / name for name in ("whole", "killed", "shared"))
    assert main([*_arguments(checkpoint, world, whole), "--device", "cpu"]) == 0
    capsys.readouterr()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = ["-m", "culture_tasks.cli.main", *_arguments(checkpoint, world, out)]
    killed = subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.PIPE, text=True)
    while not (out / "training.safetensors").exists():
        assert killed.poll() is None, killed.stderr.read()
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not (out / "state.json").exists()
    assert main([*_arguments(checkpoint, world, out), "--device", "cpu"]) == 0
    shown = capsys.readouterr().err
    assert "mend: training (from step " in shown
    assert "loss " in shown
    assert _fitted(out) == _fitted(whole)
    assert not list(out.glob("training.safetensors*"))

    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = [sys.executable, *ranks, "-m", "culture_tasks.cli.main", *_arguments(checkpoint, world, shared)]
    both = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert both.returncode == 0, both.stderr
    assert both.stdout.count("mend on 12 cases") == 1
    assert _fitted(shared) == _fitted(whole)


def _fitted(folder):
    """What must be the same: the hash of what was trained, and what was measured, except for time and memory."""
    description = json.loads((folder / "state.json").read_text())
    measured = {name: value for name, value in description["report"].items() if name not in ("seconds", "peak_gib")}
    return description["tensors"], measured
