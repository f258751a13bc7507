"""FineTune and MEND over tiny models: what they learn, alone and in batches of chains."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support import insertion_requests
from support.insertion_requests import adapted, answered, ask, insertion
from support.tiny_families import FAMILIES

from culture_tasks.insertion.core.adapter import AnswerLogits, MultimodalModel
from culture_tasks.insertion.core.requests import AnswerDecoding
from culture_tasks.insertion.core.runner import Costs
from culture_tasks.insertion.core.state import digest
from culture_tasks.insertion.core.weight_edits import decoder_layers, with_weights
from culture_tasks.insertion.methods.mend.method import divergence

DECODING, SHORT = AnswerDecoding(max_new_tokens=8), AnswerDecoding(max_new_tokens=5)
OPTIONS = {
    "finetune": {"steps": 4, "learning_rate": 1e-2},
    "mend": {"layers": 2, "rank": 8, "edit_rate": 1e-3, "learning_rate": 1e-4},
}
BATCHED = {"finetune": {}, "mend": {"edit_rate": 0.5}}
"""Options with which edits change answers."""

each_method = pytest.mark.parametrize("name", sorted(OPTIONS))


def made(name, model, **options):
    return insertion_requests.made(name, model, **{**OPTIONS[name], **options})


def insertions():
    return [insertion(number, number, language) for number, language in enumerate(("en", "zh", "ar"))]


@pytest.fixture
def fresh():
    """A model that a test may change."""
    family = FAMILIES["internvl"]()
    return MultimodalModel(family.model, family.processor)


def predicted(model, sample, method=None):
    """Predictions of a sample's answer, after what is inserted."""
    with torch.no_grad():
        return with_weights(model.model, method.present if method else {}, model.answer_scorer([sample]))


def loss_of(model, sample, method=None):
    return float(predicted(model, sample, method).losses().mean())


def edited(method):
    return {name for name, weight in method.weights.items() if not torch.equal(method.present[name], weight)}


def traces(model):
    """All that an insertion may leave behind: weights, gradients, hooks."""
    parameters = dict(model.model.named_parameters())
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.model.modules()]
    return digest(parameters), [name for name, value in parameters.items() if value.requires_grad], hooks


@each_method
def test_an_insertion_lowers_its_loss_and_leaves_no_trace(model, name):
    plain, before = model.generate(ask(2, 3), DECODING), traces(model)
    method, [first, second, _] = made(name, model), insertions()
    first_loss, other = loss_of(model, first), predicted(model, second).logits
    method.insert(first)
    assert loss_of(model, first, method) < first_loss - (0 if name == "mend" else 0.05)
    count = len(decoder_layers(model.model)) - (1 if name == "finetune" else 2)
    assert edited(method)
    assert all(int(weight.split("layers.")[1].split(".")[0]) >= count for weight in edited(method))
    assert all(".mlp." in weight or (name == "finetune" and "attn." in weight) for weight in edited(method))
    assert traces(model) == before
    method.reset()
    assert method.generate(ask(2, 3), DECODING) == plain
    assert torch.equal(predicted(model, second).logits, other)
    assert before[1] == []


@each_method
def test_bfloat16_learns_in_float32_and_the_order_of_a_chain_counts(fresh, name):
    fresh.model.to(torch.bfloat16)
    method, (first, second, _) = made(name, fresh), insertions()
    before, results = loss_of(fresh, first), []
    for chain in ((first, second), (second, first)):
        method.insert(chain[0])
        if name != "mend" and chain[0] is first:
            assert loss_of(fresh, first, method) < before - 0.05
        method.insert(chain[1])
        results.append(predicted(fresh, second, method).logits)
        assert {weight.dtype for weight in method.present.values()} == {torch.bfloat16}
        method.reset()
    assert results[0].dtype == torch.bfloat16
    assert name == "mend" or not torch.equal(*results)


