"""A judge that lm-eval can't load here is found before any inference, and without loading its weights."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from support.fault_server import fails, says
from tiny_models import make_tiny_lm

from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.endpoint.endpoint_judge import readiness
from culture_tasks.judges.endpoint.redaction import Secrets
from culture_tasks.judges.local.in_process import InProcessJudge


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_tiny_lm(tmp_path_factory.mktemp("tiny") / "lm")


@pytest.fixture
def folder(tiny, tmp_path):
    shutil.copytree(tiny, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def gpus(monkeypatch):
    """Gives the machine this many GPUs, as far as torch says."""
    return lambda count: monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def check(text):
    backend, _, arguments = text.partition(",")
    return readiness.check_model(backend, arguments, Secrets())


def refusal(text):
    with pytest.raises(JudgeUnreachableError, match="CULTURE_JUDGE") as caught:
        check(text)
    said = str(caught.value)
    assert said.startswith("judge lm_eval:")
    assert "\n" not in said
    return said


def test_a_model_that_can_be_loaded_passes(folder):
    assert check(f"hf,pretrained={folder},device=cpu") is False


def test_no_weights_are_loaded(folder):
    for file in folder.glob("*.safetensors"):
        file.write_bytes(b"no weights at all")
    check(f"hf,pretrained={folder},device=cpu")


def test_an_unknown_backend():
    assert "Did you mean 'vllm'" in refusal("vlm,pretrained=x")


@pytest.mark.parametrize("backend", ["vllm", "sglang"])
def test_a_backend_that_is_not_installed(backend, monkeypatch):
    monkeypatch.setattr(readiness, "find_spec", lambda name: None)
    said = refusal(f"{backend},pretrained=x")
    assert f"No module named '{backend}'" in said
    assert "Install the package" in said


@pytest.mark.parametrize("device", ["", ",device=cuda", ",device=cuda:0"])
def test_a_device_that_is_not_there(folder, gpus, device):
    gpus(0)
    assert "it needs 1 CUDA GPUs, and this machine has 0" in refusal(f"hf,pretrained={folder}{device}")
    gpus(1)
    check(f"hf,pretrained={folder}{device}")
    assert "it needs 3 CUDA GPUs, and this machine has 1" in refusal(f"hf,pretrained={folder},device=cuda:2")


def test_a_serving_backend_needs_its_gpus(gpus, monkeypatch, folder):
    from lm_eval.api import registry

    monkeypatch.setattr(readiness, "find_spec", lambda name: True)
    monkeypatch.setattr(readiness.importlib.metadata, "version", lambda name: "0.20.0")
    monkeypatch.setattr(registry, "get_model", lambda name: object)
    gpus(2)
    assert "needs 4 CUDA GPUs" in refusal(f"vllm,pretrained={folder},tensor_parallel_size=4")
    check(f"vllm,pretrained={folder},tensor_parallel_size=2")


def test_a_model_that_is_nowhere():
    said = refusal("hf,pretrained=org/no-such-model,device=cpu")
    assert "the configuration of org/no-such-model can't be loaded" in said


def test_a_folder_without_weights(folder):
    for file in folder.glob("*.safetensors"):
        file.unlink()
    assert "holds no weights" in refusal(f"hf,pretrained={folder},device=cpu")


def test_a_shard_that_is_missing(folder):
    shards = {"weight_map": {"a": "model-1.safetensors", "b": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(shards))
    said = refusal(f"hf,pretrained={folder},device=cpu")
    assert "holds 1 of 2 weight files: model-1.safetensors is missing" in said


@pytest.mark.parametrize(("name", "part"), [("config.json", "configuration"), ("tokenizer.json", "tokenizer")])
def test_a_damaged_part(folder, name, part):
    (folder / name).write_text("{")
    assert f"the {part} of" in refusal(f"hf,pretrained={folder},device=cpu")


def test_code_of_the_model_s_own_runs_only_if_asked_for(folder):
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


def test_a_model_must_be_named():
    assert "needs the argument pretrained=" in refusal("hf,batch_size=3")


@pytest.fixture
def remote_judge_for(server, settings_for):
    made = []

    def make(**changes):
        url = server.url.replace("//", "//somebody:pass-word-0123@") + "/chat/completions?sig=query-0123456789"
        arguments = f"local-chat-completions,model=m,base_url={url},max_retries=1"
        made.append(InProcessJudge(arguments, settings_for(openai_base_url=None, **changes)))
        return made[-1]

    yield make
    for judge in made:
        judge.close()


@pytest.mark.filterwarnings("ignore")
def test_a_model_behind_an_api_is_asked_one_question(server, remote_judge_for, item):
    judge = remote_judge_for()
    judge.check([(LAVE, item)])
    judge.check([(LAVE, item)])
    assert len(server.requests) == 1
    assert "biryani" in server.requests[0].text
    assert judge.submit(LAVE, item).verdict().score == 2.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reply", [fails(401, message="bad pass-word-0123"), says("hm")], ids=["401", "unreadable"])
def test_a_model_behind_an_api_that_can_not_grade_is_found(server, remote_judge_for, item, reply, caplog):
    server.script(reply)
    with pytest.raises(JudgeUnreachableError, match="CULTURE_JUDGE=none") as caught:
        remote_judge_for().check([(LAVE, item)])
    assert not any(secret in str(caught.value) for secret in ("pass-word-0123", "query-0123456789"))


def test_a_judge_whose_verdicts_are_all_at_hand_need_not_load(remote_judge_for, server, item):
    judge = remote_judge_for()
    judge.submit(LAVE, item).verdict()
    judge.close()
    server.script(fails(401))
    remote_judge_for().check([(LAVE, item)], responses_known=True)
