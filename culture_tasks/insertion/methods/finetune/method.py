"""FineTune: steps of gradient descent on the loss of the insertion sample's answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.requests import Insertion
from culture_tasks.insertion.core.training import OptimizerName, make_optimizer
from culture_tasks.insertion.core.weight_edits import (
    RepeatedPass,
    Weights,
    decoder_layer,
    layer_weights,
    with_weights_by_row,
)
from culture_tasks.insertion.core.weight_method import WeightMethod

_log = logging.getLogger(__name__)


class FineTuneConfig(MethodConfig):
    """Options of FineTune.

    Attributes:
        steps: Steps on each insertion sample.
        learning_rate: Of the optimizer.
        optimizer: With PyTorch's defaults, made anew for each sample; the paper names none.
        layer: Number of the edited layer, from 0; negative ones count from the last, which is -1.
    """

    steps: int = Field(default=20, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    optimizer: OptimizerName = "adam"
    layer: int = -1


class FineTuneMethod(WeightMethod):
    """The last layer's attention and MLP matrices are trained on the answer alone (Table 5); norms and biases aren't.

    Steps are made on float32 copies of the weights. The model computes with these, rounded to its own type. Samples of
    a chain are inserted one after the other, each from the weights that the one before left.
    """

    name: ClassVar[str] = "finetune"
    config_class: ClassVar[type[MethodConfig]] = FineTuneConfig
    needs_state: ClassVar[bool] = False
    answers_version: ClassVar[int] = 1
    config: FineTuneConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        layer = decoder_layer(model.model, self.config.layer, method=self.name)
        self._layer_weights = layer_weights(model.model, layer)

    @property
    def weights(self) -> Mapping[str, nn.Parameter]:
        """The weight matrices of the layer."""
        return self._layer_weights

    def edited(self, insertions: Sequence[Insertion], before: Sequence[Weights]) -> list[Weights]:
        """Trains the weights of each chain on its sample; a chain's loss depends on its own weights alone."""
        trained = [
            {name: nn.Parameter(weight.detach().to(torch.float32, copy=True)) for name, weight in weights.items()}
            for weights in before
        ]
        optimizer = make_optimizer(self.config.optimizer, [(weights, self.config.learning_rate) for weights in trained])
        score = RepeatedPass(self.model.model, self.weights, self.model.answer_scorer(insertions))
        for _ in range(self.config.steps):
            optimizer.zero_grad()
            with torch.enable_grad():
                rounded = [self.rounded(weights) for weights in trained]
                losses = with_weights_by_row(self.model.model, rounded, score).losses()
            losses.sum().backward()
            optimizer.step()
        if not torch.isfinite(losses).all():
            _log.warning("insertion: finetune: a loss is not finite. Lower learning_rate.")
        with torch.no_grad():
            return [self.rounded({name: weight.data for name, weight in weights.items()}) for weights in trained]
