"""The second, smaller model that answers in place of the first where a request is in the scope of an edit.

It is loaded beside the model under evaluation, with its data type, on its device, with its options of the chat template
and of images. One layer of its language model is trained; the rest stays as in the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch
from accelerate.utils import gather_object
from torch import nn

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.core.edit_scopes import edit_text
from culture_tasks.insertion.core.encoding import Encoded
from culture_tasks.insertion.core.identity import value_key, with_other_weights
from culture_tasks.insertion.core.insertion_method import FitContext
from culture_tasks.insertion.core.queries import Insertion, Query, TrainingCase, text_part
from culture_tasks.insertion.core.training import (
    CaseLosses,
    GradientConfig,
    Learner,
    ParameterGroup,
    full_precision,
    train,
)
from culture_tasks.insertion.core.weight_edits import decoder_layers, with_weights

if TYPE_CHECKING:
    from culture_tasks.insertion.core.scoped_method import ScopedConfig

REPLACEMENTS: Mapping[str, str] = {
    "internvl": "OpenGVLab/InternVL3_5-1B-HF",
    "qwen3_5": "Qwen/Qwen3.5-0.8B",
}
"""The paper's replacement models (Table 5), by the architecture (``model_type``) of the model beside them."""

PREFIX = "replacement."
"""Begins the names of the trained weights in states and checkpoints."""

_OPTIONS = ("replacement_layer", "replacement_learning_rate")
_LAYER_VERSION = 1  # raise it whenever a change of the code changes what a replacement model learns


class ReplacementModel:
    """A model that answers requests which an edit is about, shown after the edit.

    Its layer ``layer`` is trained, whose weights ``trained`` has by name. ``model.identity`` is that of its present
    weights, ``identity`` that of the model as it was loaded.
    """

    def __init__(self, model: MultimodalModel, layer: int) -> None:
        names = decoder_layers(model.model)
        if not -len(names) <= layer < len(names):
            raise SettingsError(
                f"insertion: replacement_layer={layer}, but the replacement model {model.identity.source!r} has "
                f"{len(names)} layers. Name one from {-len(names)} to {len(names) - 1}."
            )
        self.model, self.identity, self._layer = model, model.identity, names[layer]
        self.trained: dict[str, nn.Parameter] = {
            name: weight for name, weight in model.model.named_parameters() if name.startswith(f"{self._layer}.")
        }

    def take(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Puts trained weights into the model, or raises ``ValueError`` if they aren't this model's."""
        shapes = {name: weight.shape for name, weight in self.trained.items()}
        if {name: weight.shape for name, weight in weights.items()} != shapes:
            raise ValueError(f"they are not the weights of its {self._layer}")
        with torch.no_grad():
            for name, weight in self.trained.items():
                weight.copy_(weights[name])
        self.model.identity = with_other_weights(self.identity, self.trained)

    def train(
        self, cases: Sequence[TrainingCase], config: ScopedConfig, context: FitContext, *, batch_size: int, method: str
    ) -> tuple[dict[str, float], Mapping[str, torch.Tensor]]:
        """Trains copies of the layer, or finds them in the store: they don't depend on what is compared.

        Returns:
            The mean losses of the last pass, and the weights for :meth:`take`.
        """
        samples = [[item.key for item in (case.insertion, *case.generality)] for case in cases]
        facts = [_LAYER_VERSION, self.identity.run, layer_options(config), samples]
        key = f"replacement layer:{value_key(facts)}"
        stored = context.store.get(key)
        if all(gather_object([stored is not None])) and stored is not None:
            losses, _, layer = stored.partition(b"\n")
            return dict(json.loads(losses)), safetensors.torch.load(layer)
        learner = _LayerLearner(self, config.replacement_learning_rate, batch_size)
        checkpoints = context.checkpoints and replace(context.checkpoints, key=key)
        means = train(learner, cases, config, name=method, progress=context.progress, checkpoints=checkpoints)
        trained = {name: weight.detach().cpu() for name, weight in learner.layer.items()}
        context.store.put(key, json.dumps(means).encode() + b"\n" + safetensors.torch.save(trained))
        return means, trained


class _LayerLearner(Learner[TrainingCase]):
    """Trains copies of the layer in float32, in which small steps don't vanish; reads some items at a time."""

    def __init__(self, replacement: ReplacementModel, learning_rate: float, batch_size: int) -> None:
        self._replacement, self._learning_rate, self._batch_size = replacement, learning_rate, batch_size
        self.layer = {
            name: nn.Parameter(weight.detach().float().clone()) for name, weight in replacement.trained.items()
        }

    def groups(self) -> Sequence[ParameterGroup]:
        layer = {f"{PREFIX}{name}": weight for name, weight in self.layer.items()}
        return (ParameterGroup(layer, self._learning_rate),)

    def read(self, case: TrainingCase) -> list[Encoded]:
        answered, size = (case.insertion, *case.generality), self._batch_size
        pairs = [(shown_after(case.insertion, item.query), item.answer) for item in answered]
        return [
            self._replacement.model.encode_answered(pairs[start : start + size]) for start in range(0, len(pairs), size)
        ]

    def learn(self, case: list[Encoded], scale: float) -> CaseLosses:
        model, trained = self._replacement.model, self._replacement.trained
        count, total = sum(len(batch.prompts) for batch in case), 0.0
        for batch in case:
            rounded = {name: weight.to(trained[name].dtype) for name, weight in self.layer.items()}
            loss = with_weights(model.model, rounded, model.answer_scorer(batch)).losses().sum() / count
            with full_precision(loss.device):
                (scale * loss).backward()
            total += float(loss.detach())
        return CaseLosses({"replacement": total})


def layer_options(config: ScopedConfig) -> dict[str, Any]:
    """Returns the options that the training of the layer depends on."""
    return config.model_dump(mode="json", include={*GradientConfig.model_fields, *_OPTIONS})


def shown_after(edit: Insertion, query: Query) -> Query:
    """Returns a request with an edit's question and answer before it, as text; the edit's image isn't shown."""
    return query.preceded_by([text_part(f"{edit_text(edit)}\n")])


def load_replacement(name: str | None, layer: int, *, beside: MultimodalModel, method: str) -> ReplacementModel:
    """Loads a replacement model; None means that neither the options nor the paper name one."""
    if name is None:
        raise SettingsError(
            f"{method}: the paper has no replacement model for {beside.identity.source!r} (architecture "
            f"{beside.model.config.model_type!r}). Name a smaller model of the same family: --set replacement=MODEL."
        )
    options = ModelOptions(
        dtype=str(beside.model.dtype).removeprefix("torch."), device=str(beside.device), **beside.encoding_options
    )
    try:
        return ReplacementModel(MultimodalModel.load(name, options), layer)
    except SettingsError as error:
        raise SettingsError(
            f"{method}: the replacement model can't be used. {error} The option replacement=MODEL names it."
        ) from error
