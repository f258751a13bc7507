"""How MEND's editors learn: an edit should fit its sample and the like, and change nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch

from culture_tasks.insertion.core.adapter import AnswerLogits, MultimodalModel
from culture_tasks.insertion.core.encoding import Encoded
from culture_tasks.insertion.core.queries import Insertion, TrainingCase
from culture_tasks.insertion.core.training import CaseLosses, Learner, ParameterGroup, full_precision
from culture_tasks.insertion.core.weight_edits import RepeatedPass, Weights, with_weights
from culture_tasks.insertion.methods.mend.config import MendConfig
from culture_tasks.insertion.methods.mend.editor import Editors, token_gradients


class _Encoded(NamedTuple):
    """A training case as the model's inputs: the sample, and batches of the other items."""

    sample: Encoded
    generality: Sequence[Encoded]
    locality: Sequence[Encoded]


class EditorTraining(Learner[TrainingCase]):
    """The loss of a case: of an edit by its insertion sample, made to the plain model.

    It is ``edit_weight`` times the loss of the sample's answer, plus ``generality_weight`` times that of the generality
    items' answers, plus ``locality_weight`` times the divergence of the edited model from the plain one while it reads
    the locality items and the data's own answers to them. The losses of several items add up, so that each item has
    the whole weight.

    Gradients are normalised by the running moments of all steps before and by the case's own. The moments of a step's
    cases join the running ones after the step, so that the number of processes changes nothing.
    """

    def __init__(self, model: MultimodalModel, editors: Editors, config: MendConfig, batch_size: int) -> None:
        self._model, self._editors, self._config, self._batch_size = model, editors, config, batch_size

    def groups(self) -> list[ParameterGroup]:
        """The editors, and their rates."""
        editors = {name: value for name, value in self._editors.named_parameters() if name != "rates"}
        return [
            ParameterGroup(editors, self._config.learning_rate),
            ParameterGroup({"rates": self._editors.rates}, self._config.edit_rate_learning_rate),
        ]

    def buffers(self) -> Mapping[str, torch.Tensor]:
        """The running moments."""
        return dict(self._editors.named_buffers())

    def absorb(self, observed: Sequence[torch.Tensor]) -> None:
        """Adds the moments of a step's cases to the running ones."""
        for values in observed:
            self._editors.absorb(values)

    def read(self, case: TrainingCase) -> _Encoded:
        """Reads and encodes a case's items."""
        [sample] = self._encoded([case.insertion])
        return _Encoded(sample, self._encoded(case.generality), self._encoded(case.locality))

    def learn(self, case: _Encoded, scale: float) -> CaseLosses:
        """Adds the gradients of a case.

        Gradients are collected at the edited weights, and go on to the editors once: so one forward pass through the
        model is held at a time.
        """
        sample = self._scorer(case.sample)
        [gradients] = token_gradients(self._editors.linears, lambda: sample().losses())
        moments = self._editors.moments(gradients)
        transformed = self._editors.transformed(gradients, moments)
        edited = self._editors.edited(transformed, self._editors.rates, dict(self._model.model.named_parameters()))
        cut = {name: weight.detach().requires_grad_() for name, weight in edited.items()}
        config = self._config
        weights = {
            "edit": config.edit_weight,
            "generality": config.generality_weight,
            "locality": config.locality_weight,
        }
        losses = {
            "edit": self._added(lambda: sample().losses().mean(), weights["edit"] * scale, cut),
            "generality": sum(
                self._added(self._misfit(batch), weights["generality"] * scale, cut) for batch in case.generality
            ),
            "locality": sum(
                self._added(self._drift(batch), weights["locality"] * scale, cut) for batch in case.locality
            ),
        }
        with full_precision(self._editors.rates.device):
            torch.autograd.backward(list(edited.values()), [weight.grad for weight in cut.values()])
        total = sum(weights[part] * loss for part, loss in losses.items())
        return CaseLosses({"loss": total, **losses}, moments)

    def _added(self, loss_of: Callable[[], torch.Tensor], scale: float, edited: Weights) -> float:
        """Adds the gradients of a loss of the edited model, and returns it."""
        model = self._model.model
        rounded = {name: weight.to(model.get_parameter(name).dtype) for name, weight in edited.items()}
        loss = with_weights(model, rounded, loss_of)
        with full_precision(loss.device):
            (scale * loss).backward()
        return float(loss.detach())

    def _misfit(self, batch: Encoded) -> Callable[[], torch.Tensor]:
        """The sum of the losses of answers."""
        score = self._scorer(batch)
        return lambda: score().losses().sum()

    def _drift(self, batch: Encoded) -> Callable[[], torch.Tensor]:
        """The divergence from the plain model, which is run at once."""
        score = self._scorer(batch)
        with torch.no_grad():
            plain = score()
        return lambda: divergence(plain, score())

    def _encoded(self, items: Sequence[Insertion]) -> list[Encoded]:
        pairs, size = [(item.query, item.answer) for item in items], self._batch_size
        return [self._model.encode_answered(pairs[start : start + size]) for start in range(0, len(pairs), size)]

    def _scorer(self, batch: Encoded) -> RepeatedPass[AnswerLogits]:
        """Scores answers; all that comes before the edited weights is computed once."""
        edited = [f"{name}.weight" for name in self._editors.linears]
        return RepeatedPass(self._model.model, edited, self._model.answer_scorer(batch))


def divergence(plain: AnswerLogits, edited: AnswerLogits) -> torch.Tensor:
    """Returns the Kullback-Leibler divergence of edited predictions of answers from plain ones, a scalar, 0 or more.

    It is the sum over the vocabulary of p_plain * (log p_plain - log p_edited), its mean over the tokens of an answer,
    and the sum of that over answers.
    """
    before, after = (torch.log_softmax(logits.logits.float(), dim=-1) for logits in (plain, edited))
    tokens = (before.exp() * (before - after)).sum(-1)
    mask = plain.mask.to(tokens.dtype)
    return ((tokens * mask).sum(-1) / mask.sum(-1)).sum()
