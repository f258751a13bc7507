"""Methods that give some weights of the model other values, so that several chains can be answered together.

The edit of a chain is a set of weights, which take the place of the model's while it computes; the model itself never
changes. A batch may have requests of several chains, and each row computes with the weights of its chain: a linear map
is applied chain by chain, all else to the whole batch at once. In float32 the answers are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import nn

from culture_tasks.insertion.core.adapter import Answer, MultimodalModel
from culture_tasks.insertion.core.insertion_method import InsertionMethod, MethodConfig, Prompt
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request
from culture_tasks.insertion.core.weight_edits import Weights, with_weights

Chain = tuple[Insertion, ...]
"""Insertions, one after another."""


class WeightMethod(InsertionMethod):
    """A method whose insertions are other values of weights; ``inserted`` counts them."""

    def __init__(self, model: MultimodalModel, config: MethodConfig | None = None) -> None:
        super().__init__(model, config)
        self.inserted = 0
        self._chain: Chain = ()
        self._known: dict[tuple[str, ...], Weights] = {}

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
        return self.weights_after([self._chain])[0]

    def insert(self, insertion: Insertion) -> None:
        """Edits the present weights."""
        self._chain = (*self._chain, insertion)
        self.weights_after([self._chain])

    def reset(self) -> None:
        """Goes back to the model's weights."""
        self._chain, self._known = (), {}

    def prompt(self, request: Request) -> Prompt:
        """Returns the request with the chain before it."""
        return Prompt(request, edits=self._chain)

    def generate(self, request: Request, decoding: AnswerDecoding) -> Answer:
        """Answers a request with the present weights."""
        return with_weights(self.model.model, self.present, lambda: self.model.generate(request, decoding))

    def weights_after(self, chains: Sequence[Chain]) -> list[Weights]:
        """Returns the weights after each of some chains, of which the first insertions are made together, and so on.

        The weights of the last chain, and of what comes before its later insertions, are kept: where chains are sorted,
        a chain that goes on needs no insertion twice.
        """
        names = [tuple(insertion.key for insertion in chain) for chain in chains]
        known: dict[tuple[str, ...], Weights] = {(): self.weights, **self._known}

        for length in range(1, max(map(len, names)) + 1):
            longer = [(name[:length], chain) for name, chain in zip(names, chains, strict=True) if name[length - 1 :]]
            last = {name: chain[length - 1] for name, chain in longer}
            new = [name for name in last if name not in known]
            if new:
                edits = self.edited([last[name] for name in new], [known[name[:-1]] for name in new])
                known |= zip(new, edits, strict=True)
                self.inserted += len(new)
        self._known = {name: weights for name, weights in known.items() if name and name == names[-1][: len(name)]}
        return [known[name] for name in names]

    def rounded(self, values: Weights) -> dict[str, torch.Tensor]:
        """Returns values in the types of the weights that they replace, rounded to the nearest."""
        return {name: value.to(self.weights[name].dtype) for name, value in values.items()}
