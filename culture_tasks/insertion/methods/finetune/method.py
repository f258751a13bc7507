"""FineTune: steps of gradient descent on the loss of the insertion sample's answer."""

from __future__ import annotations

import logging
import math
from typing import ClassVar

import torch
from torch import nn

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig
from culture_tasks.insertion.core.queries import Insertion
from culture_tasks.insertion.core.training import ParameterGroup, make_optimizer
from culture_tasks.insertion.core.weight_edits import (
    EditedWeights,
    Part,
    RepeatedPass,
    decoder_layers,
    layer_weights,
    with_weights,
)
from culture_tasks.insertion.core.work import EVALUATED, Setup, Work
from culture_tasks.insertion.methods.finetune.config import FineTuneConfig

logger = logging.getLogger(__name__)


class FineTuneMethod(InsertionMethod):
    """The last layer is trained on the answer alone (Table 5); nothing is trained before.

    Steps are made on float32 copies of the weights. The model computes with these, rounded to its own type, and gets
    their last values. Samples of a chain are inserted one after the other, each from the weights that
    the one before left.

    Args:
        model: The model, whose weights change while something is inserted.
        config: Options.
    """

    name: ClassVar[str] = "finetune"
    config_class: ClassVar[type[MethodConfig]] = FineTuneConfig
    needs_state: ClassVar[bool] = False
    edits_weights: ClassVar[bool] = True
    answers_version: ClassVar[int] = 1
    config: FineTuneConfig

    @classmethod
    def work(cls, setup: Setup) -> Work:
        """One pass up to the layer, then forward and backward through that layer in each step."""
        config, model = setup.config, setup.models[EVALUATED]
        assert isinstance(config, FineTuneConfig)
        layers = decoder_layers(model)
        weights = [weight for weight in model.get_submodule(layers[config.layer]).parameters() if weight.dim() > 1]
        return Work(
            insertion={EVALUATED: 1 + (3 * config.steps - 1) / len(layers)},
            # In float32 weights, gradient, Adam's two moments and a temporary; rounded weights and their gradient.
            chain_bytes=24 * sum(weight.numel() for weight in weights),
        )

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        layers = decoder_layers(model.model)
        if not -len(layers) <= self.config.layer < len(layers):
            raise SettingsError(
                f"insertion: option layer={self.config.layer} of finetune. The model has layers 0 to "
                f"{len(layers) - 1}; -1 is the last."
            )
        parts: list[Part] = ["attention", "mlp"] if self.config.weights == "attention+mlp" else [self.config.weights]
        self._layer_weights = layer_weights(model.model, layers[self.config.layer], parts)
        self._weights = EditedWeights(self._layer_weights)

    def insert(self, insertion: Insertion) -> None:
        """Trains the weights on one sample."""
        trained = {
            name: nn.Parameter(weight.detach().to(torch.float32, copy=True))
            for name, weight in self._layer_weights.items()
        }
        optimizer = make_optimizer(self.config.optimizer, [ParameterGroup(trained, self.config.learning_rate)])
        sample = [(insertion.query, insertion.answer)]
        score = RepeatedPass(self.model.model, trained, self.model.answer_scorer(sample))
        types = {name: weight.dtype for name, weight in self._layer_weights.items()}
        losses: list[float] = []
        for _ in range(self.config.steps):
            optimizer.zero_grad()
            rounded = {name: weight.to(types[name]) for name, weight in trained.items()}
            with torch.enable_grad():
                loss = with_weights(self.model.model, rounded, score).losses().mean()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        self._weights.set(trained)
        if not math.isfinite(losses[-1]):
            logger.warning(
                "insertion: finetune: the loss of %.80r is not finite. Lower learning_rate.", insertion.answer
            )
        logger.debug("insertion: finetune: loss %.4g at the first step, %.4g at the last", losses[0], losses[-1])

    def reset(self) -> None:
        """Puts the weights back, bit for bit."""
        self._weights.restore()
