"""Training by gradients that a crash doesn't lose: one loop for all methods that need it.

A step is the mean gradient of some cases. The order of cases and all random numbers follow from the seed and from the
place in the training alone, so that a training that continues from a checkpoint ends with the same bits as one without
a break (on a GPU, as far as its kernels are deterministic). Several processes share the cases of a step and add their
gradients: the result is that of one process, up to the order in which floating-point numbers are added.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import gather_object, reduce
from pydantic import Field

from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.insertion.checkpoints import Checkpoint, Checkpoints
from culture_tasks.insertion.insertion_method import MethodConfig
from culture_tasks.insertion.progress import Progress, silent

if TYPE_CHECKING:
    from torch import nn

Case = TypeVar("Case")
OptimizerName = Literal["adam", "adamw", "sgd"]

logger = logging.getLogger(__name__)


class GradientConfig(MethodConfig):
    """Options of a method that is trained by gradients.

    Attributes:
        epochs: Passes over the training cases.
        cases_per_step: Cases whose mean gradient makes one step of the optimizer (gradient accumulation).
        clip_norm: Largest norm of the gradients of all that is trained; 0 leaves them as they are.
        mixed_precision: ``bf16`` computes the loss in bfloat16 where that is safe. What is trained stays float32.
        optimizer: The optimizer, with PyTorch's defaults.
        seed: Of the order of cases, and of all random numbers.
    """

    epochs: int = Field(default=1, ge=1)
    cases_per_step: int = Field(default=1, ge=1)
    clip_norm: float = Field(default=0.0, ge=0)
    mixed_precision: Literal["no", "bf16"] = "no"
    optimizer: OptimizerName = "adam"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters with a learning rate of their own.

    Attributes:
        parameters: Parameters by names that no other group has; float32, in which small steps don't vanish.
        learning_rate: Their learning rate.
    """

    parameters: Mapping[str, nn.Parameter]
    learning_rate: float


@dataclass(frozen=True, slots=True)
class Learned:
    """What a case said about itself.

    Attributes:
        losses: The loss under ``loss``, and parts of it under names of their own.
        observed: What :meth:`Learner.absorb` gets, on any device.
    """

    losses: Mapping[str, float]
    observed: torch.Tensor | None = None


class Learner(ABC, Generic[Case]):
    """What is trained."""

    @abstractmethod
    def groups(self) -> Sequence[Group]:
        """Returns the parameters to train."""

    def buffers(self) -> Mapping[str, torch.Tensor]:
        """Returns other tensors that training changes in place, such as running means."""
        return {}

    @abstractmethod
    def learn(self, case: Case, scale: float) -> Learned:
        """Adds the gradients of ``scale`` times the loss of a case, by one or several calls of ``backward``.

        It runs under autocast where the options ask for mixed precision; :func:`full_precision` is for ``backward``.
        """

    def absorb(self, observed: Sequence[torch.Tensor]) -> None:
        """Takes what the cases of a step observed, in their order; called after the step, in every process."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Cases whose mean gradient makes one step.

    Attributes:
        number: Its place in the training, from 0.
        epoch: The pass, from 0.
        first: Place of its first case in the pass.
        cases: Indices of its cases.
    """

    number: int
    epoch: int
    first: int
    cases: tuple[int, ...]


