"""GRACE: where the end of a request is near to that of an insertion, a layer's output becomes a learned vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field
from torch import nn

from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.descent import descend
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.layer_outputs import OutputMethod, layer_output
from culture_tasks.insertion.core.queries import Insertion

PUBLISHED_LAYERS = {36: 23, 32: 18, 28: 18}
"""EasyEdit's layers for Qwen3-VL-4B, Qwen3.5-9B and Qwen2-VL-7B, by their number of layers."""

MARGIN = 1e-5
"""Is taken from the older of two split radii, so that no key is within both."""


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


@dataclass
class CodebookEntry:
    """A key with its learned value, both float32 vectors; a request within the radius of the key uses it."""

    key: torch.Tensor
    value: torch.Tensor
    radius: float
    answer: str


class Codebook:
    """The entries, in the order of their insertion (Algorithm 1)."""

    def __init__(self, radius: float) -> None:
        self.entries: list[CodebookEntry] = []
        self._radius = radius

    def entry_for(self, key: torch.Tensor, answer: str, value: torch.Tensor) -> CodebookEntry:
        """Returns the entry that is to learn an answer, after adding, expanding or splitting.

        With d the distance of the nearest key, whose radius is r, and e the first radius: if d > e + r, a new entry
        with radius e is added, which begins with ``value``. Otherwise, if the nearest entry has the same answer, its
        radius becomes at least d and its value learns on. If it has another answer, a new entry is added, and both
        radii become d / 2. The same request again, d = 0, replaces the answer.
        """
        radius = self._radius
        if self.entries:
            distances = self._distances(key[None])[0]
            nearest = self.entries[int(distances.argmin())]
            distance = float(distances.min())
            if distance <= self._radius + nearest.radius:
                if nearest.answer == answer or distance == 0:
                    nearest.answer, nearest.radius = answer, max(nearest.radius, distance)
                    return nearest
                radius = distance / 2
                nearest.radius = radius - MARGIN
        self.entries.append(CodebookEntry(key, value, radius, answer))
        return self.entries[-1]

    def lookup(self, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the values of the entries nearest to keys, and whether each key is within its entry's radius.

        Shapes are (requests, inputs) of keys, (requests, outputs) of values and (requests,).
        """
        distances, nearest = self._distances(keys).min(dim=1)
        radii = torch.tensor([entry.radius for entry in self.entries], device=keys.device)
        values = torch.stack([self.entries[place].value for place in nearest.tolist()])
        return values, distances <= radii[nearest]

    def _distances(self, keys: torch.Tensor) -> torch.Tensor:
        """Returns Euclidean distances, shape (requests, entries), without the rounding of a matrix product."""
        entry_keys = torch.stack([entry.key for entry in self.entries])
        return torch.cdist(keys, entry_keys, compute_mode="donot_use_mm_for_euclid_dist")


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
        optimizer, steps = torch.optim.Adam([parameter], lr=self.config.learning_rate), self.config.steps
        descend(optimizer, lambda: score().losses().mean(), steps, insertion=insertion, method=self.name)
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
