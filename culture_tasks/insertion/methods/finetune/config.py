"""Options of FineTune, with the paper's values as defaults (Table 5)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from culture_tasks.insertion.core.insertion_method import MethodConfig
from culture_tasks.insertion.core.training import OptimizerName


class FineTuneConfig(MethodConfig):
    """Options of FineTune.

    Attributes:
        steps: Steps on each insertion sample.
        learning_rate: Of the optimizer.
        optimizer: With PyTorch's defaults, made anew for each sample; the paper names none.
        layer: Number of the edited layer, from 0; negative ones count from the last, which is -1.
        weights: Which weight matrices of the layer are edited; norms and biases aren't.
    """

    steps: int = Field(default=20, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    optimizer: OptimizerName = "adam"
    layer: int = -1
    weights: Literal["attention+mlp", "attention", "mlp"] = "attention+mlp"
