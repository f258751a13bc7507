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
import logging
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import torch
from pydantic import Field
from safetensors import SafetensorError

from culture_tasks.benchmarks.registry import benchmarks, cultures
from culture_tasks.benchmarks.training_cases import AnsweredQuestion, Locality, OffersTraining
from culture_tasks.errors import CultureTasksError, SettingsError, nearest
from culture_tasks.insertion.core import state
from culture_tasks.insertion.core.devices import Progress, read_ahead
from culture_tasks.insertion.core.insertion_method import FitContext, MethodConfig
from culture_tasks.insertion.core.requests import Insertion, Request, TrainingCase
from culture_tasks.settings import Settings

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


ParameterGroup = tuple[Mapping[str, "nn.Parameter"], float]
"""Parameters by names that no other group has, with their learning rate; in float32 small steps don't vanish."""


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
        """Adds the gradients of ``scale`` times the loss of a case, by one or several calls of ``backward``.

        The case is as :meth:`read` returned it. It runs under autocast where the options ask for mixed precision;
        :func:`full_precision` is for ``backward``. Returned are the loss and its parts, by names for the report.
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
    context: FitContext,
    *,
    name: str,
) -> dict[str, float]:
    """Trains, from the latest checkpoint on, and returns the mean of each part of the losses over the last pass.

    The caller clears checkpoints when the result is safe. ``name`` is the method's, for messages.

    Raises:
        CultureTasksError: If a loss or a gradient isn't finite, or the checkpoint is broken or another training's.
    """
    training = _Training(learner, cases, config, name)
    training.restore(context.checkpoints)
    with torch.random.fork_rng(devices=[training.device] if training.device.type == "cuda" else []):
        return training.run(context.progress, context.checkpoints)


def full_precision(device: torch.device) -> torch.autocast:
    """Turns mixed precision off inside a computation: backward passes don't belong under autocast."""
    return torch.autocast(device.type, enabled=False)


def make_optimizer(name: OptimizerName, groups: Sequence[ParameterGroup]) -> torch.optim.Optimizer:
    """Makes an optimizer."""
    classes = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return classes[name]([{"params": [*parameters.values()], "lr": rate} for parameters, rate in groups])


class _Step(NamedTuple):
    """The places of cases whose mean gradient makes one step, whose first is ``first`` in the order of the pass."""

    epoch: int
    first: int
    cases: Sequence[int]


