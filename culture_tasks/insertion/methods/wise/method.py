"""WISE: a copy of one weight learns what is inserted, and a request that activates it is answered with the copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import Field
from torch import nn
from torch.nn.functional import linear

from culture_tasks import prompt_files
from culture_tasks.insertion.core.adapter import MultimodalModel
from culture_tasks.insertion.core.descent import descend
from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.layer_outputs import OutputMethod, layer_output
from culture_tasks.insertion.core.queries import AnswerDecoding, Insertion, Query, text_part

PUBLISHED_LAYERS = {36: 30, 32: 23, 28: 23}
"""EasyEdit's layers for Qwen3-VL-4B, Qwen3.5-9B and Qwen2-VL-7B, by their number of layers."""

IRRELEVANT = "irrelevant.v1"

Prefill = tuple[torch.Tensor, torch.Tensor]
"""Inputs of the linear map, shape (1, tokens, inputs), and which of them are a prompt's, shape (1, tokens)."""


class WiseConfig(MethodConfig):
    """Options of WISE, with EasyEdit's values for multimodal models as defaults.

    Attributes:
        steps: Steps of gradient descent on each insertion sample.
        learning_rate: The paper's eta.
        norm_limit: Largest difference between an entry of a side memory and of the main memory.
        mask_ratio: Share of a side memory's entries that a shard trains, the paper's rho.
        alpha: Routing activations of irrelevant requests should be below it.
        beta: Routing activations of inserted requests should be above it.
        gamma: Margin between the two.
        activation_ratio: A request goes to a side memory if its activation is above this share of the smallest one of
            the requests inserted there; 1 is the paper's rule.
        shard_size: Insertions that one shard takes.
        shards: Shards that are merged to one side memory, the paper's k.
        density: Share of a shard's entries that merging leaves, those of the largest size.
        layer: Number of the layer, from 0; negative ones count from the last, which is -1. None takes the published
            one: 30 of 36 layers, 23 of 32, 23 of 28, and in proportion in models of other depths.
        module: Name of the linear map inside the layer that has side memories.
        seed: Of the masks.
    """

    steps: int = Field(default=10, ge=1)
    learning_rate: float = Field(default=1.0, gt=0)
    norm_limit: float = Field(default=1.0, gt=0)
    mask_ratio: float = Field(default=0.2, gt=0, le=1)
    alpha: float = Field(default=5.0, ge=0)
    beta: float = Field(default=20.0, ge=0)
    gamma: float = Field(default=10.0, ge=0)
    activation_ratio: float = Field(default=0.4, ge=0)
    shard_size: int = Field(default=500, ge=1)
    shards: int = Field(default=2, ge=1)
    density: float = Field(default=0.53, gt=0, le=1)
    layer: int | None = None
    module: str = Field(default="mlp.down_proj", min_length=1)
    seed: int = 0


