"""Which weights are edited, computing with others in their place, and putting them back, over all families."""

from __future__ import annotations

import pytest
import torch
from support.tiny_families import FAMILIES, family

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.weight_edits import (
    EditedWeights,
    decoder_layers,
    last_layers,
    layer_linears,
    layer_weights,
    with_weights,
)

MLP = ["mlp.up_proj", "mlp.down_proj"]


@pytest.fixture(params=sorted(FAMILIES))
def model(request):
    return family(request.param).model


def test_layers_are_the_language_models(model):
    count = model.config.get_text_config().num_hidden_layers
    assert decoder_layers(model) == [f"model.language_model.layers.{layer}" for layer in range(count)]
    assert last_layers(model, 1) == [f"model.language_model.layers.{count - 1}"]


def test_more_layers_than_there_are_are_refused(model):
    with pytest.raises(SettingsError, match="layers=9, but the model has"):
        last_layers(model, 9)


def test_weights_of_every_layer_are_matrices_of_attention_and_mlp(model):
    for layer in decoder_layers(model):
        weights = layer_weights(model, layer, ["attention", "mlp"])
        parameters = dict(model.named_parameters())
        inside = {name for name in parameters if name.startswith(f"{layer}.")}
        assert set(weights) == {name for name in inside if parameters[name].dim() >= 2}
        assert set(layer_weights(model, layer, ["mlp"])) == {name for name in weights if ".mlp." in name}
        assert all(weights[name] is parameters[name] for name in weights)


def test_linear_attention_is_attention():
    weights = layer_weights(family("qwen3_5").model, "model.language_model.layers.0", ["attention"])
    assert "model.language_model.layers.0.linear_attn.in_proj_qkv.weight" in weights


def test_linear_maps_are_found_by_name(model):
    found = layer_linears(model, last_layers(model, 2), MLP)
    assert len(found) == 4
    assert all(isinstance(module, torch.nn.Linear) for module in found.values())


def test_what_a_layer_lacks_is_refused_with_what_it_has(model):
    with pytest.raises(SettingsError, match=r"has no linear map 'mlp\.up'\. It has .*mlp\.up_proj"):
        layer_linears(model, last_layers(model, 1), ["mlp.up"])
    with pytest.raises(SettingsError, match="has no attention weights"):
        layer_weights(model, f"{last_layers(model, 1)[0]}.mlp", ["attention"])


def _logits(model):
    ids = torch.arange(20, 30)[None]
    return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


def test_computing_with_other_weights_is_like_setting_them(model):
    layer = last_layers(model, 1)[0]
    weights = layer_weights(model, layer, ["attention", "mlp"])
    plain = _logits(model)
    others = {name: (0.5 * weight.detach()).requires_grad_() for name, weight in weights.items()}
    found = with_weights(model, others, lambda: _logits(model))
    assert torch.equal(_logits(model), plain)
    edited = EditedWeights(weights)
    edited.set(others)
    assert torch.equal(_logits(model), found)
    edited.restore()
    assert torch.equal(_logits(model), plain)
    found.square().mean().backward()
    assert all(tensor.grad.abs().sum() > 0 for tensor in others.values())
    assert all(weight.grad is None for weight in weights.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": torch.int8}, r"up_proj\.weight is torch\.int8\. Quantised weights can't be edited"),
        ({"device": "meta"}, r"up_proj\.weight is not on a device"),
    ],
)
def test_weights_that_cannot_be_edited_are_refused(change, message):
    model = family("llava").model
    layer = last_layers(model, 1)[0]
    linear = model.get_submodule(f"{layer}.mlp.up_proj")
    weight = linear.weight
    try:
        linear.weight = torch.nn.Parameter(torch.zeros(weight.shape, **change), requires_grad=False)
        with pytest.raises(SettingsError, match=message):
            layer_linears(model, [layer], MLP)
        with pytest.raises(SettingsError, match=message):
            layer_weights(model, layer, ["mlp"])
    finally:
        linear.weight = weight


def test_an_error_meanwhile_leaves_the_model_as_it_was():
    model = family("internvl").model
    plain = _logits(model)
    weights = {name: 0 * weight for name, weight in layer_weights(model, decoder_layers(model)[0], ["mlp"]).items()}

    def fail():
        _logits(model)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_weights(model, weights, fail)
    assert torch.equal(_logits(model), plain)


def test_bfloat16_is_rounded_to_the_nearest_and_comes_back_bit_for_bit():
    weight = torch.nn.Parameter(torch.randn(64, 64).to(torch.bfloat16), requires_grad=False)
    before = weight.clone()
    edited = EditedWeights({"weight": weight})
    edited.restore()
    for value in (1.0 + 2**-8 - 2**-12, 1.0 + 2**-8 + 2**-12):
        edited.set({"weight": torch.full((64, 64), value)})
    # Neighbours of 1 in bfloat16 are 2 ** -7 apart.
    assert (weight == 1.0 + 2**-7).all()
    edited.restore()
    assert torch.equal(weight.view(torch.int16), before.view(torch.int16))
