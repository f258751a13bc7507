"""The training loop, its checkpoints, and the files that they are kept in."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from culture_tasks.errors import CultureTasksError
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.training import Checkpoints, GradientConfig, Learner, train

CASES = (1.0, 2.0, 4.0, -3.0, 0.5, 5.0, -1.0)
CONFIG = GradientConfig(epochs=3, cases_per_step=2, clip_norm=100.0, seed=5)
STEPS = 3 * math.ceil(len(CASES) / 2)


class SmallLearner(Learner[float]):
    """Learns a weight that should be each case's number, disturbed by random noise, and keeps a running sum.

    Before each case it calls ``before`` with itself, which may return other losses.
    """

    def __init__(self, noise: float = 0.1, rate: float = 0.05, before=lambda learner: None) -> None:
        self.weight = nn.Parameter(torch.zeros(1), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(1))
        self.sum = torch.zeros(1)
        self.seen: list[float] = []
        self.step: list[float] = []
        self.noise, self.rate, self.before = noise, rate, before

    def groups(self):
        return [({"weight": self.weight}, self.rate), ({"bias": self.bias}, 10 * self.rate)]

    def buffers(self):
        return {"sum": self.sum}

    def learn(self, case, scale):
        other = self.before(self)
        self.seen.append(case)
        wanted = case + self.noise * torch.randn(1)
        loss = (self.weight + self.bias - wanted).square().sum()
        (scale * loss).backward()
        self.step.append(case)
        return other or {"loss": float(loss.detach())}

    def end_step(self):
        self.sum += sum(self.step)
        self.step.clear()

    def bits(self) -> str:
        return "".join(tensor.detach().numpy().tobytes().hex() for tensor in (self.weight, self.bias, self.sum))


def trained(config=CONFIG, learner=None, cases=CASES, checkpoints=None):
    learner = learner or SmallLearner()
    return learner, train(learner, cases, config, checkpoints, name="small")


def kept_in(tmp_path, key=""):
    return Checkpoints(tmp_path / "training.safetensors", minutes=0, key=key)


@pytest.mark.parametrize(
    ("config", "cases", "weight", "loss"),
    [
        # Loss (w + b - c)^2, so at w = b = 0 the gradients are -2c: -2 and -6, whose mean is -4; the rate is 1.
        ({"cases_per_step": 2}, (1.0, 3.0), 4.0, (1 + 9) / 2),
        # Both gradients are -6, so their norm is 6 * sqrt(2), which is clipped to 1.
        ({"clip_norm": 1.0}, (3.0,), 1 / math.sqrt(2), 9.0),
    ],
)
def test_a_step_is_the_mean_gradient_of_its_cases_clipped_together(config, cases, weight, loss):
    sgd = GradientConfig(optimizer="sgd", **config)
    learner, report = trained(sgd, SmallLearner(noise=0.0, rate=1.0), cases)
    assert learner.weight.item() == pytest.approx(weight, abs=1e-5)
    assert learner.bias.item() == pytest.approx(10 * weight, abs=1e-4)
    assert report == {"loss": loss}


def test_each_pass_has_every_case_once_in_another_order_of_the_seed_and_the_callers_random_numbers_stay(capsys):
    torch.manual_seed(1)
    learner, report = trained()
    wanted = torch.rand(1)
    passes = [tuple(learner.seen[start : start + len(CASES)]) for start in range(0, len(learner.seen), len(CASES))]
    assert [sorted(cases) for cases in passes] == [sorted(CASES)] * 3
    assert len(set(passes)) == 3
    assert learner.sum.item() == pytest.approx(3 * sum(CASES))
    assert (learner.weight.requires_grad, learner.weight.grad) == (False, None)
    assert learner.weight.item() != 0
    torch.manual_seed(1)
    assert torch.rand(1) == wanted
    assert trained(CONFIG.model_copy(update={"seed": 6}))[0].bits() != learner.bits()
    said = capsys.readouterr().err
    assert f"{STEPS}/{STEPS}" in said
    assert f"loss {report['loss']:.4g}" in said


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("no", torch.float32)])
def test_mixed_precision_computes_in_bfloat16_and_trains_float32(precision, dtype):
    products = []
    learner = SmallLearner(before=lambda it: products.append((it.weight[None] @ it.bias[None]).dtype))
    trained(CONFIG.model_copy(update={"mixed_precision": precision}), learner)
    assert set(products) == {dtype}
    assert learner.weight.dtype == torch.float32


def test_a_loss_that_is_not_finite_stops_the_training_and_spoils_no_checkpoint(tmp_path):
    broken = SmallLearner(before=lambda it: {"loss": math.nan} if len(it.seen) == 5 else None)
    with pytest.raises(CultureTasksError, match=r"small: the training is not finite at step 3 \(loss nan\)"):
        trained(learner=broken, checkpoints=kept_in(tmp_path))
    assert trained(checkpoints=kept_in(tmp_path))[0].bits() == trained()[0].bits()


@pytest.mark.parametrize(("optimizer", "stop_after"), [("adam", 4), ("adam", 15), ("adamw", 15), ("sgd", 4)])
def test_a_stopped_training_goes_on_to_the_same_bits(tmp_path, optimizer, stop_after):
    config = CONFIG.model_copy(update={"optimizer": optimizer})
    whole, report = trained(config)

    def stop(learner):
        if len(learner.seen) == stop_after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(config, SmallLearner(before=stop), checkpoints=kept_in(tmp_path))
    again, same = trained(config, checkpoints=kept_in(tmp_path))
    assert (again.bits(), same) == (whole.bits(), report)
    assert again.seen == whole.seen[-len(again.seen) :]
    assert len(again.seen) < len(whole.seen)


def test_a_checkpoint_of_another_fit_or_a_broken_one_is_refused_and_clearing_removes_leftovers(tmp_path):
    checkpoints = kept_in(tmp_path)
    trained(checkpoints=checkpoints)
    with pytest.raises(CultureTasksError, match=r"belongs to another fit.* Delete it to start from the beginning"):
        trained(checkpoints=kept_in(tmp_path, key="other"))
    content = checkpoints.file.read_bytes()
    state.write_tensors(tmp_path / "factless", {"weight": torch.zeros(1)})
    for broken, message in (
        (content[: len(content) // 2], "can't be used"),
        ((tmp_path / "factless").read_bytes(), "can't be used"),
        (bytes([*content[:-1], content[-1] ^ 1]), "is damaged"),
    ):
        checkpoints.file.write_bytes(broken)
        with pytest.raises(CultureTasksError, match=message):
            trained(checkpoints=checkpoints)
    (tmp_path / ".training.safetensors.17").write_bytes(b"half")
    checkpoints.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["factless"]


def test_tensors_come_back_from_a_file_and_the_digest_tells_them_apart(tmp_path):
    tensors = {"half": torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16), "scalar": torch.tensor(3)}
    tensors |= {"transposed": torch.arange(6.0).reshape(2, 3).T, "nothing": torch.zeros(0, 4)}
    state.write_tensors(tmp_path / "file", tensors, {"fact": "é"})
    found, facts = state.read_tensors(tmp_path / "file")
    assert facts == {"fact": "é"}
    assert state.digest(found) == state.digest(dict(reversed(tensors.items())))
    zeros, named = torch.zeros(4), {"a": torch.zeros(4), "b": torch.zeros(0)}
    others = [{"a": one} for one in (zeros, zeros.reshape(2, 2), zeros.int(), torch.tensor([0.0, 0.0, 0.0, -0.0]))]
    assert len(set(map(state.digest, [*others, {"b": zeros}, named]))) == 6
