"""A learner small enough to check a training by hand, which also draws random numbers and keeps a running mean.

Run as a program it trains in a process of its own, which can kill itself as a machine would: ``small_learner.py FILE
KILL_AT``, and every process of ``torchrun`` prints the bits of what it trained.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
from torch import nn

from culture_tasks.insertion.core.training import (
    CaseLosses,
    Checkpoints,
    GradientConfig,
    Learner,
    ParameterGroup,
    train,
)

CASES = (1.0, 2.0, 4.0, -3.0, 0.5, 5.0, -1.0)
CONFIG = GradientConfig(epochs=3, cases_per_step=2, clip_norm=100.0, seed=5)


class SmallLearner(Learner[float]):
    """Learns a weight that should be each case's number, disturbed by noise."""

    def __init__(self, noise: float = 0.1, rate: float = 0.05, kill_at: int | None = None) -> None:
        self.weight = nn.Parameter(torch.zeros(1))
        self.bias = nn.Parameter(torch.zeros(1))
        self.mean = torch.zeros(2)
        self.seen: list[float] = []
        self.noise, self.rate, self.kill_at = noise, rate, kill_at

    def groups(self):
        return [ParameterGroup({"weight": self.weight}, self.rate), ParameterGroup({"bias": self.bias}, 10 * self.rate)]

    def buffers(self):
        return {"mean": self.mean}

    def learn(self, case, scale):
        if len(self.seen) == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen.append(case)
        wanted = case + self.noise * torch.randn(1)
        loss = (self.weight + self.bias - wanted).square().sum()
        (scale * loss).backward()
        return CaseLosses({"loss": float(loss.detach())}, torch.tensor([case]))

    def absorb(self, observed):
        for values in observed:
            self.mean[1] += 1
            self.mean[0] += (float(values[0]) - self.mean[0]) / self.mean[1]

    def bits(self) -> str:
        return "".join(tensor.detach().numpy().tobytes().hex() for tensor in (self.weight, self.bias, self.mean))


if __name__ == "__main__":
    learner = SmallLearner(kill_at=int(sys.argv[2]) if len(sys.argv) > 2 else None)
    checkpoints = Checkpoints(Path(sys.argv[1]), minutes=0)
    report = train(learner, CASES, CONFIG, name="small", checkpoints=checkpoints)
    sys.stdout.write(f"{learner.bits()} {report['loss']!r} {len(learner.seen)}\n")
