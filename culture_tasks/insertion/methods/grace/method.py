"""GRACE: where the end of a request is near to that of an insertion, a layer's output becomes a learned vector."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.descent import descend
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.layer_outputs import OutputMethod, layer_output
from culture_tasks.insertion.core.queries import Insertion
from culture_tasks.insertion.methods.grace.codebook import Codebook

PUBLISHED_LAYERS = {36: 23, 32: 18, 28: 18}
"""EasyEdit's layers for Qwen3-VL-4B, Qwen3.5-9B and Qwen2-VL-7B, by their number of layers."""


class GraceConfig(MethodConfig):
    """Options of GRACE.

    Attributes:
        radius: First deferral radius of an entry, the paper's epsilon_init: the Euclidean distance within which a
            request uses it.
        steps: Steps of Adam on the value of each insertion sample.
        learning_rate: Of Adam.
        layer: Number of the layer, from 0; negative ones count from the last, which is -1. None takes the published
            one: 23 of 36 layers, 18 of 32, 18 of 28, and in proportion in models of other depths.
        module: Name of the linear map inside the layer whose output the codebook replaces; its input is the key.
        seed: Of the values before training.
    """

    radius: float = Field(default=1.0, gt=0)
    steps: int = Field(default=20, ge=1)
    learning_rate: float = Field(default=1.0, gt=0)
    layer: int | None = None
    module: str = Field(default="mlp.down_proj", min_length=1)
    seed: int = 0


class GraceMethod(OutputMethod):
    """A codebook at the output of one layer's feed-forward network (Hartvigsen et al., 2023).

    The key is the network's last activation, the input of its down projection, at the last token of the prompt; the
    value replaces the projection's output at that token (``replace_last``). Tokens of the answer are neither looked up
    nor replaced, neither when a value learns nor afterwards. A value begins with random numbers between 0 and 1
    (``cold``) and learns the loss of the sample's answer. Two answers are the same if their texts are; the published
    code compares the means of their token ids.
    """

    name: ClassVar[str] = "grace"
    config_class: ClassVar[type[MethodConfig]] = GraceConfig
    config: GraceConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        layer = PUBLISHED_LAYERS if self.config.layer is None else self.config.layer
        name, self._linear = layer_output(model.model, self.config.module, layer, method=self.name)
        self._change({name: self._output})
        self._keys = torch.empty(0)
        self.reset()

    def insert(self, insertion: Insertion) -> None:
        """Adds or changes an entry, and trains its value."""
        self._edits.start()
        score = self._passes(insertion)
        with torch.no_grad():
            score()
        generator = torch.Generator().manual_seed(self.config.seed + self._count)
        value = torch.rand(self._linear.out_features, generator=generator).to(self._keys.device)
        entry = self.codebook.entry_for(self._keys[0], insertion.answer, value)
        entry.value = parameter = nn.Parameter(entry.value)
        descend(
            torch.optim.Adam([parameter], lr=self.config.learning_rate),
            lambda: score().losses().mean(),
            self.config.steps,
            insertion=insertion,
            method=self.name,
        )
        entry.value = parameter.detach()
        self._count += 1

    def reset(self) -> None:
        """Empties the codebook."""
        self._edits.stop()
        self.codebook = Codebook(self.config.radius)
        self._count = 0

    def parameter_count(self) -> int:
        """Numbers of one entry: key, value and radius."""
        return int(self._linear.in_features + self._linear.out_features + 1)

    def _output(self, inputs: torch.Tensor, output: torch.Tensor, prompts: torch.Tensor | None) -> torch.Tensor:
        """Replaces the output at the last token of the prompts that are within an entry's radius."""
        if prompts is None:
            return output
        last = int(prompts[0].nonzero()[-1])  # prompts are padded on the left, so all of them end there
        self._keys = inputs[:, last].float()
        if not self.codebook.entries:
            return output
        values, is_near = self.codebook.lookup(self._keys)
        if not is_near.any():
            return output
        changed = output.clone()
        changed[:, last] = torch.where(is_near[:, None], values.to(output.dtype), output[:, last])
        return changed
