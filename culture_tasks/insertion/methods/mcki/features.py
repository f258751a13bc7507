"""Features of many requests, each computed once, in this run and all others that share the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from culture_tasks.insertion.adapter import MultimodalModel
from culture_tasks.insertion.progress import Counted, Progress, silent
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
    model: MultimodalModel, queries: Sequence[Query], kept: ValueStore, batch_size: int = 1, progress: Progress = silent
) -> FeatureTable:
    """Computes the features of requests, once for each distinct image and text.

    Args:
        model: The model.
        queries: The requests, possibly repeated.
        kept: Where features are stored, by model and request.
        batch_size: Requests that are computed together.
        progress: Shows the progress.
    """
    row_of: dict[str, int] = {}
    found: list[torch.Tensor] = []
    for key, features in features_by_key(model, queries, kept, batch_size, progress):
        row_of[key] = len(found)
        found.append(features)
    table = torch.stack(found)
    return FeatureTable(table[:, 0], table[:, 1], row_of)


def features_by_key(
    model: MultimodalModel, queries: Sequence[Query], kept: ValueStore, batch_size: int, progress: Progress
) -> Iterator[tuple[str, torch.Tensor]]:
    """Computes the features of requests, or finds them in the store.

    Each is committed to the store as soon as its batch is computed, so a killed run can resume.

    Yields:
        The key of each distinct request with its features, shape (2, hidden size), float32, on the CPU: over question
        tokens, then over visual tokens.
    """
    # Equal requests are mostly one object; sorting these out first saves reading their images.
    objects = list({id(query): query for query in queries}.values())
    distinct = list({query.key: query for query in progress(objects, "requests")}.values())
    missing: list[Query] = []
    for query in distinct:
        content = kept.get(_stored_under(model, query))
        if content is None:
            missing.append(query)
        else:
            values = np.frombuffer(content, dtype=np.float32).reshape(2, -1)
            yield query.key, torch.from_numpy(values.copy())
    computed = model.features_of(missing, batch_size)
    for place, features in progress(Counted(computed, len(missing)), "features"):
        both = torch.stack([features.question, features.visual]).cpu()
        kept.put(_stored_under(model, missing[place]), both.numpy().tobytes())
        yield missing[place].key, both


def _stored_under(model: MultimodalModel, query: Query) -> str:
    return f"features:{model.identity.run}:{query.key}"
