"""An adapter that is merged: the same model, with its manifest, written whole or not at all."""

import importlib.util
import json
import shutil

import pytest

from culture_tasks.cli.main import main
from culture_tasks.errors import MissingExtraError, SettingsError
from culture_tasks.preferences.merging import merge
from culture_tasks.results.training_manifest import Manifest, RatingOrigin, Rule

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def logits(model):
    import torch

    return model(input_ids=torch.arange(40, 60)[None]).logits.detach()


def loaded(folder):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()


@pytest.fixture(scope="module")
def adapter(tiny_lm, tmp_path_factory):
    """An adapter with random weights in a folder as `build` and TRL leave it."""
    import peft
    import torch

    folder = tmp_path_factory.mktemp("prefs")
    rated = RatingOrigin(kind="people", name="people")
    manifest = Manifest(sources=(), rated_by=rated, rule=Rule(), seed=0, counts={}, items=("0" * 16,))
    (folder / "manifest.json").write_text(manifest.as_json(), encoding="utf-8")
    torch.manual_seed(1)
    config = peft.LoraConfig(target_modules="all-linear", init_lora_weights=False, task_type="CAUSAL_LM")
    peft.get_peft_model(loaded(tiny_lm), config).save_pretrained(folder / "models" / "dpo.lora")
    return folder / "models" / "dpo.lora"


@pytest.fixture
def own(adapter, tmp_path):
    """A copy of the adapter, far from its manifest, which doesn't name its model."""
    folder = shutil.copytree(adapter, tmp_path / "own")
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": None}))
    return folder


def test_the_merged_model_is_the_model_with_its_adapter(adapter, tiny_lm, tmp_path, capsys):
    import peft
    import torch
    from transformers import AutoTokenizer

    assert main(["preferences", "merge", str(adapter), "-o", str(tmp_path / "merged")]) == 0
    assert capsys.readouterr().out == f"{adapter} merged into {tiny_lm}: {tmp_path / 'merged'}\n"
    base, merged = loaded(tiny_lm), loaded(tmp_path / "merged")
    assert not torch.allclose(logits(base), logits(merged), atol=1e-2)
    torch.testing.assert_close(
        logits(peft.PeftModel.from_pretrained(base, adapter)), logits(merged), atol=1e-3, rtol=1e-3
    )
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "merged")
    assert tokenizer.chat_template == AutoTokenizer.from_pretrained(tiny_lm).chat_template
    assert Manifest.load(tmp_path / "merged").items == ("0" * 16,)


def refused(tmp_path, adapter, **options):
    with pytest.raises(SettingsError) as error:
        merge(adapter, tmp_path / "merged", **options)
    assert not list(tmp_path.glob("*merged*"))
    return str(error.value)


def test_an_adapter_that_doesnt_name_its_model_needs_base(own, tiny_lm, tmp_path):
    assert "Name it with --base" in refused(tmp_path, own)
    assert merge(own, tmp_path / "merged", base=str(tiny_lm)) == str(tiny_lm)
    assert not (tmp_path / "merged" / "manifest.json").exists()


def test_a_model_that_isnt_there_or_isnt_the_adapters_is_refused_in_one_line(own, tiny_lm, tmp_path):
    from transformers import AutoConfig, AutoModelForCausalLM

    message = refused(tmp_path, own, base=str(tmp_path / "nothing"))
    assert f"can't be merged into {tmp_path / 'nothing'}" in message
    assert "\n" not in message
    other = AutoConfig.from_pretrained(tiny_lm)
    other.update({"num_hidden_layers": 1, "layer_types": ["full_attention"]})  # peft takes that
    AutoModelForCausalLM.from_config(other).save_pretrained(tmp_path / "other")
    assert "are in one of the two alone" in refused(tmp_path, own, base=str(tmp_path / "other"))


def test_without_an_adapter_a_new_folder_or_peft_the_way_out_is_named(own, tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "model.safetensors").touch()
    assert "full/adapter_config.json can't be read (No such file or directory)" in refused(tmp_path, tmp_path / "full")
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "adapter_config.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(SettingsError, match="it is no JSON object"):
        merge(tmp_path / "list", tmp_path / "merged")
    with pytest.raises(SettingsError, match="is there already"):
        merge(own, tmp_path / "full", base="x")
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["model.safetensors"]
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "peft" else find(name, *rest))
    with pytest.raises(MissingExtraError, match=r"culture-tasks\[preferences\]"):
        merge(own, tmp_path / "merged", base="x")
