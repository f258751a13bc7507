"""Options of MCKI, with the paper's values as defaults (Table 5)."""

from __future__ import annotations

from pydantic import Field

from culture_tasks.benchmarks.training_cases import Locality
from culture_tasks.insertion.core.insertion_method import MethodConfig


class MckiConfig(MethodConfig):
    """Options of MCKI.

    Attributes:
        route_dim: Width of router vectors.
        logit_scale: Gamma of equations 13 and 14.
        cross_language_weight: w_n of cross-language locality items (equation 14).
        cross_scenario_weight: w_n of cross-scenario locality items.
        negative_loss_weight: Lambda of equation 15; the paper gives no value.
        learning_rate: Of Adam; the paper names no optimizer.
        epochs: Passes over the training cases, one case a step.
        seed: Of the router's first weights and of the order of cases.
        wrap_image: Whether an activated entry is shown with its image.
    """

    route_dim: int = Field(default=1024, ge=1)
    logit_scale: float = Field(default=20.0, gt=0)
    cross_language_weight: float = Field(default=1.0, gt=0)
    cross_scenario_weight: float = Field(default=1.5, gt=0)
    negative_loss_weight: float = Field(default=1.0, ge=0)
    learning_rate: float = Field(default=1e-3, gt=0)
    epochs: int = Field(default=1, ge=1)
    seed: int = 0
    wrap_image: bool = True

    def weight_of(self, kind: Locality | None) -> float:
        """Returns w_n of a locality item."""
        return self.cross_language_weight if kind == "cross_language_locality" else self.cross_scenario_weight
