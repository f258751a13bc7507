"""MEND: the gradient of the answer's loss, transformed by learned editors, is subtracted from weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.adapter import AnswerLogits, MultimodalModel
from culture_tasks.insertion.core.encoding import EncodedBatch
from culture_tasks.insertion.core.insertion_method import FitContext, MethodConfig
from culture_tasks.insertion.core.requests import Insertion, TrainingCase
from culture_tasks.insertion.core.training import Learner, ParameterGroup, full_precision, train
from culture_tasks.insertion.core.weight_edits import (
    RepeatedPass,
    Weights,
    decoder_layers,
    layer_linears,
    with_weights,
    with_weights_by_row,
)
from culture_tasks.insertion.core.weight_method import WeightMethod
from culture_tasks.insertion.methods.mend.editor import Editors, MendConfig, token_gradients

EncodedCase = tuple[EncodedBatch, Sequence[EncodedBatch], Sequence[EncodedBatch]]
"""A training case as the model's inputs: the sample, and batches of its generality and its locality items."""


class MendMethod(WeightMethod, Learner[TrainingCase]):
    """Edits as in Mitchell et al. (2022), with the settings of CrossCult-KIBench's Table 5.

    The paper leaves some matters open. Here a weight becomes W - rate * edit, so that an untrained edit is a step of
    descent (the published code adds it); edits of a chain add up, each made from the gradient of the weights as they
    are by then, and rounded to the weights' type; a running mean and deviation are taken over all tokens that have a
    gradient; the divergence on locality items is measured on the data's own answers.

    The loss of a training case is that of an edit by its insertion sample, made to the plain model: ``edit_weight``
    times the loss of the sample's answer, plus ``generality_weight`` times that of the generality items' answers, plus
    ``locality_weight`` times the divergence of the edited model from the plain one while it reads the locality items
    and the data's own answers to them. The losses of several items add up, so that each item has the whole weight.

    Gradients are normalised by the running moments of all steps before and by the case's own, which join the running
    ones after the step.
    """

    name: ClassVar[str] = "mend"
    config_class: ClassVar[type[MethodConfig]] = MendConfig
    needs_state: ClassVar[bool] = True
    answers_version: ClassVar[int] = 2
    config: MendConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._editors: Editors | None = None
        self._moments: list[Mapping[str, torch.Tensor]] = []

    @property
    def editors(self) -> Editors:
        """The trained editors, or untrained ones, of the weights that the options name."""
        if self._editors is None:
            layers, count = decoder_layers(self.model.model), self.config.layers
            if count > len(layers):
                raise SettingsError(f"mend: layers={count}, but the model has {len(layers)}. Name fewer layers.")
            linears = layer_linears(self.model.model, layers[-count:], self.config.weights.split("+"))
            self._editors = Editors(linears, self.config)
        return self._editors

    @property
    def weights(self) -> Mapping[str, nn.Parameter]:
        """The weights of the linear maps."""
        return {f"{name}.weight": linear.weight for name, linear in self.editors.linears.items()}

    def edited(self, insertions: Sequence[Insertion], before: Sequence[Weights]) -> list[Weights]:
        """Edits the weights of each chain once, by the gradient of the loss of its sample's answer."""
        score = self.model.answer_scorer(insertions)
        gradients = token_gradients(
            self.editors.linears, lambda: with_weights_by_row(self.model.model, before, score).losses()
        )
        with torch.no_grad():
            return [
                self.rounded(self.editors.edited(self.editors.transformed(row), self.editors.rates, weights))
                for row, weights in zip(gradients, before, strict=True)
            ]

    def parameter_count(self) -> int:
        """Parameters of the editors."""
        return sum(parameter.numel() for parameter in self.editors.parameters())

    def groups(self) -> list[ParameterGroup]:
        """The editors, and their rates."""
        editors = {name: value for name, value in self.editors.named_parameters() if name != "rates"}
        rates = {"rates": self.editors.rates}
        return [(editors, self.config.learning_rate), (rates, self.config.edit_rate_learning_rate)]

    def buffers(self) -> Mapping[str, torch.Tensor]:
        """The running moments."""
        return dict(self.editors.named_buffers())

    def end_step(self) -> None:
        """Adds the moments of the step's cases to the running ones."""
        for moments in self._moments:
            self.editors.absorb(moments)
        self._moments.clear()

    def read(self, case: TrainingCase) -> EncodedCase:
        """Reads and encodes a case's items."""
        [sample], generality, locality = map(self._encoded, ([case.insertion], case.generality, case.locality))
        return sample, generality, locality

    def learn(self, case: EncodedCase, scale: float) -> Mapping[str, float]:
        """Adds the gradients of a case: collected at the edited weights, so that one forward pass is held at a time."""
        editors, model, config = self.editors, self.model.model, self.config
        inserted, generality, locality = case
        sample = self._scorer(inserted)
        [gradients] = token_gradients(editors.linears, lambda: sample().losses())
        moments = editors.moments(gradients)
        edited = editors.edited(editors.transformed(gradients, moments), editors.rates, dict(model.named_parameters()))
        cut = {name: weight.detach().requires_grad_() for name, weight in edited.items()}

        def added(weight: float, score: RepeatedPass[AnswerLogits], loss_of: Callable[[AnswerLogits], Any]) -> float:
            """Adds the gradients of a loss of the edited model, and returns it."""
            loss = loss_of(with_weights(model, self.rounded(cut), score))
            with full_precision(loss.device):
                (scale * weight * loss).backward()
            return float(loss.detach())

        def drift(batch: EncodedBatch) -> float:
            score = self._scorer(batch)
            with torch.no_grad():
                plain = score()
            return added(config.locality_weight, score, lambda logits: divergence(plain, logits))

        losses = {
            "edit": added(config.edit_weight, sample, lambda logits: logits.losses().mean()),
            "generality": sum(
                added(config.generality_weight, self._scorer(batch), lambda logits: logits.losses().sum())
                for batch in generality
            ),
            "locality": sum(map(drift, locality)),
        }
        with full_precision(editors.rates.device):
            torch.autograd.backward(list(edited.values()), [weight.grad for weight in cut.values()])
        total = sum(getattr(config, f"{part}_weight") * loss for part, loss in losses.items())
        self._moments.append(moments)
        return {"loss": total, **losses}

    def _encoded(self, items: Sequence[Insertion]) -> list[EncodedBatch]:
        return self.model.encode_in_batches(items, self.batch_size)

    def _scorer(self, batch: EncodedBatch) -> RepeatedPass[AnswerLogits]:
        """Scores answers; all that comes before the edited weights is computed once."""
        return RepeatedPass(self.model.model, self.weights, self.model.answer_scorer(batch))

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        self.reset()
        self._editors, self._moments = None, []
        losses = train(self, cases, self.config, context.checkpoints, name=self.name)
        return {**losses, "edit_rates": self.editors.rates.tolist()}

    def _tensors(self) -> dict[str, torch.Tensor]:
        return dict(self.editors.state_dict())

    def _facts(self) -> dict[str, Any]:
        return {"weights": list(self.editors.linears)}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        self._editors = None
        self.editors.load_state_dict(dict(tensors))
        if facts["weights"] != list(self.editors.linears):
            raise ValueError(f"it is of {facts['weights']}, but the options name {list(self.editors.linears)}")


def divergence(plain: AnswerLogits, edited: AnswerLogits) -> torch.Tensor:
    """Returns the Kullback-Leibler divergence of edited predictions of answers from plain ones, a scalar, 0 or more.

    It is the sum over the vocabulary of p_plain * (log p_plain - log p_edited), its mean over the tokens of an answer,
    and the sum of that over answers.
    """
    before, after = (torch.log_softmax(logits.logits.float(), dim=-1) for logits in (plain, edited))
    tokens = (before.exp() * (before - after)).sum(-1)
    mask = plain.mask.to(tokens.dtype)
    return ((tokens * mask).sum(-1) / mask.sum(-1)).sum()
