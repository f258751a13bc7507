"""Options of LoRA, with EasyEdit's values for Qwen3-VL-4B as defaults."""

from __future__ import annotations

from pydantic import Field

from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.training import OptimizerName


class LoraConfig(MethodConfig):
    """Options of LoRA.

    Attributes:
        rank: Rank r of the added matrices.
        alpha: Their product is multiplied by alpha / rank.
        dropout: Share of an input's entries that are left out in training.
        weights: Names of the linear maps inside a layer, joined by ``+``; layers that lack one are passed over.
        steps: Steps on each insertion sample.
        learning_rate: Of the first step.
        decay: The learning rate is multiplied by it after each step.
        optimizer: With PyTorch's defaults, made anew for each sample.
        seed: Of the first values, and of dropout.
    """

    rank: int = Field(default=8, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    weights: str = Field(default="self_attn.q_proj+self_attn.v_proj", min_length=1)
    steps: int = Field(default=5, ge=1)
    learning_rate: float = Field(default=0.1, gt=0)
    decay: float = Field(default=0.9, gt=0, le=1)
    optimizer: OptimizerName = "sgd"
    seed: int = 0
