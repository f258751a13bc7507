"""LoRA, GRACE and WISE over tiny models of several families, their formulas, and whole runs."""

from __future__ import annotations

import peft
import pytest
import torch
from support.in_process import run_lmms_eval
from support.insertion_requests import ask, insertion
from support.tiny_families import FAMILIES
from support.tiny_world import write_release
from support.written_runs import write_lmms_eval
from torch.nn.functional import linear

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.descent import descend
from culture_tasks.insertion.core.method_registry import method_class, method_config
from culture_tasks.insertion.core.queries import AnswerDecoding
from culture_tasks.insertion.core.runner import Job, Runner
from culture_tasks.insertion.core.value_store import ValueStore
from culture_tasks.report.building import Options, build

DECODING = AnswerDecoding(max_new_tokens=8)
OPTIONS = {
    "lora": {"optimizer": "adam", "learning_rate": 0.02},
    # Tiny models with random weights have requests far apart in some families, and next to each other in others.
    "grace": {"radius": 1e-3},
    "wise": {"alpha": 0.5, "beta": 2.0, "gamma": 1.0, "activation_ratio": 0.999},
}
WIDE = {"grace": {"radius": 1e3}, "wise": {"activation_ratio": 0.1}}
"""Options with which a tiny model uses an insertion for other requests too."""

TASKS = ["crosscult_single_reliability", "crosscult_single_cross_scenario_locality"]
CHAIN = "crosscult_retention_en_zh_ar_ar_after_3"
each_method = pytest.mark.parametrize("name", sorted(OPTIONS))


def made(name, model, **options):
    return method_class(name)(model, method_config(name, {**OPTIONS[name], **options}))


def insertions():
    return [insertion(number, number, language) for number, language in enumerate(("en", "zh", "ar"))]


@pytest.fixture
def fresh():
    """A model that a test may change."""
    family = FAMILIES["internvl"]()
    return MultimodalModel(family.model, family.processor)


def logits(model, sample):
    with torch.no_grad():
        return model.answer_scorer([(sample.query, sample.answer)])().logits


def loss_of(model, sample):
    with torch.no_grad():
        return float(model.answer_loss([(sample.query, sample.answer)]))


def hooks(model):
    return [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.model.modules()]