@pytest.mark.parametrize(
    ("name", "family", "options"),
    [
        *((name, "internvl", {}) for name in sorted(OPTIONS)),
        ("finetune", "qwen3_5", {}),  # most layers are linear attention
        ("finetune", "qwen3_5", {"layer": 0}),  # not of linear maps alone, so it is answered chain by chain
    ],
)
def test_answers_are_the_same_at_every_size_of_a_batch(name, family, options):
    model = adapted(family)
    chains = [*(tuple(insertions()[:length]) for length in (1, 3)), (insertion(5, 1),)]
    asked = [ask(place % 4, place, ("en", "zh", "ar")[place % 3]) for place in range(6)]
    pairs = [(request, chains[place % 3]) for place, request in enumerate(asked)]
    method, answers = made(name, model, **BATCHED[name], **options), {}
    assert method.by_row == (not options)
    for size in (1, 4):
        method.batch_size = size
        costs = Costs()
        answers[size] = [answer.text for answer in answered(method, pairs, SHORT, costs=costs)]
        assert costs.inserted == 4
    alone = [answer.text for answer in answered(method, pairs, SHORT, alone=True)]
    assert answers[1] == answers[4] == alone
    assert alone != [model.generate(request, SHORT).text for request in asked]


@pytest.mark.parametrize(
    ("name", "options", "rate"),
    [
        ("finetune", {"steps": 1, "optimizer": "sgd", "learning_rate": 0.5, "layer": 0}, 0.5),
        ("mend", {}, 1e-3),  # its editors are untrained
    ],
)
def test_a_plain_step_goes_down_the_gradient(internvl, name, options, rate):
    method, sample = made(name, internvl, **options), insertions()[0]
    method.insert(sample)
    present, weights = method.present, {name: method.weights[name] for name in edited(method)}
    assert all(".layers.0." in name for name in weights) == (name == "finetune")
    assert len(weights) == (7 if name == "finetune" else 4)
    for weight in weights.values():
        weight.requires_grad_(requires_grad=True)
    loss = internvl.answer_scorer([sample])().losses().mean()
    gradients = torch.autograd.grad(loss, list(weights.values()))
    for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
        weight.requires_grad_(requires_grad=False)
        assert torch.allclose(present[name], weight - rate * gradient, atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_mends_gradients_in_parts_are_those_of_the_whole_loss(internvl, data, batch_size):
    """The derivative of the loss by an edit rate and by a bias, against differences."""
    method, case = made("mend", internvl, normalize=False, edit_rate=0.02), data.cases[0]
    method.batch_size = batch_size
    parameters = {name: value for group, _ in method.groups() for name, value in group.items()}
    for parameter in parameters.values():
        parameter.requires_grad_(requires_grad=True)
    parts = method.learn(method.read(case), 0.5)
    weighted = 0.1 * parts["edit"] + 0.1 * parts["generality"] + parts["locality"]
    assert parts["loss"] == pytest.approx(weighted, rel=1e-6)
    for name, place, step in (("rates", 1, 1e-3), ("of_shape.64x128.layers.1.bias", 3, 1e-2)):
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameters[name][place] += sign * step
            values.append(method.learn(method.read(case), 0.0)["loss"])
            with torch.no_grad():
                parameters[name][place] -= sign * step
        difference = 0.5 * (values[0] - values[1]) / (2 * step)
        assert float(parameters[name].grad[place]) == pytest.approx(difference, rel=0.05, abs=1e-4)
    cases = [replace(case, locality=(item,)) for item in case.locality]
    alone = [method.learn(method.read(one), 1.0)["locality"] for one in cases]
    assert len(alone) == 2
    assert min(alone) > 0
    assert parts["locality"] == pytest.approx(sum(alone), rel=1e-4)


def test_the_divergence_by_hand_counts_no_padding_and_adds_answers_up():
    mask = torch.tensor([[True, True], [True, False]])
    plain, edited = (
        AnswerLogits(torch.tensor([first, second]).log(), torch.zeros(2, 2).long(), mask)
        for first, second in (
            ([[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.9, 0.1]]),
            ([[0.25, 0.75], [0.9, 0.1]], [[0.25, 0.75], [0.1, 0.9]]),
        )
    )
    # 0.5 ln(0.5 / 0.25) + 0.5 ln(0.5 / 0.75) = 0.5 (0.693147 - 0.405465) = 0.143841: at one of the first answer's two
    # tokens, and at the only one of the second.
    assert float(divergence(plain, edited)) == pytest.approx(0.143841 * 1.5, abs=1e-6)
    assert float(divergence(plain, plain)) == 0


def test_a_loss_that_is_not_finite_is_named(internvl, caplog):
    made("finetune", internvl, learning_rate=1e30).insert(insertions()[0])
    assert "finetune: a loss is not finite. Lower learning_rate." in caplog.text
