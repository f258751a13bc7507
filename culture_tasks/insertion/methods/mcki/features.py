"""Features of many requests, each computed once, in this run and all others that share the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from culture_tasks.insertion.adapter import MultimodalModel
from culture_tasks.insertion.insertion_method import Progress, silent
from culture_tasks.insertion.queries import Query
from culture_tasks.insertion.value_store import ValueStore


@dataclass(frozen=True)
class FeatureTable:
    """Features of requests.

    Attributes:
        question: Means over question tokens, shape (requests, hidden size), float32.
        visual: Means over visual tokens, of the same shape.
        row_of: Row of each request, by its key.
    """

    question: torch.Tensor
    visual: torch.Tensor
    row_of: Mapping[str, int]

    def rows(self, queries: Sequence[Query]) -> list[int]:
        """Returns the rows of requests."""
        return [self.row_of[query.key] for query in queries]


def feature_table(
    model: MultimodalModel, queries: Sequence[Query], kept: ValueStore, progress: Progress = silent
) -> FeatureTable:
    """Computes the features of requests, once for each distinct image and text.

    Each is committed to the store as soon as it is computed, so a killed run can resume.

    Args:
        model: The model.
        queries: The requests, possibly repeated.
        kept: Where features are stored, by model and request.
        progress: Shows the progress.
    """
    # Equal requests are mostly one object; sorting these out first saves reading their images.
    objects = list({id(query): query for query in queries}.values())
    row_of: dict[str, int] = {}
    found: list[torch.Tensor] = []
    for query in progress(objects, "features"):
        if query.key not in row_of:
            row_of[query.key] = len(found)
            found.append(_features_of(model, query, kept))
    table = torch.stack(found)
    return FeatureTable(table[:, 0], table[:, 1], row_of)


def _features_of(model: MultimodalModel, query: Query, kept: ValueStore) -> torch.Tensor:
    """Returns the stored features of a request, or computes them; shape (2, hidden size), on the CPU."""
    key = f"features:{model.identity.run}:{query.key}"
    content = kept.get(key)
    if content is not None:
        values = np.frombuffer(content, dtype=np.float32).reshape(2, -1)
        return torch.from_numpy(values.copy())
    features = model.features(query)
    both = torch.stack([features.question, features.visual]).cpu()
    kept.put(key, both.numpy().tobytes())
    return both
