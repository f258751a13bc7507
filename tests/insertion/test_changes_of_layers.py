"""Weights of layers: which are edited, computing with others in their place, and repeating a pass."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
import torch
from support.insertion_requests import insertion
from support.tiny_families import family

from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.insertion.core.weight_edits import (
    RepeatedPass,
    decoder_layer,
    decoder_layers,
    layer_linears,
    layer_weights,
    with_weights,
    with_weights_by_row,
)

MLP = ["mlp.up_proj", "mlp.down_proj"]


@pytest.fixture
def inner(model):
    return model.model


def test_weights_of_every_layer_of_the_language_model_are_found(any_model):
    inner = any_model.model
    layers = decoder_layers(inner)
    count = inner.config.get_text_config().num_hidden_layers
    language_model = layers[0].removesuffix(".layers.0")
    assert language_model in ("model.language_model", "model.text_model")
    assert layers == [f"{language_model}.layers.{layer}" for layer in range(count)]
    parameters = dict(inner.named_parameters())
    for layer in layers:
        weights = layer_weights(inner, layer, ["attention", "mlp"])
        inside = {name for name in parameters if name.startswith(f"{layer}.")}
        assert set(weights) == {name for name in inside if parameters[name].dim() >= 2}
        assert set(layer_weights(inner, layer, ["mlp"])) == {name for name in weights if ".mlp." in name}
        assert all(weights[name] is parameters[name] for name in weights)
    linears = layer_linears(inner, layers[-2:], MLP)
    assert len(linears) == 4
    assert all(isinstance(module, torch.nn.Linear) for module in linears.values())
    with pytest.raises(SettingsError, match=r"has no linear map 'mlp\.up'\. It has .*mlp\.up_proj"):
        layer_linears(inner, layers[-1:], ["mlp.up"])
    with pytest.raises(SettingsError, match="has no attention weights"):
        layer_weights(inner, f"{layers[-1]}.mlp", ["attention"])


def _logits(inner):
    ids = torch.arange(20, 30)[None]
    return inner(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


def test_computing_with_other_weights_is_like_setting_them(inner):
    layer = decoder_layers(inner)[-1]
    weights = layer_weights(inner, layer, ["attention", "mlp"])
    plain = _logits(inner)
    others = {name: (0.5 * weight.detach()).requires_grad_() for name, weight in weights.items()}
    found = with_weights(inner, others, lambda: _logits(inner))
    assert torch.equal(_logits(inner), plain)
    with torch.no_grad():
        for weight in weights.values():
            weight.mul_(0.5)
        assert torch.equal(_logits(inner), found)
        for weight in weights.values():
            weight.mul_(2)
    assert torch.equal(_logits(inner), plain)
    found.square().mean().backward()
    assert all(tensor.grad.abs().sum() > 0 for tensor in others.values())
    assert all(weight.grad is None for weight in weights.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": torch.int8}, r"up_proj\.weight can't be edited: it is torch\.int8 on cpu"),
        ({"device": "meta"}, r"up_proj\.weight can't be edited: it is torch\.float32 on meta"),
    ],
)
def test_weights_that_cannot_be_edited_are_refused(change, message):
    inner = family("llava").model
    layer = decoder_layers(inner)[-1]
    linear = inner.get_submodule(f"{layer}.mlp.up_proj")
    weight = linear.weight
    try:
        linear.weight = torch.nn.Parameter(torch.zeros(weight.shape, **change), requires_grad=False)
        with pytest.raises(SettingsError, match=message):
            layer_linears(inner, [layer], MLP)
        with pytest.raises(SettingsError, match=message):
            layer_weights(inner, layer, ["mlp"])
    finally:
        linear.weight = weight


def test_rows_have_different_weights_beams_too():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    edits = [{"0.weight": torch.randn(4, 3), "1.weight": torch.randn(2, 4)} for _ in range(3)]
    rows = [edits[0], edits[1], edits[1], edits[2]]
    inputs = torch.randn(8, 5, 3)  # two beams of each row
    found = with_weights_by_row(model, rows, lambda: model(inputs))
    alone = [with_weights(model, rows[place // 2], lambda place=place: model(inputs[place])) for place in range(8)]
    assert torch.allclose(found, torch.stack(alone), atol=1e-6)
    assert "forward" not in vars(model[0])
    for flat in (inputs[:7], inputs[0]):
        with pytest.raises(CultureTasksError, match=r"0\.weight is given .* Use --batch_size 1"):
            with_weights_by_row(model, rows, lambda flat=flat: model(flat))


def pairs():
    return [insertion(1, 2)]


def changed(weights, factor):
    return {name: (factor * weight.detach()).requires_grad_() for name, weight in weights.items()}


def test_every_pass_has_the_bits_and_gradients_of_a_whole_one(model):
    score, inner = model.answer_scorer(pairs()), model.model
    weights = layer_weights(inner, decoder_layers(inner)[-1], ["attention", "mlp"])
    repeated = RepeatedPass(inner, weights, score)
    for factor in (1.0, 0.5, 2.0, 1.0):
        first, second = changed(weights, factor), changed(weights, factor)
        whole, found = with_weights(inner, first, score), with_weights(inner, second, repeated)
        assert torch.equal(found.logits, whole.logits)
        whole.losses().sum().backward()
        found.losses().sum().backward()
        assert all(torch.equal(first[name].grad, second[name].grad) for name in weights)


def test_what_is_frozen_runs_once(model):
    inner, layers = model.model, decoder_layers(model.model)
    weights = layer_weights(inner, layers[-1], ["mlp"])
    ran = []
    vision = ("model.vision_tower", "model.visual", "model.vision_model")
    watched = [*layers, *(name for name, _ in inner.named_modules() if name in vision)]
    assert len(watched) == len(layers) + 1
    repeated = RepeatedPass(inner, weights, model.answer_scorer(pairs()))
    with ExitStack() as stack:
        for name in watched:
            module = inner.get_submodule(f"{name}.mlp" if name in layers else name)
            stack.enter_context(module.register_forward_pre_hook(lambda *_, name=name: ran.append(name)))
        repeated()
        assert set(ran) == set(watched)
        ran.clear()
        repeated()
    assert set(ran) <= {layers[-1], watched[-1]}


def test_a_module_that_comes_back_later_is_computed_then():
    shared, last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    model, inputs = torch.nn.ModuleDict({"shared": shared, "last": last}), torch.randn(2, 3)
    repeated = RepeatedPass(model, ["last.weight"], lambda: shared(last(shared(inputs))))
    for factor in (1.0, 2.0, 3.0):
        weight = factor * last.weight.detach()
        expected = shared(torch.nn.functional.linear(shared(inputs), weight, last.bias))
        assert torch.equal(with_weights(model, {"last.weight": weight}, repeated), expected)


def test_a_forward_of_the_objects_own_stays():
    first, last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    model = torch.nn.Sequential(first, last)
    calls = []
    own = first.forward
    first.forward = lambda value: calls.append(1) or own(value)
    kept = first.forward
    repeated = RepeatedPass(model, ["1.weight"], lambda: model(torch.ones(1, 3)))
    assert torch.equal(repeated(), repeated())
    assert calls == [1]
    assert first.forward is kept


def test_a_layer_that_is_not_there_is_refused(internvl):
    with pytest.raises(SettingsError, match=r"layer=2 of a method\. The model has layers 0 to 1"):
        decoder_layer(internvl.model, 2, method="a method")