@each_method
class TestAll:
    def test_an_insertion_lowers_its_loss_and_leaves_no_trace(self, model, name):
        before = {key: parameter.clone() for key, parameter in model.model.named_parameters()}
        plain, other, before_hooks = model.generate(ask(2, 3), DECODING), logits(model, insertions()[1]), hooks(model)
        method, [first, *_] = made(name, model), insertions()
        first_loss = loss_of(model, first)
        method.insert(first)
        assert loss_of(model, first) < first_loss - 0.05
        assert method.generate(first.query, DECODING).text is not None
        method.reset()
        assert model.generate(ask(2, 3), DECODING) == plain
        assert torch.equal(logits(model, insertions()[1]), other)
        assert all(torch.equal(before[key], parameter) for key, parameter in model.model.named_parameters())
        assert not any(parameter.requires_grad for parameter in model.model.parameters())
        assert hooks(model) == before_hooks

    def test_a_chain_alone_is_a_chain_that_goes_on_and_its_order_counts(self, internvl, name):
        method, (first, second, _) = made(name, internvl), insertions()
        method.insert(first)
        method.generate(ask(), DECODING)
        method.insert(second)
        going_on = logits(internvl, second)
        method.reset()
        method.insert(first)
        method.insert(second)
        assert torch.equal(logits(internvl, second), going_on)
        method.reset()
        method.insert(second)
        method.insert(first)
        other_order = logits(internvl, second)
        method.reset()
        assert not torch.equal(other_order, going_on)

    def test_a_request_in_a_batch_is_answered_as_it_is_alone(self, internvl, name):
        method, samples = made(name, internvl), insertions()
        method.insert(samples[0])
        method.insert(samples[1])
        queries = [*(sample.query for sample in samples), ask(3, 3, "ar"), ask(4, 1)]
        alone = [method.generate(query, DECODING).text for query in queries]
        together = {place: answer.text for place, answer in internvl.answers(queries, DECODING, batch_size=5)}
        method.reset()
        assert [together[place] for place in range(5)] == alone

    def test_bfloat16_learns_in_float32_and_comes_back(self, fresh, name):
        fresh.model.to(torch.bfloat16)
        method, sample = made(name, fresh), insertions()[0]
        plain, before = logits(fresh, sample), loss_of(fresh, sample)
        method.insert(sample)
        assert loss_of(fresh, sample) < before - 0.05
        assert logits(fresh, sample).dtype == torch.bfloat16
        method.reset()
        assert torch.equal(logits(fresh, sample), plain)

    def test_a_killed_run_goes_on_with_what_it_answered(self, internvl, name, tmp_path, monkeypatch):
        first, second, third = insertions()
        jobs = [
            Job(query, DECODING, chain, compare=True)
            for chain in ((first,), (first, second), (third,))
            for query in (first.query, third.query)
        ]
        expected = Runner(made(name, internvl), ValueStore(None)).run(jobs)
        answers, count = internvl.answers, iter(range(100))

        def killed(*arguments):
            for answer in answers(*arguments):
                if next(count) == 4:
                    raise KeyboardInterrupt
                yield answer

        method = made(name, internvl)
        runner = Runner(method, ValueStore(tmp_path / "answers.sqlite3"))
        with monkeypatch.context() as patch:
            patch.setattr(internvl, "answers", killed)
            with pytest.raises(KeyboardInterrupt):
                runner.run(jobs)
        method.reset()
        runner = Runner(made(name, internvl), ValueStore(tmp_path / "answers.sqlite3"))
        assert runner.run(jobs) == expected
        assert (runner.costs.found, runner.costs.answered) == (4, 8 - 4)
        alone = Runner(made(name, internvl), ValueStore(None), one_at_a_time=True).run(jobs)
        assert [(one.answer.text, one.base) for one in alone] == [(one.answer.text, one.base) for one in expected]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lora", {"rank": 0}, "rank=0 of lora: .*greater than or equal to 1"),
        ("lora", {"dropout": 1}, "dropout=1 of lora: .*less than 1"),
        ("grace", {"radius": 0}, "radius=0 of grace: .*greater than 0"),
        ("grace", {"eps": 1}, "option eps=1 of grace"),
        ("wise", {"mask_ratio": 1.5}, "mask_ratio=1.5 of wise: .*less than or equal to 1"),
        ("wise", {"alpha": -1}, "alpha=-1 of wise: .*greater than or equal to 0"),
    ],
)
def test_options_out_of_bounds_are_refused(name, options, message):
    with pytest.raises(SettingsError, match=message):
        method_config(name, options)


def test_a_loss_that_is_not_finite_is_named(caplog):
    number, sample = torch.nn.Parameter(torch.ones(1)), insertions()[0]
    optimizer = torch.optim.SGD([number], lr=1.0)
    descend(optimizer, lambda: (number - 3).square().sum(), 3, insertion=sample, method="wise")
    assert not caplog.text
    descend(optimizer, lambda: (number * torch.inf).sum(), 3, insertion=sample, method="wise")
    assert f"wise: the loss of {sample.answer!r} is not finite. Lower learning_rate." in caplog.text


class TestLora:
    def test_the_published_settings_are_the_defaults(self):
        config = method_config("lora", {})
        assert (config.rank, config.alpha, config.dropout, config.optimizer) == (8, 32, 0.1, "sgd")
        assert (config.steps, config.learning_rate, config.decay) == (5, 0.1, 0.9)
        assert config.weights == "self_attn.q_proj+self_attn.v_proj"

    @pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.1)])
    def test_it_computes_and_learns_as_pefts_does(self, fresh, dtype, tolerance):
        fresh.model.to(dtype)
        sample, method = insertions()[0], made("lora", fresh, dropout=0, optimizer="sgd", steps=3, learning_rate=0.05)
        plain = loss_of(fresh, sample)
        method.insert(sample)
        ours, loss = logits(fresh, sample), loss_of(fresh, sample)
        method.reset()
        assert loss < plain - 0.05
        torch.manual_seed(0)
        first_values = {name: method._new_factors(module) for name, module in method._linears.items()}
        config = peft.LoraConfig(r=8, lora_alpha=32, lora_dropout=0.0, target_modules=list(method._linears))
        peft.inject_adapter_in_model(config, fresh.model)
        trained = []
        for name, factors in first_values.items():
            module = fresh.model.get_submodule(name)
            for peft_factor, factor in zip((module.lora_A, module.lora_B), factors, strict=True):
                peft_factor["default"].weight = torch.nn.Parameter(factor.detach().clone())
                trained.append(peft_factor["default"].weight)
        optimizer = torch.optim.SGD(trained, lr=0.05)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for _ in range(3):
            optimizer.zero_grad()
            fresh.answer_loss([(sample.query, sample.answer)]).backward()
            optimizer.step()
            schedule.step()
        assert torch.allclose(ours, logits(fresh, sample), atol=tolerance)
        assert method.parameter_count() == sum(factor.numel() for factor in trained)

    def test_dropout_and_first_values_depend_on_the_seed_alone(self, internvl):
        results, sample = [], insertions()[0]
        for seed in (0, 0, 1):
            torch.manual_seed(len(results))
            method = made("lora", internvl, dropout=0.5, seed=seed)
            method.insert(sample)
            results.append(logits(internvl, sample))
            assert torch.equal(logits(internvl, sample), results[-1])
            method.reset()
        assert torch.equal(results[0], results[1])
        assert not torch.equal(results[0], results[2])

    def test_layers_without_a_weight_are_passed_over_and_unknown_names_refused(self, model):
        names = {name.rpartition(".")[2] for name in made("lora", model)._linears}
        assert names == {"q_proj", "v_proj"}
        with pytest.raises(SettingsError, match=r"no linear map 'self_attn\.w_proj'"):
            made("lora", model, weights="self_attn.q_proj+self_attn.w_proj")