class _Training(Generic[Case]):
    """``done`` are the steps that were made, ``sums`` those of the losses in the present pass over ``count`` cases."""

    def __init__(self, learner: Learner[Case], cases: Sequence[Case], config: GradientConfig, name: str) -> None:
        self._learner, self._cases, self._config, self._name = learner, cases, config, name
        groups = learner.groups()
        self._parameters = {name: value for parameters, _ in groups for name, value in parameters.items()}
        self._optimizer = make_optimizer(config.optimizer, groups)
        self.device = next(iter(self._parameters.values())).device
        self._done, self._count, self._sums = 0, 0, dict[str, float]()

    def run(self, progress: Progress[Any], checkpoints: Checkpoints | None) -> dict[str, float]:
        """Makes the steps that are left."""
        steps = list(_steps(len(self._cases), self._config))
        left, last_write = steps[self._done :], time.monotonic()
        rest = f" (from step {self._done + 1} of {len(steps)})" if self._done else ""
        self._require_gradients(required=True)
        try:
            with closing(read_ahead(left, self._read)) as cases_of_steps:
                for step in progress(left, f"{self._name}: training{rest}", lambda: _summary(self._means())):
                    self._make(step, next(cases_of_steps))
                    self._done += 1
                    is_due = checkpoints and time.monotonic() >= last_write + 60 * checkpoints.minutes
                    if checkpoints and (is_due or step is steps[-1]):
                        self._write(checkpoints)
                        last_write = time.monotonic()
        finally:
            self._optimizer.zero_grad()
            self._require_gradients(required=False)
        return self._means()

    def _require_gradients(self, *, required: bool) -> None:
        for parameter in self._parameters.values():
            parameter.requires_grad_(requires_grad=required)

    def _read(self, step: _Step) -> list[Any]:
        return [self._learner.read(self._cases[place]) for place in step.cases]

    def _make(self, step: _Step, cases: Sequence[Any]) -> None:
        """Makes one step."""
        self._optimizer.zero_grad()
        if step.first == 0:
            self._sums, self._count = {}, 0
        mixed = self._config.mixed_precision == "bf16"
        for place, case in enumerate(cases, step.first):
            torch.manual_seed(_number(self._config.seed, step.epoch, place))
            with torch.enable_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
                losses = self._learner.learn(case, 1.0 / len(cases))
            self._check_finite(losses)
            self._sums = {part: self._sums.get(part, 0.0) + value for part, value in losses.items()}
        self._count += len(cases)
        limit = self._config.clip_norm or math.inf
        norm = torch.nn.utils.clip_grad_norm_(list(self._parameters.values()), limit)
        self._check_finite({"gradient norm": float(norm)})
        self._optimizer.step()
        self._learner.end_step()

    def _check_finite(self, values: Mapping[str, float]) -> None:
        """Stops before a step that would spoil the parameters, and the checkpoint with them."""
        if not all(map(math.isfinite, values.values())):
            raise CultureTasksError(
                f"insertion: {self._name}: the training is not finite at step {self._done + 1} ({_summary(values)}). "
                "Lower the learning rate, or compute in a wider data type (--dtype float32)."
            )

    def _means(self) -> dict[str, float]:
        return {part: total / self._count for part, total in self._sums.items()}

    def _write(self, checkpoints: Checkpoints) -> None:
        """Writes all that steps change."""
        tensors = {f"parameter/{name}": value for name, value in self._parameters.items()}
        tensors |= {f"buffer/{name}": value for name, value in self._learner.buffers().items()}
        for name, parameter in self._parameters.items():
            entries = self._optimizer.state.get(parameter, {}).items()
            tensors |= {f"optimizer/{entry}/{name}": value for entry, value in entries if value is not None}
        checkpoints.write({"done": self._done, "losses": self._sums, "cases": self._count}, tensors)
        logger.info("insertion: %s: %s after %d steps", self._name, _summary(self._means()), self._done)

    def restore(self, checkpoints: Checkpoints | None) -> None:
        """Restores the latest checkpoint, if there is one."""
        if checkpoints is not None and checkpoints.file.exists():
            facts, tensors = checkpoints.read()
            self._done, self._sums, self._count = facts["done"], dict(facts["losses"]), facts["cases"]
            for key, tensor in tensors.items():
                *kind, name = key.split("/")
                if kind[0] == "optimizer":
                    # Adam counts steps on the CPU; its other entries are where the parameter is.
                    parameter = self._parameters[name]
                    value = tensor.to(parameter.device) if tensor.dim() else tensor
                    self._optimizer.state[parameter][kind[1]] = value
                else:
                    (self._parameters if kind[0] == "parameter" else self._learner.buffers())[name].data.copy_(tensor)


def _steps(cases: int, config: GradientConfig) -> Iterator[_Step]:
    for epoch in range(config.epochs):
        order = list(range(cases))
        random.Random(_number(config.seed, epoch)).shuffle(order)  # noqa: S311 - an order, not a secret
        for first in range(0, cases, config.cases_per_step):
            yield _Step(epoch, first, order[first : first + config.cases_per_step])


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
    requests: dict[tuple[Path, str, str], Request] = {}

    def insertion(item: AnsweredQuestion, kind: Locality | None = None) -> Insertion:
        request = Request.about(item.image, item.question, item.system)
        return Insertion(requests.setdefault((item.image, item.system, item.question), request), item.answer, kind)

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
