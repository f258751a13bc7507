"""Training by gradients that a crash doesn't lose: one loop for all methods that need it, and the cases to learn from.

A step is the mean gradient of some cases. The order of cases and all random numbers follow from the seed and from the
place in the training alone, so that a training that continues from a checkpoint ends with the same bits as one without
a break (on a GPU, as far as its kernels are deterministic).

A checkpoint is one safetensors file, replaced as a whole. Accelerate's ``save_state`` would write optimizer and random
state by pickle, and a folder of files that a kill can leave half old and half new.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import torch
from pydantic import Field
from safetensors import SafetensorError

from culture_tasks.benchmarks.registry import benchmarks, cultures
from culture_tasks.benchmarks.training_cases import AnsweredQuestion, Locality, OffersTraining
from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.devices import read_ahead, shown
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.requests import Insertion, Request, TrainingCase
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from torch import nn

Case = TypeVar("Case")
OptimizerName = Literal["adam", "adamw", "sgd"]


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


ParameterGroup = tuple[Mapping[str, "nn.Parameter"], float]
"""Parameters by names that no other group has, with their learning rate; in float32 small steps don't vanish."""


_Step = list[tuple[int, int, int]]
"""Cases whose mean gradient makes one step: the pass of each, its place in the pass, and its place among all cases."""