class TestGrace:
    def test_the_value_replaces_the_output_at_the_prompts_last_token(self, model):
        method, sample = made("grace", model), insertions()[0]
        method.insert(sample)
        learned, [entry] = logits(model, sample), method.codebook.entries
        method.reset()
        last = model.generate(sample.query, AnswerDecoding(max_new_tokens=1)).prompt_tokens - 1
        seen = []

        def replace(_module, inputs, output):
            seen.append(inputs[0][0, last])
            output[:, last] = entry.value
            return output

        handle = method._linear.register_forward_hook(replace)
        expected = logits(model, sample)
        handle.remove()
        assert torch.equal(learned, expected)
        assert torch.equal(entry.key, seen[0])
        assert (entry.radius, entry.answer) == (1e-3, sample.answer)
        assert method.parameter_count() == len(entry.key) + len(entry.value) + 1

    def test_requests_outside_the_radius_have_the_plain_answers_bit_for_bit(self, model):
        samples = insertions()
        plain = [logits(model, sample) for sample in samples]
        method = made("grace", model, radius=1e-6)
        method.insert(samples[0])
        after = [logits(model, sample) for sample in samples]
        method.reset()
        assert [torch.equal(*both) for both in zip(plain, after, strict=True)] == [False, True, True]

    def test_a_first_step_of_adam_moves_each_number_by_the_rate(self, internvl):
        method = made("grace", internvl, steps=1, learning_rate=0.25, seed=3)
        method.insert(insertions()[0])
        method.insert(insertions()[1])
        for number, entry in enumerate(method.codebook.entries):
            first = torch.rand(len(entry.value), generator=torch.Generator().manual_seed(3 + number))
            # A step is rate * g / (|g| + 1e-8).
            assert torch.allclose((entry.value - first).abs(), torch.tensor(0.25), atol=1e-3)
        method.reset()


