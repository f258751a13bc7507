"""Methods that give some weights of the model other values, so that several chains can be answered together.

The edit of a chain is a set of weights, which take the place of the model's while it computes; the model itself never
changes. A batch may have requests of several chains, and each row computes with the weights of its chain: a linear map
is applied chain by chain, all else to the whole batch at once. In float32 the answers are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import nn

from culture_tasks.insertion.core.adapter import ModelAnswer, MultimodalModel, in_halves
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig
from culture_tasks.insertion.core.queries import AnswerDecoding, Insertion, Query
from culture_tasks.insertion.core.weight_edits import Weights, with_weights


class WeightMethod(InsertionMethod):
    """A method whose insertions are other values of weights."""

    edits_weights: ClassVar[bool] = True

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self._present: Weights = {}

    @property
    @abstractmethod
    def weights(self) -> Mapping[str, nn.Parameter]:
        """The weights that are edited, by their names in the model."""

    @abstractmethod
    def edited(self, insertions: Sequence[Insertion], before: Sequence[Weights]) -> list[Weights]:
        """Returns the weights after one more insertion into each of several chains, in the model's own type."""

    @property
    def by_row(self) -> bool:
        """Whether requests of several chains can be answered together."""
        modules = dict(self.model.model.named_modules())
        return all(isinstance(modules.get(name.removesuffix(".weight")), nn.Linear) for name in self.weights)

    @property
    def present(self) -> Weights:
        """The weights after the present insertions."""
        return self._present or self.weights

    def insert(self, insertion: Insertion) -> None:
        """Edits the present weights."""
        [self._present] = self.edited([insertion], [self.present])

    def reset(self) -> None:
        """Goes back to the model's weights."""
        self._present = {}

    def generate(self, query: Query, decoding: AnswerDecoding) -> ModelAnswer:
        """Answers a request with the present weights."""
        return with_weights(self.model.model, self.present, lambda: self.model.generate(query, decoding))

    def insert_each(self, insertions: Sequence[Insertion], before: Sequence[Weights]) -> list[Weights]:
        """Does the same as :meth:`edited`, in halves where that doesn't fit into the memory of the device."""

        def edited(places: Sequence[int]) -> list[Weights]:
            return self.edited([insertions[place] for place in places], [before[place] for place in places])

        return list(in_halves(range(len(insertions)), edited, f"edits of {self.name}"))

    def _rounded(self, values: Weights) -> dict[str, torch.Tensor]:
        """Returns values in the types of the weights that they replace, rounded to the nearest."""
        return {name: value.to(self.weights[name].dtype) for name, value in values.items()}
