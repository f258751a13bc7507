"""FineTune and MEND over tiny models of several families: what they learn, alone and in batches of chains."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from support.insertion_requests import adapted, ask, insertion
from support.tiny_families import FAMILIES

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.adapter import AnswerLogits, MultimodalModel
from culture_tasks.insertion.core.method_registry import method_class, method_config
from culture_tasks.insertion.core.queries import AnswerDecoding
from culture_tasks.insertion.core.runner import Job, Runner
from culture_tasks.insertion.core.training import train
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.insertion.core.weight_edits import with_weights
from culture_tasks.insertion.methods.mend.editor_training import EditorTraining, divergence

DECODING = AnswerDecoding(max_new_tokens=8)
OPTIONS = {
    "finetune": {"steps": 4, "learning_rate": 1e-2},
    "mend": {"layers": 2, "rank": 8, "edit_rate": 1e-3, "learning_rate": 1e-4},
}


def made(name, model, **options):
    return method_class(name)(model, method_config(name, {**OPTIONS[name], **options}))


def insertions():
    return [insertion(number, number, language) for number, language in enumerate(("en", "zh", "ar"))]


@pytest.fixture
def fresh():
    """A model whose data type a test may change."""
    made = FAMILIES["internvl"]()
    return MultimodalModel(made.model, made.processor)


def bits(model):
    return {name: parameter.detach().clone() for name, parameter in model.model.named_parameters()}


def changed(model, before):
    return {name for name, parameter in model.model.named_parameters() if not torch.equal(parameter, before[name])}


def edited(method):
    return {name for name, weight in method.weights.items() if not torch.equal(method.present[name], weight)}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


def loss_of(method, insertion):
    def loss():
        return float(method.model.answer_loss([(insertion.query, insertion.answer)]))

    with torch.no_grad():
        return with_weights(method.model.model, method.present, loss)


@pytest.mark.parametrize("name", sorted(OPTIONS))
class TestBoth:
    def test_some_weights_are_edited_and_the_model_stays_as_it_is(self, model, name):
        before, plain = bits(model), model.generate(ask(), DECODING)
        method = made(name, model)
        method.reset()
        first_loss = loss_of(method, insertions()[0])
        for place, sample in enumerate(insertions()):
            method.insert(sample)
            assert place or loss_of(method, sample) < first_loss
        layers = model.model.config.get_text_config().num_hidden_layers
        first = layers - (1 if name == "finetune" else 2)
        assert edited(method)
        assert all(int(weight.split("layers.")[1].split(".")[0]) >= first for weight in edited(method))
        assert all(".mlp." in weight or (name == "finetune" and "attn." in weight) for weight in edited(method))
        assert not changed(model, before)
        method.reset()
        assert not edited(method)
        assert method.generate(ask(), DECODING) == model.generate(ask(), DECODING) == plain
        assert not any(parameter.requires_grad for parameter in model.model.parameters())

    def test_a_chain_alone_is_a_chain_that_goes_on(self, internvl, name):
        method, (first, second, _) = made(name, internvl), insertions()
        method.insert(first)
        method.generate(ask(), DECODING)
        method.insert(second)
        going_on = method.present
        method.reset()
        method.insert(first)
        method.insert(second)
        assert same(method.present, going_on)
        method.reset()
        method.insert(second)
        assert not same(method.present, going_on)

    def test_edits_of_several_chains_together_are_those_of_each_alone(self, model, name):
        # Adam's first steps have the same length whether a gradient is rounding noise or not.
        options = {"finetune": {"optimizer": "sgd", "learning_rate": 0.1}, "mend": {"edit_rate": 0.5}}[name]
        method, samples = made(name, model, **options), insertions()
        plain = [method.weights] * len(samples)
        first = method.edited(samples, plain)
        second = method.edited(samples[::-1], first) if method.by_row else first
        for place, sample in enumerate(samples):
            method.insert(sample)
            if method.by_row:
                method.insert(samples[::-1][place])
            for weight, value in method.present.items():
                assert torch.allclose(value, second[place][weight], atol=1e-5)
            method.reset()

    def test_answers_are_the_same_at_every_size_of_a_batch(self, model, name):
        chains = [tuple(insertions()[:length]) for length in (1, 2, 3)]
        chains += [(insertion(5, number),) for number in range(4)]
        asked = [ask(place % 4, place, ("en", "zh", "ar")[place % 3]) for place in range(14)]
        jobs = [Job(query, DECODING, chains[place % 7]) for place, query in enumerate(asked)]
        plain, answers = bits(model), {}
        for size in (1, 4, 8):
            method = made(name, model, **({"edit_rate": 0.5} if name == "mend" else {}))
            method.batch_size = size
            runner = Runner(method, ValueStore(None))
            answers[size] = [outcome.answer.text for outcome in runner.run(jobs)]
            assert runner.costs.inserted == 7
        assert answers[1] == answers[4] == answers[8]
        assert not changed(model, plain)
        method.reset()
        alone = []
        for job in jobs:
            for sample in job.insertions:
                method.insert(sample)
            alone.append(method.generate(job.query, DECODING).text)
            method.reset()
        assert answers[1] == alone
        assert alone != [model.generate(job.query, DECODING).text for job in jobs]

    def test_edits_have_the_models_own_type(self, fresh, name):
        fresh.model.to(torch.bfloat16)
        method = made(name, fresh)
        method.insert(insertions()[0])
        assert edited(method)
        assert {weight.dtype for weight in method.present.values()} == {torch.bfloat16}


@pytest.mark.parametrize(
    ("name", "options", "rate"),
    [
        ("finetune", {"steps": 1, "optimizer": "sgd", "learning_rate": 0.5, "weights": "mlp", "layer": 0}, 0.5),
        ("mend", {}, 1e-3),  # its editors are untrained
    ],
)
def test_a_plain_step_goes_down_the_gradient(internvl, name, options, rate):
    method, sample = made(name, internvl, **options), insertions()[0]
    method.insert(sample)
    present, weights = method.present, {name: method.weights[name] for name in edited(method)}
    assert all(".layers.0.mlp." in name for name in weights) == (name == "finetune")
    assert len(weights) == (3 if name == "finetune" else 4)
    for weight in weights.values():
        weight.requires_grad_(requires_grad=True)
    loss = internvl.answer_loss([(sample.query, sample.answer)])
    gradients = torch.autograd.grad(loss, list(weights.values()))
    for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
        weight.requires_grad_(requires_grad=False)
        assert torch.allclose(present[name], weight - rate * gradient, atol=1e-6)


class TestFineTune:
    def test_a_layer_that_is_not_of_linear_maps_alone_is_answered_chain_by_chain(self):
        model = adapted("qwen3_5")
        jobs = [Job(ask(number), DECODING, (insertion(number, number),)) for number in range(3)]
        answers = []
        for size in (1, 4):
            method = made("finetune", model, layer=0)
            assert not method.by_row
            method.batch_size = size
            answers.append(Runner(method, ValueStore(None)).run(jobs))
        assert answers[0] == answers[1]

    def test_the_paper_edits_matrices_of_the_last_layer(self, model):
        method = method_class("finetune")(model)
        names = set(method.weights)
        last = model.model.config.get_text_config().num_hidden_layers - 1
        assert all(re.match(rf"model\.(language|text)_model\.layers\.{last}\.", name) for name in names)
        assert {name.split(".")[4] for name in names} >= {"self_attn", "mlp"}
        assert (method.config.steps, method.config.learning_rate) == (20, 1e-3)

    def test_a_layer_that_is_not_there_is_refused(self, internvl):
        with pytest.raises(SettingsError, match=r"layer=2 of finetune\. The model has layers 0 to 1; -1 is the last"):
            made("finetune", internvl, layer=2)

    def test_a_loss_that_is_not_finite_is_named(self, internvl, caplog):
        method = made("finetune", internvl, optimizer="sgd", learning_rate=1e30)
        method.insert(insertions()[0])
        assert f"the loss of {insertions()[0].answer!r} is not finite" in caplog.text


class TestMend:
    def test_the_papers_settings_are_the_defaults(self):
        config = method_config("mend", {})
        assert (config.epochs, config.layers, config.weights) == (1, 3, "mlp.up_proj+mlp.down_proj")
        assert (config.learning_rate, config.edit_rate, config.rank) == (1e-6, 1e-4, 1920)
        assert (config.edit_weight, config.generality_weight, config.locality_weight) == (0.1, 0.1, 1.0)
        assert (config.clip_norm, config.cases_per_step, config.hidden_layers) == (100.0, 2, 1)

    @pytest.mark.parametrize("batch_size", [1, 2])
    def test_gradients_in_parts_are_those_of_the_whole_loss(self, internvl, data, batch_size):
        """The derivative of the loss by an edit rate and by a bias, against differences."""
        method, case = made("mend", internvl, normalize=False, edit_rate=0.02), data.cases[0]
        learner = EditorTraining(internvl, method.editors, method.config, batch_size)
        parameters = {name: value for group in learner.groups() for name, value in group.parameters.items()}
        for parameter in parameters.values():
            parameter.requires_grad_(requires_grad=True)
        parts = learner.learn(learner.read(case), 0.5).losses
        weighted = 0.1 * parts["edit"] + 0.1 * parts["generality"] + parts["locality"]
        assert parts["loss"] == pytest.approx(weighted, rel=1e-6)
        for name, place, step in (("rates", 1, 1e-3), ("of_shape.64x128.layers.1.bias", 3, 1e-2)):
            values = []
            for sign in (1, -1):
                with torch.no_grad():
                    parameters[name][place] += sign * step
                values.append(learner.learn(learner.read(case), 0.0).losses["loss"])
                with torch.no_grad():
                    parameters[name][place] -= sign * step
            difference = 0.5 * (values[0] - values[1]) / (2 * step)
            assert float(parameters[name].grad[place]) == pytest.approx(difference, rel=0.05, abs=1e-4)
        cases = [replace(case, locality=(item,)) for item in case.locality]
        alone = [learner.learn(learner.read(one), 1.0).losses["locality"] for one in cases]
        assert len(alone) == 2
        assert min(alone) > 0
        assert parts["locality"] == pytest.approx(sum(alone), rel=1e-4)

    @pytest.mark.parametrize(("dtype", "mixed"), [(torch.bfloat16, "no"), (torch.float32, "bf16")])
    def test_half_precision_trains_float32_editors(self, fresh, data, dtype, mixed):
        fresh.model.to(dtype)
        method = made("mend", fresh, mixed_precision=mixed, learning_rate=1e-3)
        before = {name: tensor.clone() for name, tensor in method.editors.state_dict().items()}
        train(EditorTraining(fresh, method.editors, method.config, 2), data.cases, method.config, name="mend")
        after = method.editors.state_dict()
        assert all(after[name].dtype in (torch.float32, torch.float64) for name in after)
        assert all(torch.isfinite(after[name]).all() for name in after)
        assert all(not torch.equal(after[name], before[name]) for name in after)

    def test_training_lowers_the_loss(self, internvl, data):
        method = made("mend", internvl, epochs=6, learning_rate=1e-3, edit_rate=1e-2)
        learner = EditorTraining(internvl, method.editors, method.config, 1)
        plain = bits(internvl)
        losses = []

        def progress(items, description, note=None, total=None):
            for item in items:
                yield item
                losses.append(note())

        report = train(learner, data.cases, method.config, name="mend", progress=progress)
        first = float(losses[len(losses) // 6 - 1].split()[1].rstrip(","))
        assert report["loss"] < first
        assert not changed(internvl, plain)


def test_the_divergence_by_hand_counts_no_padding_and_adds_answers_up():
    plain = AnswerLogits(_logits([[0.5, 0.5], [0.9, 0.1]]), torch.zeros(1, 2).long(), torch.ones(1, 2).bool())
    edited = AnswerLogits(_logits([[0.25, 0.75], [0.9, 0.1]]), plain.tokens, plain.mask)
    # 0.5 ln(0.5 / 0.25) + 0.5 ln(0.5 / 0.75) = 0.5 (0.693147 - 0.405465) = 0.143841 at one of two tokens.
    assert float(divergence(plain, edited)) == pytest.approx(0.143841 / 2, abs=1e-6)
    assert float(divergence(plain, plain)) == 0
    tokens, mask = torch.zeros(2, 2).long(), torch.tensor([[True, True], [True, False]])
    even = _logits([[0.5, 0.5]] * 2)
    plain = AnswerLogits(torch.cat([even, _logits([[0.5, 0.5], [0.9, 0.1]])]), tokens, mask)
    edited = AnswerLogits(torch.cat([even, _logits([[0.25, 0.75], [0.1, 0.9]])]), tokens, mask)
    assert float(divergence(plain, edited)) == pytest.approx(0.143841, abs=1e-6)


def _logits(rows):
    return torch.tensor([rows]).log()
