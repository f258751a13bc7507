"""A judge that lm-eval can't load here is found before any inference, and without loading its weights."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.endpoint.addresses import Secrets
from culture_tasks.judges.local import in_process


@pytest.fixture
def folder(tiny_lm, tmp_path):
    return shutil.copytree(tiny_lm, tmp_path / "copy")


@pytest.fixture
def gpus(monkeypatch):
    """Gives the machine this many GPUs, as far as torch says."""
    return lambda count: monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def check(text):
    backend, _, arguments = text.partition(",")
    in_process.check_model(backend, arguments, Secrets())


def refusal(text):
    with pytest.raises(JudgeUnreachableError, match="CULTURE_JUDGE") as caught:
        check(text)
    said = str(caught.value)
    assert said.startswith("judge lm_eval:")
    assert "\n" not in said
    return said


def test_a_model_that_can_be_loaded_passes_without_its_weights_being_read(folder):
    for file in folder.glob("*.safetensors"):
        file.write_bytes(b"no weights at all")
    check(f"hf,pretrained={folder},device=cpu")


def test_a_device_that_is_not_there(folder, gpus):
    for count, device, needed in ((0, "", 1), (0, ",device=cuda:0", 1), (1, ",device=cuda:2", 3)):
        gpus(count)
        said = refusal(f"hf,pretrained={folder}{device}")
        assert f"it needs {needed} CUDA GPUs, and this machine has {count}" in said
    check(f"hf,pretrained={folder}")


def test_a_serving_backend_needs_its_package_and_its_gpus(gpus, monkeypatch, folder):
    from lm_eval.api import registry

    monkeypatch.setattr(in_process, "find_spec", lambda name: None)
    assert "No module named 'sglang'). Install the package" in refusal("sglang,pretrained=x")
    monkeypatch.setattr(in_process, "find_spec", lambda name: True)
    monkeypatch.setattr(in_process.importlib.metadata, "version", lambda name: "0.20.0")
    monkeypatch.setattr(registry, "get_model", lambda name: object)
    gpus(2)
    assert "needs 4 CUDA GPUs" in refusal(f"vllm,pretrained={folder},tensor_parallel_size=4")
    check(f"vllm,pretrained={folder},tensor_parallel_size=2")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("vlm,pretrained=x", "Did you mean 'vllm'"),
        ("hf,batch_size=3", "needs the argument pretrained="),
        ("local-chat-completions,model=m", "Write CULTURE_JUDGE=openai:<model>, and set OPENAI_BASE_URL"),
        ("hf,pretrained=org/no-such-model,device=cpu", "the configuration of org/no-such-model can't be loaded"),
    ],
)
def test_a_model_that_is_nowhere(model, said):
    assert said in refusal(model)


SHARDS = {"weight_map": {"a": "model-1.safetensors", "b": "model.safetensors"}}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("model.safetensors", None, "holds no weights"),
        (
            "model.safetensors.index.json",
            json.dumps(SHARDS),
            "holds 1 of 2 weight files: model-1.safetensors is missing",
        ),
        ("model.safetensors.index.json", "[]", "model.safetensors.index.json can't be read (TypeError)"),
        ("config.json", "{", "the configuration of"),
        ("tokenizer.json", "{", "the tokenizer of"),
    ],
)
def test_a_folder_with_a_missing_or_damaged_part(folder, file, content, said):
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    assert said in refusal(f"hf,pretrained={folder},device=cpu")


def test_a_model_s_code_runs_only_if_the_user_says_so(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "configuration_mine.MineConfig"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "configuration_mine.py").write_text(
        "from transformers import PretrainedConfig\n"
        f"open({str(folder / 'it ran')!r}, 'w').close()\n"
        "class MineConfig(PretrainedConfig):\n    model_type = 'mine'\n"
    )
    assert "Add trust_remote_code=True" in refusal(f"hf,pretrained={folder},device=cpu")
    assert not (folder / "it ran").exists()
