"""MEND: the gradient of the answer's loss, transformed by learned editors, is subtracted from weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.insertion_method import FitContext, MethodConfig
from culture_tasks.insertion.core.queries import Insertion, TrainingCase
from culture_tasks.insertion.core.state import StateError
from culture_tasks.insertion.core.training import train
from culture_tasks.insertion.core.weight_edits import Weights, decoder_layers, layer_linears, with_weights_by_row
from culture_tasks.insertion.core.weight_method import WeightMethod
from culture_tasks.insertion.estimates import EVALUATED, CaseShape, Models, Work
from culture_tasks.insertion.methods.mend.config import MendConfig
from culture_tasks.insertion.methods.mend.editor import Editors, token_gradients
from culture_tasks.insertion.methods.mend.editor_training import EditorTraining


class MendMethod(WeightMethod):
    """Edits as in Mitchell et al. (2022), with the settings of CrossCult-KIBench's Table 5.

    The paper leaves some matters open. Here a weight becomes W - rate * edit, so that an untrained edit is a step of
    descent (the published code adds it); edits of a chain add up, each made from the gradient of the weights as they
    are by then, and rounded to the weights' type; a running mean and deviation are taken over all tokens that have a
    gradient; the divergence on locality items is measured on the data's own answers.
    """

    name: ClassVar[str] = "mend"
    config_class: ClassVar[type[MethodConfig]] = MendConfig
    needs_state: ClassVar[bool] = True
    answers_version: ClassVar[int] = 2
    config: MendConfig

    @classmethod
    def work(cls, config: MendConfig, models: Models, cases: CaseShape) -> Work:
        """One pass to the gradients of a sample, then passes through the edited layers, and the editors' own."""
        model = models[EVALUATED]
        layers = decoder_layers(model)
        names = [f"{layer}.{name}" for layer in layers[-config.layers :] for name in config.weights.split("+")]
        try:
            linears = {name: model.get_submodule(name) for name in names}
        except AttributeError as error:
            raise SettingsError(f"mend: weights={config.weights}, but the model has other maps ({error}).") from None
        share = config.layers / len(layers)
        inside = [
            parameter for layer in layers[-config.layers :] for parameter in model.get_submodule(layer).parameters()
        ]
        edited = sum(linear.weight.numel() for linear in linears.values())
        learned = share * edited / sum(parameter.numel() for parameter in inside)  # for the gradients of edited weights
        with torch.device("meta"):
            editors = Editors(linears, config)
        trained = sum(parameter.numel() for parameter in editors.parameters())
        transforming = trained * len(linears) / len(editors.of_shape)
        # The last layer's gradients are those of the answer's tokens alone, and tokens without a gradient are left out.
        dense = (config.layers - 1) / config.layers
        # Forward and backward of the edited model; before that the sample's gradients, and the plain locality items.
        after = 2 * share + learned
        read = (1 + share + after) + cases.generality * (1 + share + learned) + cases.locality * (1 + after)
        # An editor's first layer needs no gradients of its inputs.
        backward = 2 - 1 / (2 * (config.hidden_layers + 1))
        return Work(
            fit={EVALUATED: config.epochs * cases.count * read},
            fit_float32=config.epochs * cases.count * dense * ((1 + backward) * transforming + 3 * edited),
            insertion={EVALUATED: 1 + share},
            insertion_float32=dense * (transforming + edited),
            chain_bytes=edited * model.dtype.itemsize,
            trained=trained,
        )

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._editors: Editors | None = None

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
        score = self.model.answer_scorer([(insertion.query, insertion.answer) for insertion in insertions])
        gradients = token_gradients(
            self.editors.linears, lambda: with_weights_by_row(self.model.model, before, score).losses()
        )
        with torch.no_grad():
            return [
                self._rounded(self.editors.edited(self.editors.transformed(row), self.editors.rates, weights))
                for row, weights in zip(gradients, before, strict=True)
            ]

    def parameter_count(self) -> int:
        """Parameters of the editors."""
        return sum(parameter.numel() for parameter in self.editors.parameters())

    def _forget(self) -> None:
        """Goes back to the plain weights and to untrained editors."""
        self.reset()
        self._editors = None

    def _fit(self, cases: Sequence[TrainingCase], context: FitContext) -> dict[str, Any]:
        self._forget()
        learner = EditorTraining(self.model, self.editors, self.config, self.batch_size)
        progress, checkpoints = context.progress, context.checkpoints
        losses = train(learner, cases, self.config, name=self.name, progress=progress, checkpoints=checkpoints)
        return {**losses, "edit_rates": self.editors.rates.tolist()}

    def _tensors(self) -> dict[str, torch.Tensor]:
        return dict(self.editors.state_dict())

    def _facts(self) -> dict[str, Any]:
        return {"weights": list(self.editors.linears)}

    def _restore(self, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        self._forget()
        try:
            self.editors.load_state_dict(dict(tensors))
        except RuntimeError as error:
            raise StateError(f"mend: the state doesn't fit its own options ({error}). Fit the method again.") from None
        if facts.get("weights") != list(self.editors.linears):
            raise StateError(
                f"mend: the state is of {facts.get('weights')}, but the options name {list(self.editors.linears)}. "
                "Fit the method again."
            )
