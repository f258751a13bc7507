"""Options of GRACE, with EasyEdit's values for multimodal models as defaults."""

from __future__ import annotations

from pydantic import Field

from culture_tasks.insertion.core.insertion_method import MethodConfig


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
