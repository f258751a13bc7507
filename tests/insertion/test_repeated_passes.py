"""One input through a model whose last weights change: the same bits as a whole pass, for less."""

from __future__ import annotations

import pytest
import torch
from support.tiny_families import FAMILIES, family
from support.tiny_world import Instance

from culture_tasks.insertion.adapter import MultimodalModel
from culture_tasks.insertion.queries import Query
from culture_tasks.insertion.repeated_passes import RepeatedPass
from culture_tasks.insertion.weight_edits import decoder_layers, last_layers, layer_weights, with_weights


@pytest.fixture(params=sorted(FAMILIES))
def model(request):
    made = family(request.param)
    return MultimodalModel(made.model, made.processor, request.param)


def pairs():
    instance = Instance(1, 2)
    return [(Query.about(instance.image(), instance.question("en")), instance.answer("en"))]


def changed(weights, factor):
    return {name: (factor * weight.detach()).requires_grad_() for name, weight in weights.items()}


def test_every_pass_has_the_bits_and_gradients_of_a_whole_one(model):
    score, inner = model.answer_scorer(pairs()), model.model
    weights = layer_weights(inner, last_layers(inner, 1)[0], ["attention", "mlp"])
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
    watched = [*layers, *(name for name, _ in inner.named_modules() if name.endswith(("vision_tower", "visual")))]
    assert len(watched) == len(layers) + 1
    handles = [
        inner.get_submodule(f"{name}.mlp" if name in layers else name).register_forward_pre_hook(
            lambda module, inputs, name=name: ran.append(name)
        )
        for name in watched
    ]
    repeated = RepeatedPass(inner, weights, model.answer_scorer(pairs()))
    repeated()
    assert set(ran) == set(watched)
    ran.clear()
    repeated()
    assert set(ran) <= {layers[-1], watched[-1]}
    for handle in handles:
        handle.remove()


def test_the_model_is_as_before_afterwards(model):
    inner = model.model
    score = model.answer_scorer(pairs())
    plain, hooks = score().logits, hooks_of(inner)
    repeated = RepeatedPass(inner, layer_weights(inner, last_layers(inner, 1)[0], ["mlp"]), score)
    for _ in range(2):
        repeated()
    assert torch.equal(score().logits, plain)
    assert not any("forward" in module.__dict__ for module in inner.modules())
    assert hooks_of(inner) == hooks


def hooks_of(model):
    return [(list(module._forward_hooks), list(module._forward_pre_hooks)) for module in model.modules()]


def test_a_module_that_comes_back_later_is_computed_then():
    shared, last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    model = torch.nn.ModuleDict({"shared": shared, "last": last})
    inputs = torch.randn(2, 3)
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
