"""The computation of a method in passes through its models: the base of estimates of its time and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel
    from transformers import PreTrainedModel

EVALUATED = ""
"""The key of the model under evaluation among a method's models; others have the name of the option that names them."""


@dataclass(frozen=True, slots=True)
class CaseShape:
    """The training cases of a fit.

    Attributes:
        count: Number of cases.
        requests: Distinct requests of all cases together.
        generality: Mean number of generality items of a case.
        locality: Mean number of locality items of a case.
    """

    count: int
    requests: int
    generality: float
    locality: float


@dataclass(frozen=True, slots=True)
class Setup:
    """The facts that the computation of a method follows from.

    Attributes:
        config: The method's options.
        models: Models without weights: the one under evaluation, and those that the method loads beside it.
        cases: The training cases.
    """

    config: BaseModel
    models: Mapping[str, PreTrainedModel]
    cases: CaseShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The computation of a method beside the answers themselves, by the model that computes.

    A pass is one forward pass over one request. A backward pass through a share of the layers counts as twice that
    share. Encoders of texts and images are left out: their passes cost less than a hundredth of the model's.

    Attributes:
        fit: Passes of the whole fit.
        fit_in_batches: Whether these are computed in batches, and not case by case.
        insertion: Passes of one insertion.
        request: Passes of one distinct request, besides its answer.
        fit_float32: Parameters times passes over one request that the fit computes in float32 besides.
        insertion_float32: The same for one insertion.
        shown_tokens: Tokens of text that a request is shown after.
        shows_image: Whether it is shown after the insertion's image too.
        answered_by: The model that answers a request in the scope of an insertion.
        leaves_others_alone: Whether requests out of scope have the plain model's answer.
        chain_bytes: Memory for the edit of each chain of insertions whose requests are in one batch.
        trained: Parameters that the fit trains, in float32 with a gradient and Adam's two moments.
    """

    fit: Mapping[str, float] = field(default_factory=dict)
    fit_in_batches: bool = False
    insertion: Mapping[str, float] = field(default_factory=dict)
    request: Mapping[str, float] = field(default_factory=dict)
    fit_float32: float = 0.0
    insertion_float32: float = 0.0
    shown_tokens: int = 0
    shows_image: bool = False
    answered_by: str = EVALUATED
    leaves_others_alone: bool = False
    chain_bytes: float = 0.0
    trained: int = 0