class Learner(ABC, Generic[Case]):
    """The part of a method that is trained."""

    @abstractmethod
    def groups(self) -> Sequence[ParameterGroup]:
        """Returns the parameters to train."""

    def buffers(self) -> Mapping[str, torch.Tensor]:
        """Returns other tensors that training changes in place, such as running means."""
        return {}

    def read(self, case: Case) -> Any:
        """Reads and encodes a case for :meth:`learn`, ahead and in another thread."""
        return case

    @abstractmethod
    def learn(self, case: Any, scale: float) -> Mapping[str, float]:
        """Adds the gradients of ``scale`` times the loss of a case, as :meth:`read` returned it.

        It runs under autocast where the options ask for mixed precision; :func:`full_precision` is for ``backward``.
        Returned are the loss and its parts, by names for the report.
        """

    def end_step(self) -> None:
        """Takes notice that the cases of a step were learned, and the step made."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoint file of one training, written every so many minutes.

    ``key`` is a hash of all that the training depends on; another training's file is refused.
    """

    file: Path
    minutes: float = 10.0
    key: str = ""

    def read(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Returns the facts and the tensors of the latest checkpoint."""
        try:
            tensors, texts = state.read_tensors(self.file)
            facts: dict[str, Any] = json.loads(texts["checkpoint"])
            if facts["digest"] != state.digest(tensors):
                raise ValueError("it is damaged")
            if facts["key"] != self.key:
                raise ValueError("it belongs to another fit: other options, model, data or version")
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise CultureTasksError(
                f"insertion: the checkpoint can't be used ({error}). Delete it to start from the beginning: {self.file}"
            ) from None
        return facts, tensors

    def write(self, facts: Mapping[str, Any], tensors: state.Tensors) -> None:
        """Replaces the checkpoint."""
        text = json.dumps({**facts, "key": self.key, "digest": state.digest(tensors)})
        state.write_tensors(self.file, tensors, {"checkpoint": text})

    def clear(self) -> None:
        """Deletes the file, and leftovers of killed processes."""
        for path in [self.file, *self.file.parent.glob(f".{self.file.name}.*")]:
            path.unlink(missing_ok=True)


def train(
    learner: Learner[Case],
    cases: Sequence[Case],
    config: GradientConfig,
    checkpoints: Checkpoints | None,
    *,
    name: str,
) -> dict[str, float]:
    """Trains, from the latest checkpoint on, and returns the mean of each part of the losses over the last pass.

    The caller clears checkpoints when the result is safe. ``name`` is the method's, for messages.

    Raises:
        CultureTasksError: If a loss or a gradient isn't finite, or the checkpoint is broken or another training's.
    """
    training, steps = _Training(learner, config, name), _steps(len(cases), config)
    if checkpoints is not None and checkpoints.file.exists():
        training.restore(*checkpoints.read())
    left, last_write = steps[training.done :], time.monotonic()
    title = f"{name}: training" + (f" (from step {training.done + 1} of {len(steps)})" if training.done else "")

    def read(step: _Step) -> list[Any]:
        return [learner.read(cases[case]) for _, _, case in step]

    with training.active(), closing(read_ahead(left, read)) as cases_of_steps:
        for step in shown(left, title, note=lambda: _summary(training.means())):
            training.make(step, next(cases_of_steps))
            is_due = checkpoints and time.monotonic() >= last_write + 60 * checkpoints.minutes
            if checkpoints and (is_due or step is steps[-1]):
                checkpoints.write(*training.content())
                last_write = time.monotonic()
    return training.means()


def full_precision(device: torch.device) -> torch.autocast:
    """Turns mixed precision off inside a computation: backward passes don't belong under autocast."""
    return torch.autocast(device.type, enabled=False)


def make_optimizer(name: OptimizerName, groups: Sequence[ParameterGroup]) -> torch.optim.Optimizer:
    """Makes an optimizer."""
    classes = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return classes[name]([{"params": [*parameters.values()], "lr": rate} for parameters, rate in groups])


class _Training(Generic[Case]):
    """``done`` counts the steps that were made; sums are those of the losses of the present pass."""

    def __init__(self, learner: Learner[Case], config: GradientConfig, name: str) -> None:
        self._learner, self._config, self._name = learner, config, name
        groups = learner.groups()
        self._parameters = {name: value for parameters, _ in groups for name, value in parameters.items()}
        self._optimizer = make_optimizer(config.optimizer, groups)
        self._device = next(iter(self._parameters.values())).device
        self.done, self._count, self._sums = 0, 0, dict[str, float]()

    def means(self) -> dict[str, float]:
        """Returns the means of the losses in the present pass."""
        return {part: total / self._count for part, total in self._sums.items()}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Has parameters collect gradients, and leaves torch's random state as it was."""
        parameters = self._parameters.values()
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            try:
                for parameter in parameters:
                    parameter.requires_grad_(requires_grad=True)
                yield
            finally:
                self._optimizer.zero_grad()
                for parameter in parameters:
                    parameter.requires_grad_(requires_grad=False)

    def make(self, step: _Step, cases: Sequence[Any]) -> None:
        """Makes one step."""
        self._optimizer.zero_grad()
        mixed = self._config.mixed_precision == "bf16"
        for (epoch, place, _), case in zip(step, cases, strict=True):
            if place == 0:
                self._sums, self._count = {}, 0
            torch.manual_seed(_number(self._config.seed, epoch, place))
            with torch.enable_grad(), torch.autocast(self._device.type, torch.bfloat16, enabled=mixed):
                losses = self._learner.learn(case, 1.0 / len(cases))
            self._check_finite(losses)
            self._sums = {part: self._sums.get(part, 0.0) + value for part, value in losses.items()}
            self._count += 1
        limit = self._config.clip_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(list(self._parameters.values()), limit)
        self._check_finite({"gradient norm": float(norm)})
        self._optimizer.step()
        self._learner.end_step()
        self.done += 1

    def _check_finite(self, values: Mapping[str, float]) -> None:
        """Stops before a step that would spoil the parameters, and the checkpoint with them."""
        if not all(map(math.isfinite, values.values())):
            raise CultureTasksError(
                f"insertion: {self._name}: the training is not finite at step {self.done + 1} ({_summary(values)}). "
                "Lower the learning rate, or compute in a wider data type (--dtype float32)."
            )

    def content(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Returns all that steps change."""
        tensors = {f"parameter/{name}": value for name, value in self._parameters.items()}
        tensors |= {f"buffer/{name}": value for name, value in self._learner.buffers().items()}
        for name, parameter in self._parameters.items():
            entries = self._optimizer.state.get(parameter, {}).items()
            tensors |= {f"optimizer/{entry}/{name}": value for entry, value in entries if value is not None}
        return {"done": self.done, "losses": self._sums, "cases": self._count}, tensors

    def restore(self, facts: Mapping[str, Any], tensors: state.Tensors) -> None:
        """Puts back what :meth:`content` returned."""
        self.done, self._sums, self._count = facts["done"], dict(facts["losses"]), facts["cases"]
        for key, tensor in tensors.items():
            kind, *entry, name = key.split("/")
            if kind == "optimizer":
                # Adam counts steps on the CPU; its other entries are where the parameter is.
                parameter = self._parameters[name]
                value = tensor.to(parameter.device) if tensor.dim() else tensor
                self._optimizer.state[parameter][entry[0]] = value
            else:
                (self._parameters if kind == "parameter" else self._learner.buffers())[name].data.copy_(tensor)


def _steps(count: int, config: GradientConfig) -> list[_Step]:
    """Returns the steps: every pass has each case once, in another order."""
    steps = []
    for epoch in range(config.epochs):
        order = list(range(count))
        random.Random(_number(config.seed, epoch)).shuffle(order)  # noqa: S311 - an order, not a secret
        visits = [(epoch, place, case) for place, case in enumerate(order)]
        steps += [visits[first : first + config.cases_per_step] for first in range(0, count, config.cases_per_step)]
    return steps


def _number(*values: int) -> int:
    """Returns a random number that depends on the values alone, below 2 ** 63."""
    return int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:8], "big") >> 1


def _summary(losses: Mapping[str, Any]) -> str:
    return ", ".join(f"{part} {value:.4g}" for part, value in losses.items())


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The data that a method is fitted on."""

    cases: Sequence[TrainingCase]
    facts: state.DataFacts


def load_training_data(settings: Settings, limit: int | None = None, benchmark: str | None = None) -> TrainingData:
    """Loads training cases, with their images checked, as the benchmark's tasks phrase them.

    Equal requests are one object. ``limit`` takes this many, evenly spaced over all; without a name the benchmark is
    the only one that offers any, own cultures aside.
    """
    offers = {name: entry for name, entry in benchmarks().items() if isinstance(entry, OffersTraining)}
    published = [name for name in offers if name not in cultures()]
    name = published[0] if benchmark is None and len(published) == 1 else benchmark
    if name not in offers:
        hint = "" if name is None else nearest(name, offers)
        raise SettingsError(
            f"insertion: no training cases of the benchmark {name!r}.{hint} Choose one of {', '.join(offers)}."
        )
    offered = offers[name].training_cases(settings, limit)
    request = cache(Request.about)

    def insertion(item: AnsweredQuestion, kind: Locality | None = None) -> Insertion:
        return Insertion(request(item.image, item.question, item.system), item.answer, kind)

    cases = [
        TrainingCase(
            case.scenario,
            insertion(case.inserted),
            generality=tuple(map(insertion, case.generality)),
            locality=tuple(insertion(item, kind) for kind, item in case.locality),
        )
        for case in offered.cases
    ]
    scenarios = tuple(sorted({case.scenario for case in cases}))
    facts = state.DataFacts(raw=offered.raw, cases=offered.fingerprint, count=len(cases), scenarios=scenarios)
    return TrainingData(cases, facts)
