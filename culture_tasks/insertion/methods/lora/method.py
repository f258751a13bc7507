"""LoRA: the product of two small matrices is added to weights of the attention, and trained on each sample."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.descent import descend
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.layer_outputs import OutputMethod
from culture_tasks.insertion.core.queries import Insertion
from culture_tasks.insertion.core.training import OptimizerName, ParameterGroup, make_optimizer
from culture_tasks.insertion.core.weight_edits import decoder_layers, layer_linears


class LoraConfig(MethodConfig):
    """Options of LoRA.

    Attributes:
        rank: Rank r of the added matrices.
        alpha: Their product is multiplied by alpha / rank.
        dropout: Share of an input's entries that are left out in training.
        weights: Names of the linear maps inside a layer, joined by ``+``; layers that lack one are passed over.
        steps: Steps on each insertion sample.
        learning_rate: Of the first step.
        decay: The learning rate is multiplied by it after each step.
        optimizer: With PyTorch's defaults, made anew for each sample.
        seed: Of the first values, and of dropout.
    """

    rank: int = Field(default=8, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    weights: str = Field(default="self_attn.q_proj+self_attn.v_proj", min_length=1)
    steps: int = Field(default=5, ge=1)
    learning_rate: float = Field(default=0.1, gt=0)
    decay: float = Field(default=0.9, gt=0, le=1)
    optimizer: OptimizerName = "sgd"
    seed: int = 0


class LoraMethod(OutputMethod):
    """h = W x + alpha / r * B A x (equation 3 of Hu et al., 2021), with A and B in float32.

    B is 0 at first, and A is drawn from a normal distribution, whose deviation the paper leaves open: 1 / sqrt(3 d) for
    d inputs, that of the uniform distribution which peft uses by default. The loss is that of the sample's answer.
    Samples of a chain train the same matrices one after the other.
    """

    name: ClassVar[str] = "lora"
    config_class: ClassVar[type[MethodConfig]] = LoraConfig
    config: LoraConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        inner, names = model.model, self.config.weights.split("+")
        modules, layers = dict(inner.named_modules()), decoder_layers(inner)
        # A name that no layer has is left to the last one, whose error lists the names that there are.
        unknown = [name for name in names if not any(f"{layer}.{name}" in modules for layer in layers)]
        linears: dict[str, nn.Linear] = {}
        for layer in layers:
            present = [name for name in names if f"{layer}.{name}" in modules]
            linears |= layer_linears(inner, [layer], present + (unknown if layer == layers[-1] else []))
        self._change({name: partial(self._output, name) for name in linears})
        self._factors: dict[str, tuple[nn.Parameter, nn.Parameter]] = {}
        self._is_training = False
        self._count = 0

    def insert(self, insertion: Insertion) -> None:
        """Trains the added matrices on one sample."""
        config, score = self.config, self._passes(insertion)
        devices = {linear.weight.device for linear in self._linears.values()}
        with torch.random.fork_rng(devices=[device for device in devices if device.type == "cuda"]):
            torch.manual_seed(config.seed + self._count)
            if not self._factors:
                self._factors = {name: self._new_factors(linear) for name, linear in self._linears.items()}
            self._edits.start()
            parameters = {f"{name}.{place}": pair[place] for name, pair in self._factors.items() for place in (0, 1)}
            optimizer = make_optimizer(config.optimizer, [ParameterGroup(parameters, config.learning_rate)])
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, config.decay)
            self._is_training = True
            try:
                descend(
                    optimizer,
                    lambda: score().losses().mean(),
                    config.steps,
                    insertion=insertion,
                    method=self.name,
                    after=schedule.step,
                )
            finally:
                self._is_training = False
        self._count += 1

    def reset(self) -> None:
        """Takes the added matrices away."""
        self._edits.stop()
        self._factors, self._count = {}, 0

    def parameter_count(self) -> int:
        """Parameters of the added matrices."""
        return sum(self.config.rank * (linear.in_features + linear.out_features) for linear in self._linears.values())

    def _new_factors(self, linear: nn.Linear) -> tuple[nn.Parameter, nn.Parameter]:
        """Returns A and B before training."""
        a = torch.empty(self.config.rank, linear.in_features, device=linear.weight.device)
        b = torch.zeros(linear.out_features, self.config.rank, device=linear.weight.device)
        return nn.Parameter(a.normal_(std=(3 * linear.in_features) ** -0.5)), nn.Parameter(b)

    def _output(self, name: str, inputs: torch.Tensor, output: torch.Tensor, _prompts: object) -> torch.Tensor:
        a, b = self._factors[name]
        rows = nn.functional.dropout(inputs.to(a.dtype), self.config.dropout, training=self._is_training)
        return (output + self.config.alpha / self.config.rank * (rows @ a.T @ b.T)).to(output.dtype)
