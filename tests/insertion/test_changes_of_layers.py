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


def changed(weights, factor):
    return {name: (factor * weight.detach()).requires_grad_() for name, weight in weights.items()}


def test_every_pass_is_like_setting_the_weights_and_a_repeated_one_has_its_bits_and_gradients(model):
    score, inner = model.answer_scorer([insertion(1, 2)]), model.model
    weights = layer_weights(inner, decoder_layers(inner)[-1])
    plain, repeated = score().logits, RepeatedPass(inner, weights, score)
    for factor in (1.0, 0.5, 2.0, 1.0):
        first, second = changed(weights, factor), changed(weights, factor)
        whole, found = with_weights(inner, first, score), with_weights(inner, second, repeated)
        assert torch.equal(found.logits, whole.logits)
        whole.losses().sum().backward()
        found.losses().sum().backward()
        assert all(torch.equal(first[name].grad, second[name].grad) for name in weights)
        for weight in weights.values():
            weight.data.mul_(factor)
        assert torch.equal(score().logits, whole.logits)
        for weight in weights.values():
            weight.data.div_(factor)
    assert torch.equal(score().logits, plain)
    assert all(weight.grad is None for weight in weights.values())


def test_weights_and_layers_that_cannot_be_edited_are_refused():
    inner = family("llava").model
    layer = decoder_layers(inner)[-1]
    linear = inner.get_submodule(f"{layer}.mlp.up_proj")
    weight = linear.weight
    for call, message in (
        (lambda: decoder_layer(inner, 2, method="a method"), r"layer=2 of a method\. The model has layers 0 to 1"),
        (lambda: layer_linears(inner, [layer], ["mlp.up"]), r"has no linear map 'mlp\.up'\. It has .*mlp\.up_proj"),
        (lambda: layer_weights(inner, f"{layer}.mlp"), "has no attention and no MLP"),
    ):
        with pytest.raises(SettingsError, match=message):
            call()
    try:
        for change, message in (({"dtype": torch.int8}, "int8 on cpu"), ({"device": "meta"}, "float32 on meta")):
            linear.weight = torch.nn.Parameter(torch.zeros(weight.shape, **change), requires_grad=False)
            for call in (lambda: layer_linears(inner, [layer], MLP), lambda: layer_weights(inner, layer)):
                with pytest.raises(SettingsError, match=rf"up_proj\.weight can't be edited: it is torch\.{message}"):
                    call()
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


def test_what_is_frozen_runs_once(model):
    inner, layers, ran = model.model, decoder_layers(model.model), []
    repeated = RepeatedPass(inner, layer_weights(inner, layers[-1]), model.answer_scorer([insertion(1, 2)]))
    with ExitStack() as stack:
        for name in layers:
            module = inner.get_submodule(f"{name}.mlp")
            stack.enter_context(module.register_forward_pre_hook(lambda *_, name=name: ran.append(name)))
        repeated()
        assert ran == layers
        repeated()
    assert ran == [*layers, layers[-1]]


def test_a_module_that_comes_back_later_is_computed_then_and_a_forward_of_the_objects_own_stays():
    shared, last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    model, inputs = torch.nn.ModuleDict({"shared": shared, "last": last}), torch.randn(2, 3)
    own, calls = shared.forward, []
    shared.forward = lambda value: calls.append(1) or own(value)
    kept = shared.forward
    repeated = RepeatedPass(model, ["last.weight"], lambda: shared(last(shared(inputs))))
    for factor in (1.0, 2.0, 3.0):
        weight = factor * last.weight.detach()
        expected = own(torch.nn.functional.linear(own(inputs), weight, last.bias))
        assert torch.equal(with_weights(model, {"last.weight": weight}, repeated), expected)
    assert len(calls) == 2 + 1 + 1  # once before what changes, and each time after it
    assert shared.forward is kept
