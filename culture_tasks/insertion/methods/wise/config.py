"""Options of WISE, with EasyEdit's values for multimodal models as defaults."""

from __future__ import annotations

from pydantic import Field

from culture_tasks.insertion.core.insertion_method import MethodConfig


class WiseConfig(MethodConfig):
    """Options of WISE.

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
