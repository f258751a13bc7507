"""Outputs of linear maps that a method changes while the model computes.

No weight is touched: without the changes the model is as before, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from culture_tasks.insertion.core.adapter import AnswerLogits
from culture_tasks.insertion.core.insertion_method import InsertionMethod
from culture_tasks.insertion.core.queries import Insertion
from culture_tasks.insertion.core.weight_edits import RepeatedPass, decoder_layer, decoder_layers, layer_linears

if TYPE_CHECKING:
    from transformers import PreTrainedModel

OutputEdit = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]
"""Returns the output of a linear map, given its input and its plain output, both of shape (requests, tokens, width).

The third argument says which tokens are a prompt's, shape (requests, tokens): not those of padding or of an answer. It
is None in a pass over a later token of an answer that is being generated.
"""


class OutputEdits:
    """Changes of outputs of linear maps, called in every pass of a model, that can be turned on and off."""

    def __init__(self, model: PreTrainedModel, edits: Mapping[nn.Linear, OutputEdit]) -> None:
        self._model, self._edits = model, dict(edits)
        self._handles: list[Any] = []
        self._prompts: torch.Tensor | None = None

    def start(self) -> None:
        """Turns the changes on, if they aren't."""
        if not self._handles:
            self._handles = [
                self._model.register_forward_pre_hook(self._note, with_kwargs=True),
                *(linear.register_forward_hook(partial(self._apply, edit)) for linear, edit in self._edits.items()),
            ]

    def stop(self) -> None:
        """Turns the changes off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _note(self, _model: object, _inputs: object, arguments: Mapping[str, Any]) -> None:
        """Notes which tokens of a pass are a prompt's.

        A pass over a later token of an answer has one token. Masks of ones may be left out. Logits are computed from a
        prompt's last token on, so the tokens after that one are an answer's.
        """
        ids, mask = arguments["input_ids"], arguments.get("attention_mask")
        self._prompts = None
        if ids.shape[1] > 1:
            prompts = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
            answer = max(1, arguments.get("logits_to_keep", 1)) - 1
            parts = [prompts[:, : ids.shape[1] - answer], torch.zeros_like(prompts[:, :answer])]
            self._prompts = torch.cat(parts, dim=1)

    def _apply(self, edit: OutputEdit, _linear: object, inputs: tuple[torch.Tensor], output: torch.Tensor) -> Any:
        return edit(inputs[0], output, None if self._prompts is None else self._prompts.to(output.device))


class OutputMethod(InsertionMethod):
    """A method that changes outputs of linear maps while something is inserted, and trains on each sample's answer."""

    needs_state: ClassVar[bool] = False
    edits_weights: ClassVar[bool] = True
    answers_version: ClassVar[int] = 1

    def _change(self, edits: Mapping[str, OutputEdit]) -> None:
        """Says how outputs of linear maps are changed, by name, from ``self._edits.start()`` on."""
        self._linears: dict[str, nn.Linear] = {name: self.model.model.get_submodule(name) for name in edits}
        self._edits = OutputEdits(self.model.model, {self._linears[name]: edit for name, edit in edits.items()})

    def _passes(self, insertion: Insertion) -> RepeatedPass[AnswerLogits]:
        """Returns passes over a sample with its answer, in which all before the linear maps is computed once."""
        score = self.model.answer_scorer([(insertion.query, insertion.answer)])
        return RepeatedPass(self.model.model, [f"{name}.weight" for name in self._linears], score)


def layer_output(
    model: PreTrainedModel, module: str, layer: int | Mapping[int, int], *, method: str
) -> tuple[str, nn.Linear]:
    """Returns a linear map of the language model, with its name.

    Args:
        model: The model.
        module: Name of the linear map inside a layer, such as ``mlp.down_proj``.
        layer: Number of the layer, from 0; negative numbers count from the last. Or published layers by the number of
            layers of their models: that of the model whose depth is nearest is taken, moved in proportion.
        method: The method's name, for messages.

    Raises:
        SettingsError: If the model has no such layer, or the layer no such linear map.
    """
    number = layer if isinstance(layer, int) else published_layer(layer, len(decoder_layers(model)))
    [(name, linear)] = layer_linears(model, [decoder_layer(model, number, method=method)], [module]).items()
    return name, linear


def published_layer(published: Mapping[int, int], layers: int) -> int:
    """Returns the layer of the published model whose depth is nearest, moved in proportion."""
    depth = min(published, key=lambda count: abs(count - layers))
    return published[depth] * layers // depth