class TestWise:
    def test_requests_below_the_threshold_have_the_plain_answers_bit_for_bit(self, model):
        samples = insertions()
        plain = [logits(model, sample) for sample in samples]
        method = made("wise", model)
        method.insert(samples[0])
        activated = []
        for sample in samples:
            logits(model, sample)
            activated.append(int(method._choice) == 0)
        after = [logits(model, sample) for sample in samples]
        method.reset()
        assert activated[0]
        assert [not torch.equal(*both) for both in zip(plain, after, strict=True)] == activated
        method = made("wise", model, activation_ratio=1.001)
        method.insert(samples[0])
        assert all(torch.equal(logits(model, sample), before) for sample, before in zip(samples, plain, strict=True))
        method.reset()

    def test_two_steps_are_those_of_the_formulas(self, internvl):
        """W' <- W' - eta M * g, with g the gradient of the answer's loss plus the margin loss, within the limit."""
        config = {"steps": 2, "learning_rate": 0.5, "norm_limit": 0.4, "alpha": 0.1, "beta": 9.0, "gamma": 8.0}
        method, sample = made("wise", internvl, **config), insertions()[0]
        method.insert(sample)
        delta, threshold = method.memories[0].delta, method.memories[0].least
        [(irrelevant, _)] = method._irrelevant.values()
        mask = torch.rand(delta.shape, generator=torch.Generator().manual_seed(0)) < 0.2
        method.reset()
        weight, seen = method._linear.weight, []
        handle = method._linear.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        prompt = internvl.generate(sample.query, AnswerDecoding(max_new_tokens=1)).prompt_tokens
        handle.remove()
        assert seen[0].shape[1] == prompt

        def activation(inputs, change):
            return linear(inputs, change).square().sum(-1).add(1e-30).sqrt().mean()

        expected = torch.zeros_like(weight)
        plain = weight.detach().clone()
        for _ in range(2):
            change = expected.clone().requires_grad_()
            edit, other = activation(seen[0], change), activation(irrelevant, change)
            margin = (other - 0.1).clamp(min=0) + (9 - edit).clamp(min=0) + (8 - edit + other).clamp(min=0)
            weight.data.copy_(plain + expected)
            weight.requires_grad_(requires_grad=True)
            [gradient] = torch.autograd.grad(internvl.answer_loss([(sample.query, sample.answer)]), [weight])
            weight.requires_grad_(requires_grad=False)
            [of_margin] = torch.autograd.grad(margin, [change])
            expected = (expected - 0.5 * mask * (gradient + of_margin)).clamp(-0.4, 0.4)
        weight.data.copy_(plain)
        assert torch.allclose(delta, expected, atol=1e-4)
        assert expected.abs().max() == 0.4
        assert threshold == pytest.approx(float(activation(seen[0], expected)), rel=1e-3)

    def test_full_shards_get_other_masks_and_are_merged(self, internvl):
        method, samples = made("wise", internvl, shard_size=1, shards=2, density=1.0), insertions()
        method.insert(samples[0])
        [first] = method.memories
        method.insert(samples[1])
        [merged] = method.memories
        method.insert(samples[2])
        assert method.memories[0] is merged
        assert len(method.memories) == 2
        third = method.memories[1]
        trained = [(memory.delta != 0) for memory in (first, third)]
        assert not torch.equal(*trained)
        assert all(0.1 < share.float().mean() < 0.25 for share in trained)
        assert ((merged.delta != 0) | ~trained[0]).float().mean() > 0.95
        assert merged.least <= first.least
        method.reset()

    def test_irrelevant_requests_are_taken_by_the_sample(self, internvl):
        method = made("wise", internvl)
        for sample in (insertion(*place) for place in ((0, 0), (1, 1), (2, 2), (0, 0))):
            method.insert(sample)
            method.reset()
        assert 2 <= len(method._irrelevant) <= 3
        assert all(bool(prompts.all()) for _, prompts in method._irrelevant.values())


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_release(tmp_path_factory.mktemp("world"), range(6), range(2), tests=(2, 3, 4, 5))


@each_method
def test_a_run_in_lmms_eval_acts_resumes_and_is_shown_in_the_report(name, checkpoint, world, tmp_path, monkeypatch):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(world))
    monkeypatch.setenv("CULTURE_JUDGE", "lexical")
    options = {**OPTIONS[name], "seed": 1, **WIDE.get(name, {})}
    given = {"pretrained": checkpoint, "device": "cpu", "method": name, "dtype": "float32", **options}
    kept = ",".join(f"{option}={value}" for option, value in {**given, "answers": tmp_path / "answers"}.items())
    alone = ",".join(f"{option}={value}" for option, value in {**given, "answers": "off"}.items())

    def run(text, **more):
        results = run_lmms_eval("knowledge_insertion", [*TASKS, CHAIN], model_args=text, bootstrap_iters=0, **more)
        return [sample["resps"][0][0] for task in (*TASKS, CHAIN) for sample in results["samples"][task]]

    first = run(kept)
    assert any(said[0] != said[1] for said in first if isinstance(said, list))
    assert run(alone, batch_size=3) == first
    monkeypatch.setattr(MultimodalModel, "_answers", None)  # all answers are found
    write_lmms_eval(tmp_path / "results", TASKS, lmms="knowledge_insertion", model_args=kept, bootstrap_iters=0)
    tables = {table.key: table for table in build([str(tmp_path / "results")], Options()).tables}
    [row] = tables["crosscult_table_4"].rows
    label = {"lora": "LoRA", "grace": "GRACE", "wise": "WISE"}[name]
    assert row.labels[1] == f"{label} (not in the paper)"
