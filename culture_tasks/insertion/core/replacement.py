"""The second, smaller model that answers in place of the first where a request is in the scope of an edit.

It is loaded beside the model under evaluation, with its data type, on its device, with its options of the chat template
and of images. One layer of its language model is trained; the rest stays as in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from culture_tasks.errors import SettingsError
from culture_tasks.insertion.core.adapter import ModelOptions, MultimodalModel
from culture_tasks.insertion.core.edit_scopes import edit_text
from culture_tasks.insertion.core.encoding import Encoded
from culture_tasks.insertion.core.identity import ModelIdentity, with_other_weights
from culture_tasks.insertion.core.queries import Insertion, Query, text_part
from culture_tasks.insertion.core.weight_edits import decoder_layers, with_weights

REPLACEMENTS: Mapping[str, str] = {
    "internvl": "OpenGVLab/InternVL3_5-1B-HF",
    "qwen3_5": "Qwen/Qwen3.5-0.8B",
}
"""The paper's replacement models (Table 5), by the architecture (``model_type``) of the model beside them."""


class ReplacementModel:
    """A model that answers requests which an edit is about, shown after the edit.

    Args:
        model: The model.
        layer: Index of the layer of its language model that is trained; negative ones count from the end.

    Attributes:
        model: The model; its identity is that of its present weights.
        identity: Fingerprints of the model as it was loaded.
        trained: The names of the weights that are trained, with the weights.

    Raises:
        SettingsError: If it has no such layer.
    """

    def __init__(self, model: MultimodalModel, layer: int) -> None:
        names = decoder_layers(model.model)
        if not -len(names) <= layer < len(names):
            raise SettingsError(
                f"insertion: replacement_layer={layer}, but the replacement model {model.identity.source!r} has "
                f"{len(names)} layers. Name one from {-len(names)} to {len(names) - 1}."
            )
        self._layer = names[layer]
        self.model = model
        self.identity: ModelIdentity = model.identity
        self.trained: dict[str, nn.Parameter] = {
            name: weight for name, weight in model.model.named_parameters() if name.startswith(f"{self._layer}.")
        }

    def copies(self) -> dict[str, nn.Parameter]:
        """Returns copies of the trained weights in float32, in which small steps don't vanish."""
        return {name: nn.Parameter(weight.detach().float().clone()) for name, weight in self.trained.items()}

    def losses(self, weights: Mapping[str, torch.Tensor], answered: Encoded) -> torch.Tensor:
        """Returns the mean negative log-likelihood of each answer while the trained weights are others.

        Args:
            weights: Tensors in the place of ``trained``; gradients flow to them.
            answered: Requests with their answers.
        """
        cast = {name: weight.to(self.trained[name].dtype) for name, weight in weights.items()}
        score = self.model.answer_scorer(answered)
        return with_weights(self.model.model, cast, lambda: score().losses())

    def take(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Puts trained weights into the model.

        Raises:
            ValueError: If they aren't this model's.
        """
        shapes = {name: tuple(weight.shape) for name, weight in self.trained.items()}
        if {name: tuple(weight.shape) for name, weight in weights.items()} != shapes:
            raise ValueError(f"they are not the weights of its {self._layer}")
        with torch.no_grad():
            for name, weight in self.trained.items():
                weight.copy_(weights[name])
        self.model.identity = with_other_weights(self.identity, self.trained)


def shown_after(edit: Insertion, query: Query) -> Query:
    """Returns a request with an edit's question and answer before it, as text; the edit's image isn't shown."""
    return query.preceded_by([text_part(f"{edit_text(edit)}\n")])


def load_replacement(name: str | None, layer: int, *, beside: MultimodalModel, method: str) -> ReplacementModel:
    """Loads a replacement model.

    Args:
        name: Model on the Hub, or folder; None takes the paper's for the architecture of the model beside it.
        layer: Index of the layer that is trained.
        beside: The model under evaluation.
        method: The method's name, for messages.

    Raises:
        SettingsError: If it must be named, can't be loaded, or isn't a model of images and text with a chat template.
    """
    chosen = name or REPLACEMENTS.get(str(beside.model.config.model_type))
    if chosen is None:
        raise SettingsError(
            f"{method}: the paper has no replacement model for {beside.identity.source!r} (architecture "
            f"{beside.model.config.model_type!r}). Name a smaller model of the same family: --set replacement=MODEL."
        )
    options = ModelOptions(
        dtype=str(beside.model.dtype).removeprefix("torch."), device=str(beside.device), **beside.encoding_options
    )
    try:
        model = MultimodalModel.load(chosen, options)
    except SettingsError as error:
        raise SettingsError(
            f"{method}: the replacement model can't be used. {error} The option replacement=MODEL names it."
        ) from error
    return ReplacementModel(model, layer)