def train(
    learner: Learner[Case],
    cases: Sequence[Case],
    config: GradientConfig,
    *,
    name: str,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> dict[str, float]:
    """Trains, from the latest checkpoint on.

    Args:
        learner: What is trained; it is changed in place.
        cases: What it learns from.
        config: How.
        name: Who trains, for messages.
        progress: Shows the progress and the mean loss of the pass.
        checkpoints: Where checkpoints are kept; the caller clears them when the result is safe.

    Returns:
        The mean of each part of the losses over the last pass.

    Raises:
        CultureTasksError: If a loss or a gradient isn't finite, or the checkpoint is broken or another training's.
        SettingsError: If there are more processes than cases in a step.
    """
    return _Training(learner, cases, config, name).run(progress, checkpoints)


def full_precision(device: torch.device) -> torch.autocast:
    """Turns mixed precision off inside a computation: backward passes don't belong under autocast."""
    return torch.autocast(device.type, enabled=False)


def make_optimizer(name: OptimizerName, groups: Sequence[Group]) -> torch.optim.Optimizer:
    """Makes an optimizer."""
    classes = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return classes[name]([{"params": [*group.parameters.values()], "lr": group.learning_rate} for group in groups])


class _Training(Generic[Case]):
    def __init__(self, learner: Learner[Case], cases: Sequence[Case], config: GradientConfig, name: str) -> None:
        self._learner, self._cases, self._config, self._name = learner, cases, config, name
        groups = learner.groups()
        self._parameters = _named(groups)
        self._optimizer = make_optimizer(config.optimizer, groups)
        self._device = next(iter(self._parameters.values())).device
        self._processes = PartialState(cpu=self._device.type == "cpu")
        self._sums: dict[str, float] = {}
        self._counted = 0
        if self._processes.num_processes > config.cases_per_step:
            raise SettingsError(
                f"insertion: {name} has {config.cases_per_step} cases in a step for {self._processes.num_processes} "
                "processes, so some would do nothing. Start fewer processes, or raise cases_per_step."
            )

    def run(self, progress: Progress, checkpoints: Checkpoints | None) -> dict[str, float]:
        steps = list(_steps(len(self._cases), self._config))
        done = self._restored(checkpoints)
        description = f"{self._name}: training" + (f" (from step {done + 1} of {len(steps)})" if done else "")
        with self._prepared():
            for step in progress(steps[done:], description, self._note):
                self._make(step)
                last = step.number + 1 == len(steps)
                if checkpoints is not None and (last or (step.number + 1) % checkpoints.every == 0):
                    self._keep(checkpoints, step)
        return {part: total / self._counted for part, total in self._sums.items()}

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Turns gradients on, and leaves gradients and PyTorch's random state as they were."""
        before = {name: parameter.requires_grad for name, parameter in self._parameters.items()}
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            try:
                for parameter in self._parameters.values():
                    parameter.requires_grad_(requires_grad=True)
                yield
            finally:
                self._optimizer.zero_grad()
                for name, parameter in self._parameters.items():
                    parameter.requires_grad_(requires_grad=before[name])

    def _make(self, step: _Step) -> None:
        """Makes one step; each process learns every n-th of its cases."""
        self._optimizer.zero_grad()
        mine = range(self._processes.process_index, len(step.cases), self._processes.num_processes)
        learned = self._gathered(step, {place: self._learned(step, place) for place in mine})
        for case in learned:
            self._count(step, case)
        self._add_gradients()
        limit = self._config.clip_norm or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(list(self._parameters.values()), limit))
        self._check_finite(step, {"gradient norm": norm})
        self._optimizer.step()
        self._learner.absorb([case.observed for case in learned if case.observed is not None])

    def _learned(self, step: _Step, place: int) -> Learned:
        torch.manual_seed(_number(self._config.seed, step.epoch, step.first + place))
        mixed = self._config.mixed_precision == "bf16"
        with torch.enable_grad(), torch.autocast(self._device.type, torch.bfloat16, enabled=mixed):
            return self._learner.learn(self._cases[step.cases[place]], 1.0 / len(step.cases))

    def _gathered(self, step: _Step, mine: Mapping[int, Learned]) -> list[Learned]:
        """Returns what all cases of a step said, in their order, in every process."""
        if self._processes.num_processes == 1:
            return [mine[place] for place in range(len(step.cases))]
        sent = [
            (place, dict(case.losses), None if case.observed is None else case.observed.cpu())
            for place, case in mine.items()
        ]
        return [
            Learned(losses, observed) for _, losses, observed in sorted(gather_object(sent), key=lambda row: row[0])
        ]

    def _count(self, step: _Step, case: Learned) -> None:
        self._check_finite(step, case.losses)
        if step.first == 0 and self._counted >= len(self._cases):
            self._sums, self._counted = {}, 0
        for part, value in case.losses.items():
            self._sums[part] = self._sums.get(part, 0.0) + value
        self._counted += 1

    def _check_finite(self, step: _Step, values: Mapping[str, float]) -> None:
        """Stops before a step that would spoil what is trained, and the checkpoint with it."""
        if not all(math.isfinite(value) for value in values.values()):
            raise CultureTasksError(
                f"insertion: {self._name}: the training is not finite at step {step.number + 1} ({_shown(values)}). "
                "Lower the learning rate, or compute in a wider data type (--dtype float32)."
            )

    def _add_gradients(self) -> None:
        if self._processes.num_processes == 1:
            return
        for parameter in self._parameters.values():
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = reduce(own, reduction="sum")

    def _note(self) -> str:
        return _shown({part: total / self._counted for part, total in self._sums.items()}) if self._counted else ""

    def _keep(self, checkpoints: Checkpoints, step: _Step) -> None:
        if self._processes.is_main_process:
            checkpoints.write(Checkpoint(step.number + 1, self._tensors(), self._sums, self._counted))
            logger.info("insertion: %s: %s after %d steps", self._name, self._note(), step.number + 1)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Returns all that steps change."""
        states = {
            f"optimizer/{key}/{name}": value
            for name, parameter in self._parameters.items()
            for key, value in self._optimizer.state.get(parameter, {}).items()
            if value is not None
        }
        trained = {f"parameter/{name}": parameter for name, parameter in self._parameters.items()}
        return {**trained, **{f"buffer/{name}": buffer for name, buffer in self._learner.buffers().items()}, **states}

    def _restored(self, checkpoints: Checkpoints | None) -> int:
        """Restores the latest checkpoint, and returns how many steps were made."""
        found = None if checkpoints is None else checkpoints.read()
        done = found.done if found else 0
        if len(set(gather_object([done]))) > 1:
            raise CultureTasksError(
                f"insertion: {self._name}: processes found different checkpoints. Put the state on a disk that "
                "all of them share."
            )
        if found:
            self._take(found.tensors)
            self._sums, self._counted = dict(found.losses), found.cases
        return done

    def _take(self, tensors: Mapping[str, torch.Tensor]) -> None:
        buffers = self._learner.buffers()
        for key, tensor in tensors.items():
            kind, _, name = key.partition("/")
            if kind == "optimizer":
                entry, _, name = name.partition("/")
                parameter = self._parameters[name]
                # Adam counts steps on the CPU; its other entries are where the parameter is.
                self._optimizer.state[parameter][entry] = tensor if tensor.dim() == 0 else tensor.to(parameter.device)
            else:
                (self._parameters if kind == "parameter" else buffers)[name].data.copy_(tensor)


def _named(groups: Sequence[Group]) -> dict[str, nn.Parameter]:
    named: dict[str, nn.Parameter] = {}
    for name, parameter in itertools.chain.from_iterable(group.parameters.items() for group in groups):
        if name in named:
            raise ValueError(f"two groups have a parameter {name!r}")
        if parameter.dtype != torch.float32:
            raise ValueError(f"{name!r} is {parameter.dtype}: train a float32 copy, in which small steps don't vanish")
        named[name] = parameter
    return named


def _steps(cases: int, config: GradientConfig) -> Iterator[_Step]:
    number = 0
    for epoch in range(config.epochs):
        order = list(range(cases))
        random.Random(_number(config.seed, epoch)).shuffle(order)  # noqa: S311 - an order, not a secret
        for first in range(0, cases, config.cases_per_step):
            yield _Step(number, epoch, first, tuple(order[first : first + config.cases_per_step]))
            number += 1


def _number(*values: int) -> int:
    """Returns a random number that depends on the values alone, below 2 ** 63."""
    return int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:8], "big") >> 1


def _shown(losses: Mapping[str, Any]) -> str:
    return ", ".join(f"{part} {value:.4g}" for part, value in losses.items())
