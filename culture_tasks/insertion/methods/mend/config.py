"""Options of MEND, with the paper's values as defaults (Table 5), and MEND's own where the paper has none."""

from __future__ import annotations

from pydantic import Field

from culture_tasks.insertion.core.training import GradientConfig


class MendConfig(GradientConfig):
    """Options of MEND.

    The paper gives the number of passes, the edited weights, both learning rates and the rank. The others are those of
    MEND's published configuration.

    Attributes:
        layers: How many of the last layers are edited.
        weights: Names of the edited linear maps inside a layer, joined by ``+``.
        rank: Rank of the editors' layers.
        hidden_layers: Number of the editors' hidden layers.
        normalize: Whether editors see gradients less their running mean, divided by their running deviation.
        edit_rate: How far an edit goes at first, the "insert learning rate" of Table 5; learned for each weight.
        learning_rate: Of the editors, the "meta learning rate" of Table 5.
        edit_rate_learning_rate: Of the edit rates themselves.
        edit_weight: Weight of the edited model's loss on the insertion sample.
        generality_weight: Weight of its loss on each generality item.
        locality_weight: Weight of its divergence from the plain model on each locality item.
        cases_per_step: Training cases that make one step.
        clip_norm: Largest norm of the gradients of all that is trained; 0 leaves them as they are.
    """

    layers: int = Field(default=3, ge=1)
    weights: str = Field(default="mlp.up_proj+mlp.down_proj", min_length=1)
    rank: int = Field(default=1920, ge=1)
    hidden_layers: int = Field(default=1, ge=0)
    normalize: bool = True
    edit_rate: float = Field(default=1e-4, gt=0)
    learning_rate: float = Field(default=1e-6, gt=0)
    edit_rate_learning_rate: float = Field(default=1e-4, ge=0)
    edit_weight: float = Field(default=0.1, ge=0)
    generality_weight: float = Field(default=0.1, ge=0)
    locality_weight: float = Field(default=1.0, ge=0)
    cases_per_step: int = Field(default=2, ge=1)
    clip_norm: float = Field(default=100.0, ge=0)