class WiseMethod(OutputMethod):
    """Side memories of one layer's down projection (Wang et al., 2024), of which the most activated one is used.

    A side memory begins as the main memory. Each sample trains the entries that the shard's random mask leaves open
    (equation 7), on the loss of its answer plus the margin loss of routing activations (equation 5). A shard that is
    full makes room for the next; ``shards`` full ones are merged (equation 8). A request uses the side memory with the
    largest activation, if that is above its threshold (equation 6 and Algorithm 2), for all tokens of prompt and
    answer.

    The paper leaves some matters open. Here an activation is the mean over the prompt's tokens, images' among them;
    the router decides once per request, at its prompt; the irrelevant request is one of ours, without an image, chosen
    by the sample; each side memory has its own threshold, as in the published code. The published code also decays
    weights, applies an activation function to outputs before it compares them, takes the largest token's activation in
    long prompts, and may stop early: the formulas don't, and neither does this.
    """

    name: ClassVar[str] = "wise"
    config_class: ClassVar[type[MethodConfig]] = WiseConfig
    config: WiseConfig

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        layer = PUBLISHED_LAYERS if self.config.layer is None else self.config.layer
        name, self._linear = layer_output(model.model, self.config.module, layer, method=self.name)
        self._change({name: self._output})
        self._irrelevant: dict[str, Prefill] = {}
        self._masks: dict[int, torch.Tensor] = {}
        self._is_learning = False
        self._delta: torch.Tensor | None = None
        self._prefill: Prefill = (torch.empty(0), torch.empty(0))
        self._choice = torch.empty(0)
        self.reset()

    def insert(self, insertion: Insertion) -> None:
        """Trains the present shard on one sample; full shards are merged."""
        self._edits.start()
        self._is_learning = True
        try:
            self._learn(insertion)
        finally:
            self._is_learning, self._delta = False, None
        self._count += 1
        shards = self.config.shards
        if self._count % (self.config.shard_size * shards) == 0:
            full = self.memories[-shards:]
            merged = ties_merged([memory.delta for memory in full], self.config.density)
            least = min(memory.least for memory in full)
            self.memories[-shards:] = [SideMemory(merged.to(self._linear.weight.dtype), least)]

    def reset(self) -> None:
        """Drops all side memories."""
        self._edits.stop()
        self.memories: list[SideMemory] = []
        self._count = 0

    def parameter_count(self) -> int:
        """Parameters of one side memory."""
        return int(self._linear.weight.numel())

    def _learn(self, insertion: Insertion) -> None:
        config, weight = self.config, self._linear.weight
        shard, place = divmod(self._count, config.shard_size)
        if place == 0:
            self.memories.append(SideMemory(torch.zeros_like(weight)))
        memory, mask = self.memories[-1], self._mask(shard)
        irrelevant = self._irrelevant_request(insertion)
        score = self._passes(insertion)
        parameter = nn.Parameter(memory.delta.float())
        parameter.register_hook(lambda gradient: gradient * mask)

        def loss() -> torch.Tensor:
            self._delta = parameter.to(weight.dtype)
            answer_loss = score().losses().mean()
            edit = routing_activations(self._delta, *self._prefill)
            background = routing_activations(self._delta, *irrelevant)
            return answer_loss + margin_loss(edit, background, config).mean().to(answer_loss.device)

        def limit() -> None:
            parameter.data.clamp_(-config.norm_limit, config.norm_limit)

        optimizer = torch.optim.SGD([parameter], lr=config.learning_rate)
        descend(optimizer, loss, config.steps, insertion=insertion, method=self.name, after=limit)
        memory.delta = parameter.detach().to(weight.dtype)
        memory.least = min(memory.least, float(routing_activations(memory.delta, *self._prefill)))

    def _mask(self, shard: int) -> torch.Tensor:
        """Returns which entries a shard trains; the latest mask is kept, since every chain begins with the same."""
        if shard not in self._masks:
            generator = torch.Generator().manual_seed(self.config.seed + shard)
            numbers = torch.rand(self._linear.weight.shape, generator=generator)
            self._masks = {shard: (numbers < self.config.mask_ratio).to(self._linear.weight.device)}
        return self._masks[shard]

    def _irrelevant_request(self, insertion: Insertion) -> Prefill:
        """Returns an irrelevant request as the linear map sees it, which no insertion changes."""
        questions = prompt_files.load(__package__, IRRELEVANT).text.splitlines()
        question = questions[int(insertion.key[:8], 16) % len(questions)]
        if question not in self._irrelevant:
            query = Query(question, lambda: [{"role": "user", "content": [text_part(question)]}])
            self.model.generate(query, AnswerDecoding(max_new_tokens=1))
            self._irrelevant[question] = self._prefill
        return self._irrelevant[question]

    def _output(self, inputs: torch.Tensor, output: torch.Tensor, prompts: torch.Tensor | None) -> torch.Tensor:
        """Adds what a side memory adds: the one in training, or the one that each request activates."""
        if self._is_learning and prompts is not None:
            self._prefill = inputs.detach(), prompts
        if self._delta is not None:
            return output + linear(inputs, self._delta)
        if prompts is not None:
            self._choice = self._choose(inputs, prompts)
        for number, memory in enumerate(self.memories):
            uses = self._choice == number
            if uses.any():
                output = torch.where(uses[:, None, None], output + linear(inputs, memory.delta), output)
        return output

    def _choose(self, inputs: torch.Tensor, prompts: torch.Tensor) -> torch.Tensor:
        """Returns the number of the side memory that each request uses, -1 for the main memory."""
        activations = torch.stack([routing_activations(memory.delta, inputs, prompts) for memory in self.memories])
        largest, number = activations.max(dim=0)
        thresholds = largest.new_tensor([memory.least * self.config.activation_ratio for memory in self.memories])
        return torch.where(largest > thresholds[number], number, -1)


@dataclass
class SideMemory:
    """One side memory W', as its difference W' - W from the main memory, in the model's data type.

    ``least`` is the smallest routing activation of the requests that were inserted here; infinite before the first.
    """

    delta: torch.Tensor
    least: float = math.inf


def routing_activations(delta: torch.Tensor, inputs: torch.Tensor, prompts: torch.Tensor) -> torch.Tensor:
    """Returns the activations of equation 3, the norm of A(x) (W' - W), as a mean over the prompt's tokens.

    ``delta`` is W' - W, shape (outputs, inputs); ``inputs`` are A(x), the feed-forward network's last activations,
    shape (requests, tokens, inputs). Activations are float32, shape (requests,); 0 where both memories are equal.
    """
    norms = torch.linalg.vector_norm(torch.nn.functional.linear(inputs, delta).float(), dim=-1)
    return (norms * prompts).sum(-1) / prompts.sum(-1)


def margin_loss(edit: torch.Tensor, irrelevant: torch.Tensor, config: WiseConfig) -> torch.Tensor:
    """Returns the loss of equation 5, 0 if both activations are as far apart as they should be.

    max(0, i - alpha) + max(0, beta - e) + max(0, gamma - (e - i)), with e and i the activations.
    """
    return (
        torch.relu(irrelevant - config.alpha)
        + torch.relu(config.beta - edit)
        + torch.relu(config.gamma - (edit - irrelevant))
    )


def ties_merged(deltas: Sequence[torch.Tensor], density: float) -> torch.Tensor:
    """Merges shards as in equation 8: trims them, elects each entry's sign, and takes the mean of those that have it.

    Of each shard the share ``density`` of its entries stays, those of the largest size; at least one does. Where the
    sum over shards is 0, the elected sign is plus.
    """
    trimmed = torch.stack([delta.float() * _largest(delta, density) for delta in deltas])
    elected = torch.where(trimmed.sum(0) >= 0, 1.0, -1.0)
    agreeing = trimmed.sign() == elected
    return (trimmed * agreeing).sum(0) / agreeing.sum(0).clamp(min=1)


def _largest(delta: torch.Tensor, density: float) -> torch.Tensor:
    sizes = delta.float().abs().flatten()
    largest = sizes.topk(max(1, int(density * len(sizes)))).indices
    return torch.zeros_like(sizes).index_fill_(0, largest, 1.0).view_as(delta)
