"""The training loop, its checkpoints, and the files that they are kept in."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from culture_tasks.errors import CultureTasksError
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.insertion_method import FitContext
from culture_tasks.insertion.core.store import Store
from culture_tasks.insertion.core.training import (
    Checkpoints,
    GradientConfig,
    Learner,
    train,
)

CASES = (1.0, 2.0, 4.0, -3.0, 0.5, 5.0, -1.0)
CONFIG = GradientConfig(epochs=3, cases_per_step=2, clip_norm=100.0, seed=5)
ALONE = FitContext(Store(None))
STEPS = 3 * math.ceil(len(CASES) / 2)


class SmallLearner(Learner[float]):
    """Learns a weight that should be each case's number, disturbed by random noise, and keeps a running mean.

    Before each case it calls ``before`` with itself, which may return other losses.
    """

    def __init__(self, noise: float = 0.1, rate: float = 0.05, before=lambda learner: None) -> None:
        self.weight = nn.Parameter(torch.zeros(1))
        self.bias = nn.Parameter(torch.zeros(1))
        self.mean = torch.zeros(2)
        self.seen: list[float] = []
        self.step: list[float] = []
        self.noise, self.rate, self.before = noise, rate, before

    def groups(self):
        return [({"weight": self.weight}, self.rate), ({"bias": self.bias}, 10 * self.rate)]

    def buffers(self):
        return {"mean": self.mean}

    def learn(self, case, scale):
        other = self.before(self)
        self.seen.append(case)
        wanted = case + self.noise * torch.randn(1)
        loss = (self.weight + self.bias - wanted).square().sum()
        (scale * loss).backward()
        self.step.append(case)
        return other or {"loss": float(loss.detach())}

    def end_step(self):
        for value in self.step:
            self.mean[1] += 1
            self.mean[0] += (value - self.mean[0]) / self.mean[1]
        self.step.clear()

    def bits(self) -> str:
        return "".join(tensor.detach().numpy().tobytes().hex() for tensor in (self.weight, self.bias, self.mean))


def trained(config=CONFIG, learner=None, **options):
    learner = learner or SmallLearner()
    report = train(learner, CASES, config, FitContext(Store(None), **options), name="small")
    return learner, report


def kept_in(tmp_path, key=""):
    return Checkpoints(tmp_path / "training.safetensors", minutes=0, key=key)


class TestSteps:
    def test_a_step_is_the_mean_gradient_of_its_cases(self):
        config = GradientConfig(cases_per_step=2, optimizer="sgd")
        learner = SmallLearner(noise=0.0, rate=0.25)
        report = train(learner, [1.0, 3.0], config, ALONE, name="small")
        # Loss (w + b - c)^2, so at w = b = 0 the gradients are -2c: -2 and -6, whose mean is -4.
        assert learner.weight.item() == 0.25 * 4
        assert learner.bias.item() == 10 * 0.25 * 4
        assert report == {"loss": (1 + 9) / 2}

    def test_gradients_are_clipped_all_together(self):
        config = GradientConfig(optimizer="sgd", clip_norm=1.0)
        learner = SmallLearner(noise=0.0, rate=1.0)
        train(learner, [3.0], config, ALONE, name="small")
        # Both gradients are -6, so their norm is 6 * sqrt(2).
        assert learner.weight.item() == pytest.approx(1 / math.sqrt(2), abs=1e-5)

    def test_each_pass_has_every_case_once_in_another_order(self):
        learner, _ = trained()
        passes = [tuple(learner.seen[start : start + len(CASES)]) for start in range(0, len(learner.seen), len(CASES))]
        assert [sorted(cases) for cases in passes] == [sorted(CASES)] * 3
        assert len(set(passes)) == 3
        once = trained(CONFIG.model_copy(update={"epochs": 1}))[0]  # observations arrive in the order of the cases
        assert once.mean.tolist() == pytest.approx([sum(CASES) / len(CASES), len(CASES)])

    def test_random_numbers_are_the_seeds_and_the_callers_stay(self):
        torch.manual_seed(1)
        first, wanted = trained()[0].bits(), torch.rand(1)
        torch.manual_seed(1)
        assert torch.rand(1) == wanted
        assert trained()[0].bits() == first
        assert trained(CONFIG.model_copy(update={"seed": 6}))[0].bits() != first

    def test_gradients_are_turned_on_only_meanwhile_and_progress_shows_the_mean_loss(self):
        learner, notes = SmallLearner(), []
        learner.weight.requires_grad_(requires_grad=False)

        def progress(items, description, note=None, total=None):
            assert (description, len(items)) == ("small: training", STEPS)
            for item in items:
                yield item
                notes.append(note())

        _, report = trained(learner=learner, progress=progress)
        assert learner.weight.item() != 0
        assert not learner.weight.requires_grad
        assert learner.weight.grad is None
        assert len(notes) == STEPS
        assert notes[-1] == f"loss {report['loss']:.4g}"

    def test_mixed_precision_computes_in_bfloat16_and_trains_float32(self):
        for precision, dtype in (("bf16", torch.bfloat16), ("no", torch.float32)):
            products = []
            learner = SmallLearner(
                before=lambda it, products=products: products.append((it.weight[None] @ it.bias[None]).dtype)
            )
            trained(CONFIG.model_copy(update={"mixed_precision": precision}), learner)
            assert set(products) == {dtype}
            assert learner.weight.dtype == torch.float32

    def test_a_loss_that_is_not_finite_stops_the_training(self, tmp_path):
        broken = SmallLearner(before=lambda it: {"loss": math.nan} if len(it.seen) == 5 else None)
        with pytest.raises(CultureTasksError, match=r"small: the training is not finite at step 3 \(loss nan\)"):
            trained(learner=broken, checkpoints=kept_in(tmp_path))
        assert trained(checkpoints=kept_in(tmp_path))[0].bits() == trained()[0].bits()


class TestResuming:
    @pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
    @pytest.mark.parametrize("stop_after", [4, 8, 15, 20])
    def test_a_stopped_training_goes_on_to_the_same_bits(self, tmp_path, optimizer, stop_after):
        config = CONFIG.model_copy(update={"optimizer": optimizer})
        whole, report = trained(config)

        def stop(learner):
            if len(learner.seen) == stop_after:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            trained(config, SmallLearner(before=stop), checkpoints=kept_in(tmp_path))
        descriptions = []

        def progress(items, description, note=None, total=None):
            descriptions.append((description, len(items)))
            return items

        again, same = trained(config, checkpoints=kept_in(tmp_path), progress=progress)
        assert descriptions[0][0].startswith("small: training (from step ")
        assert f"of {STEPS})" in descriptions[0][0]
        assert again.bits() == whole.bits()
        assert same == report
        assert again.seen == whole.seen[-len(again.seen) :]
        assert len(again.seen) < len(whole.seen)


def test_a_checkpoint_of_another_fit_or_a_broken_one_is_refused(tmp_path):
    checkpoints = kept_in(tmp_path)
    trained(checkpoints=checkpoints)
    with pytest.raises(CultureTasksError, match=r"belongs to another fit.* Delete it to start from the beginning"):
        trained(checkpoints=kept_in(tmp_path, key="other"))
    content = checkpoints.file.read_bytes()
    state.write_tensors(tmp_path / "factless", {"weight": torch.zeros(1)})
    for broken, message in (
        (content[: len(content) // 2], "can't be used"),
        (b"", "can't be used"),
        ((tmp_path / "factless").read_bytes(), "can't be used"),
        (bytes([*content[:-1], content[-1] ^ 1]), "is damaged"),
    ):
        checkpoints.file.write_bytes(broken)
        with pytest.raises(CultureTasksError, match=message):
            trained(checkpoints=checkpoints)


def test_clearing_removes_what_killed_processes_left(tmp_path):
    checkpoints = kept_in(tmp_path)
    trained(checkpoints=checkpoints)
    (tmp_path / ".training.safetensors.17").write_bytes(b"half")
    (tmp_path / "state.json").write_text("{}")
    checkpoints.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_tensors_and_texts_come_back_from_a_file(tmp_path):
    tensors = {
        "half": torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16),
        "transposed": torch.arange(6.0).reshape(2, 3).T,
        "scalar": torch.tensor(3),
        "nothing": torch.zeros(0, 4),
    }
    state.write_tensors(tmp_path / "file", tensors, {"fact": "é"})
    found, facts = state.read_tensors(tmp_path / "file")
    assert facts == {"fact": "é"}
    assert {name: (tensor.dtype, tensor.tolist()) for name, tensor in found.items()} == {
        name: (tensor.dtype, tensor.tolist()) for name, tensor in tensors.items()
    }
    assert state.digest(found) == state.digest(dict(reversed(tensors.items())))


def test_the_digest_tells_names_shapes_types_and_bits_apart():
    tensors = [
        {"a": torch.zeros(4)},
        {"b": torch.zeros(4)},
        {"a": torch.zeros(2, 2)},
        {"a": torch.zeros(4, dtype=torch.int32)},
        {"a": torch.tensor([0.0, 0.0, 0.0, -0.0])},
        {"a": torch.zeros(4), "b": torch.zeros(0)},
    ]
    assert len({state.digest(each) for each in tensors}) == len(tensors)
